//! Finding records: plan, find, rank, fetch.

pub(crate) mod external;
pub(crate) mod rerank;
pub(crate) mod retrieve;

pub use retrieve::{Hit, Query};
