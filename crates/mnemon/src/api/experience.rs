//! What was tried, and how it went: one file per operation.

pub mod failures;
pub mod log;
pub mod traces;
