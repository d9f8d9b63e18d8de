//! Learning from experience: one file per operation.

pub mod dry_run;
pub mod improve;
pub mod run;
pub mod status;
