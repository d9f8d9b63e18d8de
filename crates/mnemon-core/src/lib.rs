//! Mnemon's vocabulary: nouns, ports and arithmetic.
//!
//! Everything an agent remembers is a [`Record`]. A [`Store`] keeps records, a [`SearchIndex`] finds
//! them; what a commit means
//! (versions, idempotency, provenance, eviction, undo) is written once, in [`commit`], and every
//! store runs the same rules over its own tables. [`ram::Ram`] is the reference store.
//!
//! This crate cannot wait, read a clock, the environment or a file, and cannot fail for a reason
//! outside itself: time and identity arrive in [`Ctx`], permission in a [`Grant`].
//!
//! ```
//! use mnemon_core::{Batch, Ctx, Ids, Op, Policy, Record, Right, Store, Tenant, Time, ram::Ram};
//!
//! # futures::executor::block_on(async {
//! let ctx = Ctx::new(Tenant::default(), "me", Time::from_millis(1_700_000_000_000)?);
//! let grant = Policy::default().check(&ctx, Right::Write)?;
//! let ids = Ids::new(7);
//! let note = Record::note(ids.next(ctx.now), &ctx, "Ann prefers tea");
//!
//! let store = Ram::new();
//! let receipt = store.apply(&grant, Batch::of(Op::put(note))).await?;
//! let id = receipt.items[0].id.clone();
//! let found = store.get(&grant, &[id]).await?;
//! assert_eq!(found[0].as_ref().map(|r| r.content.as_str()), Some("Ann prefers tea"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```

pub mod budget;
pub mod chunk;
pub mod clock;
pub mod closure;
pub mod commit;
pub mod embed;
pub mod files;
pub mod format;
pub mod index;
pub mod json;
pub mod learn;
pub mod limits;
pub mod llm;
pub mod log;
pub mod longterm;
pub mod markdown;
pub mod note;
pub mod ram;
pub mod rank;
pub mod recall_marks;
pub mod rerank;
pub mod secrets;
pub mod speakers;
pub mod text;
pub mod vector;
pub mod window;

mod audience;
mod column_file;
mod ctx;
mod error;
mod id;
mod message;
mod notices;
mod owner;
mod policy;
mod query;
mod record;
mod scope;
mod search_index;
mod store;
mod time;

pub use audience::{Audience, Viewer};
pub use clock::Clock;
pub use ctx::{CommitGroup, Ctx};
pub use error::{ErrorKind, Invalid};
pub use id::{Id, Ids};
pub use limits::Limits;
pub use message::{Block, Media, Message, Role};
pub use notices::Notices;
pub use owner::{Owner, Tenant};
pub use policy::{Caps, Denied, Grant, Policy, Right, Rights};
pub use query::{Cursor, Expr, Filter, Order, Page, Scan};
pub use rank::Candidate;
pub use record::{Format, Record};
pub use scope::{Kind, Namespace, Origin, Scope};
pub use search_index::{
    Answer, Backend, Embedding, Features, IndexCapabilities, IndexFilters, Match, Probe, QueryTerm,
    ScoreScale, SearchIndex, Statistics, TermRole,
};
pub use store::{
    Batch, Capabilities, Cause, Change, Changes, Expect, Fate, Group, Hidden, HiddenScan,
    IdempotencyKey, Op, Outcome, Receipt, SessionWindow, Store, StoreError, Tally, Upkept,
};
pub use time::Time;
