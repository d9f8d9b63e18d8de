//! Mnemon's verbs: remember, look up, forget, undo.
//!
//! The engine knows ports, not who stands behind them. It reads no clock, no environment and no
//! file, prints nothing and starts nothing: every call is told who asks and when, in a
//! [`Ctx`](mnemon_core::Ctx).
//!
//! ```
//! use std::sync::Arc;
//! use mnemon_core::{Ctx, Ids, Tenant, Time, ram::Ram};
//! use mnemon_engine::{Draft, Memory};
//!
//! # futures::executor::block_on(async {
//! let memory = Memory::builder(Arc::new(Ram::new()), Ids::new(7)).build();
//! let ctx = Ctx::new(Tenant::default(), "me", Time::from_millis(1_700_000_000_000)?);
//! let receipt = memory.records().add(&ctx, vec![Draft::note("Ann prefers tea")], None).await?;
//!
//! let forgotten = memory.records().forget(&ctx, &[receipt.items[0].id.clone()], None).await?;
//! memory.records().undo(&ctx, forgotten.commit.unwrap()).await?;
//! assert_eq!(memory.records().stats(&ctx).await?.records(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```

pub mod agentfiles;
mod context;
mod deletion;
mod documents;

mod draft;
mod embedding;
mod error;
mod hooks;
mod import;
pub mod learn;
pub mod longterm;
mod memory;
mod naming;
pub mod notes;
mod notes_config;
mod payload;
mod policies;
mod project;
mod reading;
mod records;
mod rerank;
mod retrieve;
mod safety;
mod scopes;
pub mod session;
mod session_marks;
pub mod tiers;
mod undo;
mod window;
mod writing;

pub use context::{Context, ContextQuery, Silent};
pub use deletion::{Forgotten, NotErased, ProjectFiles, Purged, SavedFolder, SessionForget};
pub use documents::{
    ChunkCounts, Document, DocumentFate, DocumentHit, DocumentQuery, DocumentReceipt, FileStamp,
    Known, TOP_K,
};
pub use draft::{Draft, Retention};
pub use embedding::Embedded;
pub use error::Error;
pub use hooks::{Node, NodeOutcome, Ran};
pub use import::OnConflict;
pub use memory::{Builder, Memory};
pub use payload::{Payload, StatePayload};
pub use policies::{Applied, MemoryPolicy, PerScope, Policies, Whom};
pub use reading::{Answer, Failure, MemoryItem, MemoryQuery};
pub use records::Records;
pub use retrieve::{Hit, Query};
pub use safety::Safety;
pub use scopes::{
    Content, Dialog, DialogContext, Ended, Experience, FlowState, FoundDocument, FoundRule,
    FoundSkill, Knowledge, LIMIT_STEPS, LIMIT_TURNS, LoggedStep, Place, Procedural, Profile, Said,
    SalientFact, Semantic, SessionSummary, Sop, State, Step, TOP_DOCS, TOP_SKILLS, Task, TaskList,
    TaskStatus, TaskStep, ToldEvidence, ToolSop, Trace, Turn, UserProfile, Utterance,
};
pub use window::{InMemory, Seen, SeenAs, Shown, Window, WindowState};
pub use writing::MemoryWriteEvent;
