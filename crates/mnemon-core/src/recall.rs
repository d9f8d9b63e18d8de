//! The port to whatever finds records: the part of a store that searches.

use async_trait::async_trait;

use crate::embed::ModelId;
use crate::{Filter, Grant, Id, Record, StoreError, Time};

/// What makes a store searchable. What is found is a hint: the caller fetches it before it shows
/// it, so that nothing deleted, expired or foreign appears.
#[async_trait]
pub trait Recall: Send + Sync {
    /// The best records by words and the best by meaning, each with the scores of both.
    async fn find(&self, grant: &Grant, probe: &Probe) -> Result<Vec<Candidate>, StoreError>;

    /// Who speaks in the records, the most talkative first; at most [`crate::limits::SPEAKERS`].
    async fn speakers(&self, grant: &Grant) -> Result<Vec<String>, StoreError>;

    /// Live records without a vector of this model, written after `after`, in order of writing.
    async fn lacking(
        &self,
        grant: &Grant,
        model: &ModelId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError>;

    /// Gives records, named by their `seq`, vectors. One that has been changed since is left out.
    /// How many were taken.
    async fn embed(
        &self,
        grant: &Grant,
        vectors: Vec<(u64, Embedding)>,
    ) -> Result<usize, StoreError>;
}

/// A vector, and who made it.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    pub model: ModelId,
    pub vector: Vec<f32>,
}

/// What to look for. A probe with neither words nor a place finds the newest that its filter means.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Probe {
    pub filter: Filter,
    /// Analysed words by their number ([`crate::index::hash`]), with their weights.
    pub terms: Vec<(u32, f32)>,
    /// The query's place in each model that may have placed records.
    pub vectors: Vec<Embedding>,
    /// How many of the best each arm contributes.
    pub depth: usize,
    /// Whether whoever asks waits for this and for nothing else. A store may then answer on the
    /// caller's thread, which is sooner than waking another one; several probes that are asked
    /// together are sooner on threads of their own.
    pub alone: bool,
}

/// A record that an arm found, with what ranking needs to know of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    pub id: Id,
    pub seq: u64,
    /// How well its words and its neighbours' words match.
    pub words: f32,
    /// How near it and its neighbours are in meaning, from 0 to 1.
    pub meaning: f32,
    /// How near it is by itself.
    pub cosine: f32,
    pub created: Time,
    pub importance: f32,
    /// The share of its words that stand in questions.
    pub asking: f32,
    /// How many words it has.
    pub length: f32,
    pub speaker: Option<String>,
}
