//! The stores.

pub(crate) mod jsonl;
