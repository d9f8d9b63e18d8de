//! The stores.

pub(crate) mod sqlite;
