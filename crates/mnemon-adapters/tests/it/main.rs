//! The adapters against real files, real processes and real kills.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "test code: a failure should panic, and a child talks to its parent"
)]

mod conformance;
mod context;
mod crash;
mod documents;
mod embed;
mod external;
mod files;
mod following;
mod full_disk;
mod jsonl;
mod kit;
mod llm;
mod modes;
mod opensearch;
#[cfg(feature = "postgres")]
mod postgres;
mod processes;
mod purge;
mod redirects;
mod remote;
mod search;
mod shortcuts;
mod sqlite_damage;
mod sqlite_file;
mod sqlite_format;
mod tokens;
mod webhook;
