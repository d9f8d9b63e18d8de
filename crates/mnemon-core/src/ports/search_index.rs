//! The port to an index that finds records.
//!
//! An index finds, a [`Store`] keeps. One object may be both: the stores of this workspace have a
//! built-in index each ([`crate::search::index`]). Another one may be a search engine that is fed from a
//! store. [`IndexCapabilities`] tell the engine how much of the work an index leaves to it.

use std::sync::Arc;

use async_trait::async_trait;

use crate::model::{Asked, Filter, Grant, Id, Tenant, Time, Told, Viewer};
use crate::ports::embed::ModelId;
use crate::ports::{Store, StoreError};

/// An index over the records of a store.
///
/// A match is a hint: the engine fetches the record from the store before it shows it, so that an
/// index that is late shows nothing deleted, expired or foreign. `mnemon-testkit` has the suite
/// that every index must pass.
#[async_trait]
pub trait SearchIndex: Send + Sync {
    /// What this index does by itself. Constant for its life.
    fn capabilities(&self) -> IndexCapabilities;

    /// The best [`Probe::depth`] matches of each arm among the records of the grant's tenant. A
    /// probe with neither terms nor vectors matches the newest records that its filter means,
    /// newest first.
    async fn find(&self, grant: &Grant, probe: &Probe) -> Result<Answer, StoreError>;

    /// Speakers of live records of this audience ([`Filter::audience_only`]) whose name begins with
    /// one of these words, which are in lower case: by name, at most
    /// [`limits::SPEAKERS`](crate::model::limits::SPEAKERS). An index that knows none leaves the
    /// names of a query among its words.
    async fn speakers(
        &self,
        grant: &Grant,
        audience: &Filter,
        words: &[&str],
    ) -> Result<Vec<String>, StoreError> {
        let _ = (grant, audience, words);
        Ok(Vec::new())
    }

    /// How much memory the index takes, for metrics. It reads no records, and so may be late.
    fn usage(&self) -> IndexUsage {
        IndexUsage::default()
    }
}

/// The memory that an index takes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IndexUsage {
    /// The tenants whose index is in memory.
    pub tenants: Vec<TenantIndex>,
    /// Searches that found the index in memory.
    pub hits: u64,
    /// Searches that had to load it.
    pub misses: u64,
}

/// The index of one tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantIndex {
    pub tenant: Tenant,
    pub records: usize,
    pub bytes: usize,
}

/// A store, and the index that searches it.
#[derive(Clone)]
pub struct Backend {
    pub store: Arc<dyn Store>,
    pub index: Arc<dyn SearchIndex>,
}

impl<S: Store + SearchIndex + 'static> From<Arc<S>> for Backend {
    fn from(both: Arc<S>) -> Self {
        Self {
            store: both.clone(),
            index: both,
        }
    }
}

/// What an index does by itself; the engine plans around the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexCapabilities {
    /// The scores contain what the records' neighbours in their sessions lend them. Otherwise the
    /// engine fetches the neighbours of the best matches and computes the scores
    /// ([`crate::search::rank::score_in_context`]).
    pub neighbour_context: bool,
    /// The filters that are applied before the best matches are chosen. For others the engine asks
    /// for more matches and filters the records that it fetches.
    pub filters: IndexFilters,
    /// Records that were deleted or replaced, or that have expired, are never matched. Otherwise
    /// the engine asks for more matches than it needs.
    pub deletes_at_once: bool,
    /// How the scores of the words arm are scaled.
    pub words: ScoreScale,
    /// How the scores of the meaning arm are scaled.
    pub meaning: ScoreScale,
}

impl IndexCapabilities {
    /// The index of [`crate::search::index`] does everything.
    pub const BUILT_IN: Self = Self {
        neighbour_context: true,
        filters: IndexFilters::ALL,
        deletes_at_once: true,
        words: ScoreScale::Bm25,
        meaning: ScoreScale::Cosine,
    };
}

/// How an arm's scores are scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScoreScale {
    Bm25,
    Cosine,
    /// Only the order means something: the arms are fused by rank.
    Unknown,
}

/// Which parts of a [`Filter`] an index applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexFilters {
    /// User, agent and session.
    pub owner: bool,
    /// Who may see the record.
    pub viewer: bool,
    /// Scopes, kinds and namespaces.
    pub sorts: bool,
    pub tags: bool,
    /// When the record was created.
    pub time: bool,
    /// Metadata, source, flow, node and provenance.
    pub content: bool,
}

impl IndexFilters {
    /// Every part.
    pub const ALL: Self = Self {
        owner: true,
        viewer: true,
        sorts: true,
        tags: true,
        time: true,
        content: true,
    };
    /// No part.
    pub const NONE: Self = Self {
        owner: false,
        viewer: false,
        sorts: false,
        tags: false,
        time: false,
        content: false,
    };

