//! Learning from experience.

pub mod improve;
