//! Skills and rules, with what they rest on: one file per operation.

pub mod export;
pub mod import;
