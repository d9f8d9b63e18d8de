//! Lance tables as the search index of a store: `index = "lance:FOLDER"`.
//!
//! [`Lance`] is an [`IndexServer`](mnemon_adapters::external_index::IndexServer) without a server: the
//! tables are files, which pandas, DuckDB and other programs can read, too. So the code that follows,
//! rebuilds and searches is the same as for search servers.
//!
//! The crate uses `lance` itself: `lancedb` on top of it adds 47 packages and nothing that is needed.
#![cfg(feature = "tables")]

mod filter;
mod folder;
mod rows;
mod schema;
mod server;
mod words;

pub use server::{Lance, Upkeep};
