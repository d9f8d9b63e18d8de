//! Memory for AI agents: conversations, facts, documents and skills in one file, for many users.
//! No API key, no server, no network.
//!
//! ```standalone_crate
//! use mnemon::{Mnemon, Role};
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! # let folder = tempfile::tempdir()?;
//! # std::env::set_current_dir(folder.path())?;
//! let memory = Mnemon::open("memory.db")?;
//! let ann = memory.user("ann");
//!
//! // Remember something, and find it by its meaning.
//! ann.add("Ann prefers green tea, without sugar").await?;
//! let hits = ann.search("what does Ann like to drink?").await?;
//! assert!(hits[0].record.content.contains("green tea"));
//!
//! // Keep a conversation. The window is what a model should see of it.
//! let chat = ann.conversation("monday");
//! chat.append(Role::User, "Please order something to drink").await?;
//! chat.append(Role::Assistant, "Green tea, as always?").await?;
//! assert_eq!(chat.window().await?.len(), 2);
//!
//! // Ask for all that a prompt needs, in at most 800 tokens.
//! let context = ann.context("monday", "which tea?", 800).await?;
//! assert!(context.tokens <= 800);
//!
//! // Every change can be undone until it is purged.
//! let forgotten = ann.forget(&hits[0].record.id).await?;
//! assert!(ann.get(&hits[0].record.id).await?.is_none());
//! memory.undo(forgotten.commit.expect("something was forgotten")).await?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Which type do I need?
//!
//! | task | start at |
//! |---|---|
//! | open a store, choose tenant, embedder, clock | [`Mnemon::open`], [`Options`] |
//! | remember, find, change and forget what one user may see | [`Mnemon::user`] → [`User`] |
//! | the same for all users of the tenant | [`Mnemon`] |
//! | say how long, with which tags, under which key something is kept | [`NewRecord`] |
//! | narrow a search | [`Search`] |
//! | keep a conversation and fit it into a model's window | [`User::conversation`] → [`Conversation`] |
//! | put together a prompt within a token budget | [`User::context`] → [`Context`] |
//! | take in documents | [`NewDocument`], [`Mnemon::add_document`] |
//! | see who changed what, and undo it | [`Mnemon::history`], [`Mnemon::undo`] |
//! | erase something from the disk | [`Mnemon::purge`] |
//!
//! # What you can rely on
//!
//! - A write that returned `Ok` survives `kill -9` and power loss. It happens whole or not at all.
//! - Any number of processes may open the same SQLite file.
//! - A [`User`] never sees a record of another user, and a tenant never one of another tenant.
//! - Degraded results (an embedder that failed, a list that was cut) are reported by
//!   [`Mnemon::take_notices`].
//!
//! All handles are cheap to clone, `Send` and `Sync`. The futures need no particular runtime; inside
//! a Tokio runtime blocking work runs on threads of its own.

mod conversation;
mod error;
mod memory;
mod options;
mod record;
mod user;

pub use conversation::Conversation;
pub use error::Error;
pub use memory::Mnemon;
pub use options::Options;
pub use record::{Change, Context, Hit, NewDocument, NewRecord, Receipt, Record, Search};
pub use user::User;

pub use mnemon_core::{ErrorKind, Id, Kind, Message, Role, Time};

/// A JSON object, as records carry it in their metadata.
pub type Metadata = serde_json::Map<String, serde_json::Value>;

/// The examples of the README are compiled and run, too.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
