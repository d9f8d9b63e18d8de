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

pub mod access;
pub mod agentfiles;
mod context;
mod conversation;
mod deletion;
mod documents;
pub mod feed;
pub mod learn;
mod memory;
mod migration;
pub mod notes;
mod records;
mod search;
pub mod webhooks;

pub use context::{Context, ContextQuery, Silent};
pub use conversation::{
    CaughtUp, Conversation, Folded, InMemory, LogLine, Passage, PassageQuery, Preview, Project,
    ProjectConfig, Refined, Seen, SeenAs, Shown, Snapshot, Tier, Tiers, Window, WindowState,
    longterm, session,
};
pub use deletion::{Forgotten, NotErased, ProjectFiles, Purged, SavedFolder, SessionForget};
pub use documents::{ChunkCounts, Document, DocumentFate, DocumentReceipt, FileStamp, Known};
pub use memory::{
    Answer, Applied, Builder, Content, Dialog, DialogContext, Ended, Experience, Failure,
    FlowState, FoundDocument, FoundRule, FoundSkill, Knowledge, LIMIT_STEPS, LIMIT_TURNS,
    LoggedStep, Memory, MemoryItem, MemoryPolicy, MemoryQuery, MemoryWriteEvent, Node, NodeOutcome,
    Payload, PerScope, Place, Policies, Procedural, Profile, Ran, Said, SalientFact, Semantic,
    SessionSummary, Sop, State, StatePayload, Step, TOP_DOCS, TOP_SKILLS, Task, TaskList,
    TaskStatus, TaskStep, ToldEvidence, ToolSop, Trace, Turn, UserProfile, Utterance, Whom,
};
pub use migration::{Migration, Sums, TenantState, Watch as MigrationWatch};
pub use records::{
    Draft, Edit, Edited, Embedded, Error, INDEX_ACTOR, NextCommit, OnConflict, Records, Retention,
    Safety,
};
pub use search::{Hit, Query};
