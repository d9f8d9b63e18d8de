//! The search index of one tenant, in memory: words, vectors, and who said what after what.
//!
//! It is a cache of records and never the truth: a store fills it from what it keeps, and every
//! hit is fetched again before it is shown. Documents are numbered as they come; their numbers
//! follow their `seq`, so that a document is found by bisection.
//!
//! A message is understood by its neighbours: each of the two before and after it in its session
//! lends it a share of its words and of its nearness (the arithmetic stands in [`crate::search::rank`]).
//! That happens while a query is answered and costs no memory.

mod cache;
mod chain;
mod docs;
mod find;
mod follower;
mod population;
mod postings;
mod saved;
mod scratch;
mod terms;
mod told;

use std::collections::HashMap;

use crate::model::Time;
use crate::ports::embed::ModelId;
use crate::ports::{CodedVector, Embedding, StoreError};
use crate::search::vector::{Quantised, VectorError, VectorSet, quantise};

pub use cache::Cache;
pub use docs::Doc;
pub use find::NEIGHBOURS_FOUND;
pub use follower::{Cursor, Delta, Feed, TrackedIndex};
pub use population::{Population, Sampled};
pub use terms::{Terms, Text, hash};

/// Documents by which the middle of their vectors is known; below, none is needed.
const RECENTRE: usize = 4096;

/// A place that holds no document.
const NOBODY: u32 = u32::MAX;

/// A vector as a store keeps it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredVector {
    pub model: ModelId,
    pub vector: Quantised,
}

impl StoredVector {
    /// The vector in the form in which it is copied from store to store.
    pub fn coded(&self) -> CodedVector {
        CodedVector {
            model: self.model.clone(),
            scale: self.vector.scale,
            codes: self.vector.to_bytes(),
        }
    }
}

impl From<&CodedVector> for StoredVector {
    fn from(coded: &CodedVector) -> Self {
        let dimension = coded.model.dimension;
        Self {
            model: coded.model.clone(),
            vector: Quantised::from_bytes(&coded.codes, dimension, coded.scale),
        }
    }
}

/// The vector as it is kept.
pub fn stored(embedding: &Embedding) -> Result<StoredVector, StoreError> {
    let expected = embedding.model.dimension;
    if embedding.vector.len() != expected {
        let got = embedding.vector.len();
        return Err(wrong_vector(&VectorError::WrongDimension { expected, got }));
    }
    let vector = quantise(&embedding.vector).map_err(|error| wrong_vector(&error))?;
    Ok(StoredVector {
        model: embedding.model.clone(),
        vector,
    })
}

/// A vector that cannot be used is the embedder's mistake, and never stored.
pub fn wrong_vector(error: &VectorError) -> StoreError {
    StoreError::Invalid(crate::error::Invalid::new("vector", error.to_string()))
}

/// Bytes of a list, with what the allocator adds.
fn bytes_of_list<T>(list: &Vec<T>) -> usize {
    match list.capacity() {
        0 => 0,
        capacity => capacity * size_of::<T>() + 16,
    }
}

/// Bytes of a map, without what its keys and values point to. One slot in eight stays free, and
/// each has a byte of control.
fn bytes_of_map<K, V>(map: &HashMap<K, V>) -> usize {
    match map.capacity() {
        0 => 0,
        capacity => capacity * 8 / 7 * (size_of::<(K, V)>() + 1) + 32,
    }
}

/// One tenant's documents, ready to be searched.
#[derive(Debug, Clone, Default)]
pub struct Index {
    docs: docs::Docs,
    chain: chain::Chain,
    postings: postings::Postings,
    told: told::ToldDays,
    /// One set for each model; a document without a vector of a model has zeros there.
    vectors: HashMap<ModelId, VectorSet>,
    /// How large the sets were when their bits were last centred.
    centred: usize,
    /// Vectors that documents were given since.
    embedded: usize,
    /// Whether this index is made for one search.
    is_brief: bool,
    scratch: scratch::Scratches,
}

impl Index {
    /// An empty index.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty index for one search of few documents: its vectors have no sketches.
    pub fn for_one_search() -> Self {
        Self {
            is_brief: true,
            ..Self::default()
        }
    }

    /// How many documents there are, removed ones not counted.
    pub fn len(&self) -> usize {
        self.docs.alive()
    }

    /// Whether nothing can be found.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether so many documents were removed that a fresh index would be much smaller.
    pub fn is_stale(&self) -> bool {
        let removed = self.docs.len() - self.docs.alive();
        removed > 1000 && removed > self.docs.alive()
    }

    /// How many models its vectors are of.
    pub fn models(&self) -> usize {
        self.vectors.len()
    }

    /// About how many bytes it takes.
    pub fn bytes(&self) -> usize {
        let vectors: usize = self.vectors.values().map(VectorSet::bytes).sum();
        size_of::<Self>()
            + self.docs.bytes()
            + self.chain.bytes()
            + self.postings.bytes()
            + self.told.bytes()
            + bytes_of_map(&self.vectors)
            + vectors
            + self.scratch.bytes()
    }

