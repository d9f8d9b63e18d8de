//! Search servers as the index of a store: `index = "opensearch://…"`, `"milvus://…"` or `"lance:…"`.
//!
//! A search server has no transactions over our rules, so it is an index and never a store. A folder or
//! a bucket of Lance tables counts as one.
//! [`ExternalIndex`] follows the commits of its store and asks the server; an [`IndexServer`] is one
//! kind of server. The server holds hashes of analysed terms, vectors, and the fields that filters
//! need. It holds no text.
//!
//! - The watermark is kept in the server, next to the documents. It is raised after they are
//!   durable, so a process that dies in between writes them again.
//! - Every write may be repeated, and an older version never replaces a newer one.
//! - Every match is compared with the store before it is returned, so that an index that is late
//!   shows nothing that was deleted or replaced.
//! - A rebuild fills a new generation of the index while searches use the old one.

mod compare;
mod conditions;
mod document;
mod follow;
pub(crate) mod opensearch;
mod rebuild;
mod search;
mod url;
mod vectors;

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use mnemon_core::embed::ModelId;
use mnemon_core::{
    Filter, Id, IndexCapabilities, IndexFilters, Probe, Replica, ScoreScale, Statistics,
    StoreError, Tenant, Time,
};

pub use compare::Comparison;
pub use conditions::Condition;
pub use document::{Document, QUARTERS, Vector};
pub use follow::Followed;
pub use opensearch::OpenSearch;
pub use rebuild::{Rebuilt, Watch};
pub use url::{IndexAccess, IndexKind, IndexUrl};

/// A search server that holds documents of records.
///
/// A server knows several generations of an index, of which searches use one. Every method may be
/// called by several processes at once.
#[async_trait]
pub trait IndexServer: Send + Sync {
    /// How messages name the index. It contains no password.
    fn place(&self) -> &str;

    /// What the server does by itself. Constant for its life.
    fn capabilities(&self) -> IndexCapabilities {
        IndexCapabilities {
            neighbour_context: false,
            filters: IndexFilters {
                content: false,
                ..IndexFilters::ALL
            },
            deletes_at_once: true,
            words: ScoreScale::Bm25,
            meaning: ScoreScale::Cosine,
        }
    }

    /// The generation that searches use; an empty one is made if there is none. Fails if the server
    /// is too old, or if the index was made by something else.
    async fn current(&self) -> Result<Generation, ServerError>;

    /// A new and empty generation that no search uses yet.
    async fn create(&self) -> Result<Generation, ServerError>;

    /// Has searches use this generation, and deletes the others.
    async fn activate(&self, generation: &Generation) -> Result<(), ServerError>;

    /// How far the tenant's documents follow the store.
    async fn watermark(
        &self,
        generation: &Generation,
        tenant: &Tenant,
    ) -> Result<Marked, ServerError>;

    /// Moves the watermark, unless another process has moved it since it was read; then the answer
    /// is `None`. A server that cannot compare moves it always.
    async fn mark(
        &self,
        generation: &Generation,
        tenant: &Tenant,
        from: &Marked,
        to: Watermark,
    ) -> Result<Option<Marked>, ServerError>;

    /// Writes documents. When it returns, they are durable and searches see them. No id occurs
    /// twice. A document that is newer than a change stays.
    async fn write(
        &self,
        generation: &Generation,
        tenant: &Tenant,
        changes: Vec<DocumentChange>,
    ) -> Result<(), ServerError>;

    /// How many documents the tenant has, expired ones included.
    async fn count(&self, generation: &Generation, tenant: &Tenant) -> Result<u64, ServerError>;

    /// The tenant's documents after this one, in an order that the server chooses. Fewer than the
    /// limit only at the end.
    async fn entries(
        &self,
        generation: &Generation,
        tenant: &Tenant,
        after: Option<&Id>,
        limit: usize,
    ) -> Result<Vec<Entry>, ServerError>;

    /// The vectors of this model that the documents of these records have, for a comparison with the
    /// store. `None` if the server does not return vectors.
    async fn vectors(
        &self,
        _generation: &Generation,
        _tenant: &Tenant,
        _model: &ModelId,
        _ids: &[Id],
    ) -> Result<Option<HashMap<Id, Vec<f32>>>, ServerError> {
        Ok(None)
    }

    /// The best documents of each arm.
    async fn find(
        &self,
        generation: &Generation,
        asked: &Question<'_>,
    ) -> Result<ServerAnswer, ServerError>;

