//! Lance tables as the search index of a store: `index = "lance:FOLDER"` or `"lance:s3://BUCKET/PATH"`.
//!
//! [`Lance`] is an [`IndexServer`](mnemon_adapters::external_index::IndexServer) without a server: the
//! tables are files, which pandas, DuckDB and other programs can read, too. So the code that follows,
//! rebuilds and searches is the same as for search servers.
//!
//! The crate uses `lance` itself: `lancedb` on top of it adds 47 packages and nothing that is needed.
#![cfg(feature = "tables")]

mod bucket;
mod filter;
mod folder;
mod home;
mod rows;
mod s3;
mod schema;
mod server;
mod words;

pub use server::{Lance, Upkeep};
