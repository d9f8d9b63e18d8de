//! The adapters against real files, real processes and real kills.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: a failure should panic"
)]

mod conformance;
mod crash;
mod full_disk;
mod kit;
mod processes;
mod purge;
mod sqlite_format;