    /// Whether all that the filter asks for is applied inside the index.
    pub fn cover(&self, filter: &Filter) -> bool {
        let owner = &filter.owner;
        let owned = owner.user.is_some() || owner.agent.is_some() || owner.session.is_some();
        let sorted =
            !(filter.scopes.is_empty() && filter.kinds.is_empty() && filter.namespaces.is_empty());
        (self.owner || !owned)
            && (self.viewer || filter.viewer == Viewer::Tenant)
            && (self.sorts || !sorted)
            && (self.tags || filter.tags.is_empty())
            && (self.time || (filter.since.is_none() && filter.until.is_none()))
            && (self.content || !filter.needs_records())
    }
}

/// A vector, and the model that made it.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    pub model: ModelId,
    pub vector: Vec<f32>,
}

/// What to look for.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    pub filter: Filter,
    /// Analysed terms; those of the records are made by the same analysis ([`crate::search::text`]).
    pub terms: Vec<QueryTerm>,
    /// How many of the terms are enough, the rarest of those that documents have. An index may look
    /// for more.
    pub rarest: Option<usize>,
    /// Terms of similar meaning, whose occurrences count in part as those of a term above. An index
    /// may leave them out.
    pub similar: Vec<SimilarTerm>,
    /// The query's vector by each model that may have embedded records.
    pub vectors: Vec<Embedding>,
    /// The days that are asked for: records that tell of them, or are of a day that is asked for,
    /// are matches even if no arm finds them.
    pub asked: Vec<Asked>,
    /// Whether a question lends twice its words to the record after it.
    pub after_question: bool,
    /// How many of the best each arm contributes.
    pub depth: usize,
    /// Whether the caller waits for this probe and nothing else. An index may then answer on the
    /// caller's thread, which is sooner than waking another one (two thread switches take 0.2 ms,
    /// a search of 10,000 records 0.3 ms). Probes that run at the same time are sooner on threads
    /// of their own.
    pub may_run_inline: bool,
}

impl Probe {
    /// A probe for the newest records that the filter means.
    pub fn new(filter: Filter, depth: usize) -> Self {
        Self {
            filter,
            terms: Vec::new(),
            rarest: None,
            similar: Vec::new(),
            vectors: Vec::new(),
            asked: Vec::new(),
            after_question: true,
            depth,
            may_run_inline: false,
        }
    }
}

/// An analysed term of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryTerm {
    pub text: String,
    pub weight: f32,
    pub role: TermRole,
}

/// A term that means nearly the same as a term of the query.
#[derive(Debug, Clone, PartialEq)]
pub struct SimilarTerm {
    /// The text of the [`QueryTerm`].
    pub of: String,
    pub text: String,
    /// How much of an occurrence of the query's term an occurrence of this one is, from 0 to 1.
    pub similarity: f32,
}

/// What a term stands for in the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TermRole {
    /// A word that the records should contain.
    Word,
    /// A part of the name of a speaker. An index with a field for speakers may look there, too.
    Speaker,
}

/// What an index found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answer {
    /// Each record once, whichever arms found it.
    pub matches: Vec<Match>,
    /// For scores in context; not needed from an index that applies neighbour context. Without
    /// them the engine estimates them from the matches.
    pub statistics: Option<Statistics>,
    /// The cosine of records that were not chosen for it. Without it ranking assumes what
    /// is typical.
    pub background: Option<Background>,
}

/// The distribution of the cosine between a query and records that do not answer it: a cosine is
/// evidence as far as it stands out of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Background {
    pub mean: f32,
    /// The standard deviation.
    pub deviation: f32,
    /// How many records it was measured on.
    pub sample: usize,
}

/// A record that an arm found.
#[derive(Debug, Clone, PartialEq)]
pub struct Match {
    pub id: Id,
    /// The score of the words arm; `None` if it did not find the record.
    pub words: Option<f32>,
    /// The score of the meaning arm; `None` if it did not find the record.
    pub meaning: Option<f32>,
    /// What ranking needs to know of the record. Where it is not given the record is fetched.
    pub features: Option<Features>,
}

/// What ranking needs to know of a record besides the scores of the arms.
#[derive(Debug, Clone, PartialEq)]
pub struct Features {
    pub seq: u64,
    /// How near the record itself is in meaning, from 0 to 1, without its neighbours.
    pub cosine: f32,
    /// The share of the query's information (the idf of its terms) that the record has, from 0 to
    /// 1. A term that only a neighbour has counts as much of it as the neighbour lends.
    pub coverage: f32,
    pub created: Time,
    pub importance: f32,
    /// The share of its words that stand in questions.
    pub asking: f32,
    /// How many words it has, stop words not counted.
    pub length: f32,
    pub speaker: Option<String>,
    pub traits: Traits,
    /// The days that it tells of; may be left out if the probe asks for none.
    pub told: Vec<Told>,
}

/// What a record says beside its words, a bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traits(pub(crate) u8);

/// What BM25 needs to know of all documents.
#[derive(Debug, Clone, PartialEq)]
pub struct Statistics {
    /// How many there are.
    pub documents: usize,
    /// How many words a document has on average, stop words not counted.
    pub mean_length: f32,
    /// How many documents contain each term of the probe, in the probe's order.
    pub documents_with: Vec<usize>,
}
