//! The operations of Mnemon, below every interface.
//!
//! Each layer knows only the ones before it:
//!
//! - [`config`]: `mnemon.toml`, `MNEMON_*` and flags become one [`Config`](config::Config), in
//!   which every value knows where it came from.
//! - [`wiring`]: a `Config` becomes a memory over a store. Only this module knows both the engine
//!   and the adapters, and looks at the clock.
//! - [`api`]: the operations that take more than one call of the engine, or check more than it
//!   does. The others the interfaces call directly.
//! - [`operation`]: the definition of each operation that has a command and a tool: its fields, and
//!   the call behind them. The interfaces make their arguments, schemas and checks from it.
//! - [`schema`]: the JSON schemas of the answers.
//!
//! Whatever goes wrong is an [`Error`]; its kind is looked up in [`code`], the one table of exit
//! codes, HTTP statuses, MCP codes and hints.
//!
//! ```
//! use mnemon_engine::Draft;
//! use mnemon_operations::{config::Config, wiring};
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let config = Config::for_store("ram:");
//! let memory = wiring::open(&config)?.memory;
//! let ctx = wiring::stamp(&config)?;
//!
//! let drafts = vec![Draft::note("Ann prefers tea")];
//! let receipt = memory.records().add(&ctx, drafts, None).await?;
//! assert_eq!(receipt.items.len(), 1);
//! # Ok::<(), mnemon_operations::Error>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod api;
pub mod code;
pub mod config;
pub mod env_vars;
pub mod operation;
pub mod schema;
pub mod wiring;

mod error;

pub use error::Error;
