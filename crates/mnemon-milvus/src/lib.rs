//! Milvus as the search index of a store: `index = "milvus://HOST:PORT/NAME"`.
//!
//! [`Milvus`] is an [`IndexServer`](mnemon_adapters::external_index::IndexServer), so the code that
//! follows, rebuilds and searches is the same as for other servers.
//!
//! The client speaks Milvus' gRPC protocol itself: `proto` holds the messages of the 15 calls that
//! are used. The official SDK 3.0.3 was tried first. It requires `yoke-derive` 0.8.2 exactly, which
//! cannot be resolved together with `icu_segmenter` 2.4 of `mnemon-core`, and it adds 30 packages
//! where `tonic` adds seven.
#![cfg(feature = "client")]

mod client;
mod filter;
mod proto;
mod query;
mod rows;
mod schema;
mod server;

pub use server::Milvus;
