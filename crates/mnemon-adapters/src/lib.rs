//! Mnemon's outside world: stores, files and models behind the ports of `mnemon-core`.
//!
//! Adapters know ports, not verbs. [`open`] turns a URL into a store; it is the only list of them.

pub mod audit;
pub mod documents;
pub mod embed;
pub mod external_index;
pub mod llm;
pub mod remote;
pub mod token;
pub mod tokens;
pub mod webhook;

mod blocking;
mod files;
mod health;
mod http;
mod open;
mod private;
mod store;

pub use blocking::may_block;
pub use files::{Disk, sweep_stale};
pub use health::{BackupSummary, Examination, Finding};
pub use http::client_of as http_client_of;
pub use open::{
    Opened, Restored, SCHEMES, backup, check_backup, examine, is_same_store, is_unused, missing,
    open, open_replica, repair, restore,
};
pub use private::make_folder as make_private_folder;
pub use store::jsonl::{Jsonl, Notices, Skipped};
#[cfg(feature = "postgres")]
pub use store::postgres::Postgres;
pub use store::sqlite::{Saving, Sqlite};
