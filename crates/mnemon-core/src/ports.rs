//! What the outside world is asked for: stores, indexes, files, logs and models.

pub mod embed;
pub mod external;
pub mod files;
pub mod llm;
pub mod log;
pub mod longterm;
pub(crate) mod replica;
pub mod rerank;
pub(crate) mod search_index;
pub(crate) mod store;
pub mod webhook;

pub use replica::{
    CodedVector, EmbeddedPage, Replay, Replica, StoredChange, StoredPage, StoredReceipt,
};
pub use search_index::{
    Answer, Backend, Background, Embedding, Features, IndexCapabilities, IndexFilters, IndexUsage,
    Match, Probe, QueryTerm, ScoreScale, SearchIndex, SimilarTerm, Statistics, TenantIndex,
    TermRole, Traits,
};
pub use store::{
    Batch, Capabilities, Cause, Change, ChangeHandler, Changes, Claim, Claimed, Expect, Fate,
    Group, Hidden, HiddenScan, IdempotencyKey, Op, Outcome, Receipt, SessionCount, SessionCounts,
    SessionWindow, Store, StoreError, Tally, Upkept, sessions_by_scan,
};
