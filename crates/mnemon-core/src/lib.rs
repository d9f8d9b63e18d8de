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

pub mod commit;
mod context;
mod conversation;
mod error;
pub mod learn;
pub mod markdown;
mod model;
mod ports;
pub mod ram;
mod search;
pub mod secrets;

pub use commit::closure;
pub use context::{budget, chunk, recall_marks};
pub use conversation::{format, window};
pub use error::{ErrorKind, Invalid};
pub use model::{
    Audience, Block, Caps, Clock, CommitGroup, Ctx, Cursor, Denied, Expr, Filter, Format, Grant,
    Id, Ids, Kind, Limits, Media, Message, Namespace, Notices, Order, Origin, Owner, Page, Policy,
    Record, Right, Rights, Role, Scan, Scope, Tenant, Time, Viewer, check_line, clock, json,
    limits, note,
};
pub use ports::{
    Answer, Backend, Background, Batch, Capabilities, Cause, Change, ChangeHandler, Changes, Claim,
    Claimed, CodedVector, EmbeddedPage, Embedding, Expect, Fate, Features, Group, Hidden,
    HiddenScan, IdempotencyKey, IndexCapabilities, IndexFilters, IndexUsage, Match, Op, Outcome,
    Probe, QueryTerm, Receipt, Replay, Replica, ScoreScale, SearchIndex, SessionCount,
    SessionCounts, SessionWindow, SimilarTerm, Statistics, Store, StoreError, StoredChange,
    StoredPage, StoredReceipt, Tally, TenantIndex, TermRole, Traits, Upkept, embed, external,
    files, llm, log, longterm, rerank, sessions_by_scan, webhook,
};
pub use search::{Candidate, dates, index, rank, speakers, text, vector};
