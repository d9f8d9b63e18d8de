//! The stores.

pub(crate) mod jsonl;
pub(crate) mod sqlite;