    /// Speakers whose first word is among these, by name.
    async fn speakers(
        &self,
        generation: &Generation,
        asked: &Audience<'_>,
        words: &[&str],
    ) -> Result<Vec<String>, ServerError>;
}

/// The name that a server gives to one build of an index.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Generation(pub String);

/// How far an index follows a tenant of its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Watermark {
    /// The number of the newest change.
    pub seq: u64,
    /// The number of the newest vector that came after its record.
    pub embedded: u64,
}

/// A watermark as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Marked {
    pub watermark: Watermark,
    /// By which the server recognises the version that was read: two numbers of its own.
    pub token: Option<(u64, u64)>,
}

/// A change of one document.
#[derive(Debug, Clone, PartialEq)]
pub enum DocumentChange {
    Put(Box<Document>),
    /// The record has no version of this number or an earlier one.
    Delete {
        id: Id,
        seq: u64,
    },
}

impl DocumentChange {
    pub fn id(&self) -> &Id {
        match self {
            Self::Put(document) => &document.id,
            Self::Delete { id, .. } => id,
        }
    }

    /// Grows with every change of the record, and when a version of it gets its vector.
    pub fn version(&self) -> u64 {
        match self {
            Self::Put(document) => document.seq * 2 + u64::from(document.vector.is_some()),
            Self::Delete { seq, .. } => seq * 2,
        }
    }
}

/// A document that is in an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub id: Id,
    pub seq: u64,
}

/// Whose documents are asked for, at which time.
#[derive(Debug, Clone, Copy)]
pub struct Audience<'a> {
    pub tenant: &'a Tenant,
    pub filter: &'a Filter,
    pub now: Time,
}

/// What a server is asked to find.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    pub tenant: &'a Tenant,
    pub probe: &'a Probe,
    pub now: Time,
}

/// A document that an arm found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    pub id: Id,
    pub seq: u64,
    pub score: f32,
}

/// What a server found. An arm may name a document twice, if several models placed it; documents
/// whose score is not positive are not matches.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServerAnswer {
    pub words: Vec<Found>,
    pub meaning: Vec<Found>,
    /// The newest documents, if the probe has neither terms nor vectors.
    pub newest: Vec<Found>,
    pub statistics: Option<Statistics>,
}

/// Why a server did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// A rebuild has replaced the generation.
    #[error("the index was rebuilt")]
    Gone,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The index of a store in a search server.
pub struct ExternalIndex {
    store: Arc<dyn Replica>,
    server: Arc<dyn IndexServer>,
    /// The generation that was used last.
    generation: tokio::sync::Mutex<Option<Generation>>,
    /// Held while the index is brought up to the store.
    following: tokio::sync::Mutex<()>,
}

impl ExternalIndex {
    /// Nothing is asked of the server yet.
    pub fn new(store: Arc<dyn Replica>, server: Arc<dyn IndexServer>) -> Self {
        Self {
            store,
            server,
            generation: tokio::sync::Mutex::default(),
            following: tokio::sync::Mutex::default(),
        }
    }

    /// How messages name the index.
    pub fn place(&self) -> &str {
        self.server.place()
    }

    async fn generation(&self) -> Result<Generation, ServerError> {
        let mut known = self.generation.lock().await;
        if let Some(known) = &*known {
            return Ok(known.clone());
        }
        let current = self.server.current().await?;
        *known = Some(current.clone());
        Ok(current)
    }

    /// The result of work on the current generation; `None` if a rebuild has replaced it meanwhile,
    /// so that the work has to be done again.
    async fn settle<T>(&self, done: Result<T, ServerError>) -> Result<Option<T>, StoreError> {
        match done {
            Ok(done) => Ok(Some(done)),
            Err(ServerError::Store(error)) => Err(error),
            Err(ServerError::Gone) => {
                *self.generation.lock().await = None;
                Ok(None)
            }
        }
    }

    fn rebuilt_again(&self) -> StoreError {
        let what = "was rebuilt again and again meanwhile; try again";
        unavailable(self.place(), what, "rebuilt")
    }
}

/// How often a search begins again because of a rebuild.
const REBUILDS: usize = 3;

/// The error of a server that cannot be used now.
pub fn unavailable(
    place: &str,
    what: impl Into<String>,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> StoreError {
    StoreError::Unavailable {
        place: place.to_owned(),
        what: what.into(),
        source: source.into(),
    }
}
