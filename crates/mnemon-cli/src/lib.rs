//! Mnemon's front doors.
//!
//! This is the only crate that prints, reads the environment, looks at the clock and knows both
//! the engine and the adapters. It has layers, and each knows only the ones before it; the doors do not know each other:
//!
//! - [`config`]: `mnemon.toml`, `MNEMON_*` and flags become one [`Config`](config::Config), in
//!   which every value knows where it came from.
//! - [`wiring`]: a `Config` becomes a memory over a store.
//! - [`api`]: the operations that take more than one call of the engine, or check more than it
//!   does. The others the doors call directly.
//! - `operation`: the definition of each operation that has a command and a tool: its fields, and
//!   the call behind them. The doors make their arguments, schemas and checks from it.
//! - [`schema`]: the JSON schemas of the answers.
//! - [`cli`]: the command line. It decodes arguments and prints the answers.
//! - [`mcp`]: the door for MCP clients, over stdio or HTTP.
//! - [`http`]: the server. It derives its routes from the operations, and has MCP at `/mcp`.
//!
//! Whatever goes wrong is an [`Error`]; its kind is looked up in [`code`], the one table of exit
//! codes, HTTP statuses, MCP codes and hints.
//!
//! ```
//! use mnemon_cli::{config::Config, wiring};
//! use mnemon_engine::Draft;
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let config = Config::for_store("ram:");
//! let memory = wiring::open(&config)?.memory;
//! let ctx = wiring::stamp(&config)?;
//!
//! let drafts = vec![Draft::note("Ann prefers tea")];
//! let receipt = memory.records().add(&ctx, drafts, None).await?;
//! assert_eq!(receipt.items.len(), 1);
//! # Ok::<(), mnemon_cli::Error>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod api;
pub mod cli;
pub mod code;
pub mod config;
pub mod env_vars;
pub mod http;
pub mod mcp;
pub mod schema;
pub mod wiring;

mod error;
mod operation;

pub use error::Error;
