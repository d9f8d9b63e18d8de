//! Mnemon's front doors.
//!
//! This is the only crate that prints, reads the environment, looks at the clock and knows both
//! the engine and the adapters. It has layers, and each knows only the ones before it; the doors do not know each other:
//!
//! - [`config`]: `mnemon.toml`, `MNEMON_*` and flags become one [`Config`](config::Config), in
//!   which every value knows where it came from.
//! - [`wiring`]: a `Config` becomes a memory over a store.
//! - [`api`]: one file per operation, each with a `Request`, a `Response` and a `run`. A door adds
//!   no operation and no field of its own.
//! - [`cli`]: the command line. It decodes arguments into requests and prints the responses.
//! - [`mcp`]: the door for MCP clients, over stdio or HTTP.
//!
//! Whatever goes wrong is an [`Error`]; its kind is looked up in [`code`], the one table of exit
//! codes, HTTP statuses, MCP codes and hints.
//!
//! ```
//! use mnemon::{api, config::Config, wiring};
//! use mnemon_engine::Draft;
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let config = Config::for_store("ram:");
//! let memory = wiring::open(&config)?.memory;
//! let ctx = wiring::stamp(&config)?;
//!
//! let request = api::add::Request { drafts: vec![Draft::note("Ann prefers tea")], key: None };
//! let receipt = api::add::run(&memory, &ctx, request).await?;
//! assert_eq!(receipt.items.len(), 1);
//! # Ok::<(), mnemon::Error>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod api;
pub mod cli;
pub mod code;
pub mod config;
pub mod env_vars;
pub mod mcp;
pub mod wiring;

mod error;

pub use error::Error;