    /// The `seq`s of its documents, oldest first.
    pub fn seqs(&self) -> Vec<u64> {
        (0..self.docs.len() as u32)
            .filter(|doc| self.docs.is_alive(*doc))
            .map(|doc| self.docs.seq(doc))
            .collect()
    }

    /// Adds a record. Records come in the order of their `seq`; one that is not newer than the
    /// newest is already here and is left out.
    pub fn add(
        &mut self,
        new: &Doc<'_>,
        terms: &Terms,
        vector: Option<&StoredVector>,
    ) -> Result<(), VectorError> {
        if new.seq <= self.docs.last_seq() && self.docs.len() > 0 {
            return Ok(());
        }
        // Before anything is added: a set that lacks a document would give every later vector to
        // the wrong one.
        vector.map_or(Ok(()), |stored| self.admit(stored))?;
        let doc = self.docs.push(new, terms);
        self.chain.push(&self.docs, doc);
        self.postings.push(doc, terms);
        self.told.push(doc, terms);
        self.push_vector(vector)
    }

    fn push_vector(&mut self, vector: Option<&StoredVector>) -> Result<(), VectorError> {
        for (model, set) in &mut self.vectors {
            match vector {
                Some(stored) if stored.model == *model => {
                    set.push_quantised(&stored.vector)?;
                }
                _ => {
                    set.push_quantised(&Quantised::nothing(model.dimension))?;
                }
            }
        }
        if self.docs.len() >= RECENTRE.max(self.centred.saturating_mul(8)) {
            self.recentre();
        }
        Ok(())
    }

    /// Gives a document a vector in place of the one it has, which another model may have made.
    pub fn embed(&mut self, seq: u64, stored: &StoredVector) -> Result<(), VectorError> {
        let Some(doc) = self.docs.of_seq(seq) else {
            return Ok(());
        };
        self.admit(stored)?;
        for (model, set) in &mut self.vectors {
            if *model == stored.model {
                set.replace(doc, &stored.vector)?;
            } else if set.has(doc) {
                set.replace(doc, &Quantised::nothing(model.dimension))?;
            }
        }
        self.embedded += 1;
        if self.embedded >= RECENTRE.max(self.docs.len() / 8) {
            self.recentre();
        }
        Ok(())
    }

    /// Drops the sets of models whose vectors were all replaced.
    fn drop_unused_models(&mut self) {
        let docs = self.docs.len() as u32;
        // Records are embedded anew oldest first, so that the last ones have an old vector longest.
        self.vectors
            .retain(|_, set| (0..docs).rev().any(|doc| set.has(doc)));
    }

    /// Checks a vector, and makes the set of its model if there is none yet.
    fn admit(&mut self, stored: &StoredVector) -> Result<(), VectorError> {
        if let Some(set) = self.vectors.get(&stored.model) {
            return set.check_quantised(&stored.vector);
        }
        let mut set = match self.is_brief {
            true => VectorSet::without_sketches(stored.model.dimension)?,
            false => VectorSet::new(stored.model.dimension)?,
        };
        set.check_quantised(&stored.vector)?;
        let nothing = Quantised::nothing(stored.model.dimension);
        for _ in 0..self.docs.len() {
            set.push_quantised(&nothing)?;
        }
        self.vectors.insert(stored.model.clone(), set);
        Ok(())
    }

    /// Fits the bits to the documents. A few thousand tell where the middle is as well as all of
    /// them, so this is done when there are enough, and seldom again.
    fn recentre(&mut self) {
        self.centred = self.docs.len();
        self.embedded = 0;
        for set in self.vectors.values_mut() {
            set.recentre();
        }
    }

    /// Takes a document out. Its words stay in the postings until the index is made anew, but it
    /// is no longer found.
    pub fn remove(&mut self, seq: u64) {
        if let Some(doc) = self.docs.of_seq(seq)
            && self.docs.kill(doc)
        {
            self.chain.unlink(&self.docs, doc);
        }
    }

    /// The `seq`s of up to `most` documents without a vector of this model, oldest first.
    pub fn lacking(&self, model: &ModelId, after: u64, most: usize) -> Vec<u64> {
        let set = self.vectors.get(model);
        (0..self.docs.len() as u32)
            .filter(|doc| self.docs.is_alive(*doc))
            .filter(|doc| set.is_none_or(|set| !set.has(*doc)))
            .map(|doc| self.docs.seq(doc))
            .filter(|seq| *seq > after)
            .take(most)
            .collect()
    }

    /// Whether the document is here and has not expired.
    fn is_live(&self, doc: u32, now: Time) -> bool {
        self.docs.is_alive(doc) && !self.docs.has_expired(doc, now)
    }
}

#[cfg(test)]
mod tests;
