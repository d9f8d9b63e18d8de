//! Searching an image: the index that follows it.

use std::collections::{HashMap, HashSet};

use super::Image;
use crate::embed::ModelId;
use crate::index::{Doc, Index, StoredVector, Terms};
use crate::vector::{VectorError, quantise};
use crate::{Candidate, Embedding, Grant, Id, Probe, Record, StoreError, limits};

/// An index over an image. It lives beside the image and catches up when it is asked.
#[derive(Debug, Default)]
pub struct Finder {
    index: Index,
    /// The newest change that was looked at.
    followed: u64,
    /// Vectors that came with a batch, until their records are indexed.
    waiting: HashMap<Id, Embedding>,
}

impl Finder {
    /// Vectors for records that are about to be written.
    pub fn expect(&mut self, vectors: Vec<(Id, Embedding)>) {
        self.waiting.extend(vectors);
    }

    /// The best records by words and by meaning.
    pub fn find(
        &mut self,
        image: &Image,
        grant: &Grant,
        probe: &Probe,
    ) -> Result<Vec<Candidate>, StoreError> {
        self.follow(image)?;
        let within: Option<HashSet<u64>> = probe.filter.needs_records().then(|| {
            let current = image.current().map(|(_, record)| record);
            let meant = current.filter(|record| probe.filter.matches(record));
            meant.map(|record| record.seq).collect()
        });
        let found = self.index.find(probe, grant.now(), within.as_ref());
        found.map_err(|error| wrong_vector(&error))
    }

    /// Who speaks in the records.
    pub fn speakers(&mut self, image: &Image) -> Result<Vec<String>, StoreError> {
        self.follow(image)?;
        Ok(self.index.speakers(limits::SPEAKERS))
    }

    /// Live records without a vector of this model.
    pub fn lacking(
        &mut self,
        image: &Image,
        grant: &Grant,
        model: &ModelId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        self.follow(image)?;
        let seqs = self.index.lacking(model, after, limit.min(limits::PAGE));
        let records = seqs.into_iter().filter_map(|seq| image.by_seq(seq));
        Ok(records
            .filter(|record| record.is_live(grant.now()))
            .cloned()
            .collect())
    }

    /// Gives records vectors.
    pub fn embed(
        &mut self,
        image: &Image,
        vectors: Vec<(u64, Embedding)>,
    ) -> Result<usize, StoreError> {
        self.follow(image)?;
        let mut taken = 0;
        for (seq, embedding) in vectors {
            if image.by_seq(seq).is_some() {
                let stored = stored(&embedding)?;
                let embedded = self.index.embed(seq, &stored);
                embedded.map_err(|error| wrong_vector(&error))?;
                taken += 1;
            }
        }
        Ok(taken)
    }

    /// Brings the index up to the image: adds what is new, takes out what is gone.
    fn follow(&mut self, image: &Image) -> Result<(), StoreError> {
        if self.followed == image.last_seq() && self.index.len() == image.len() {
            return Ok(());
        }
        if self.index.is_stale() || self.followed > image.last_seq() {
            self.index = Index::new();
            self.followed = 0;
        }
        for record in image.written_after(self.followed) {
            let vector = self.waiting.remove(&record.id);
            let vector = vector.map(|embedding| stored(&embedding)).transpose()?;
            let added = self
                .index
                .add(&Doc::of(record), &Terms::of(record), vector.as_ref());
            added.map_err(|error| wrong_vector(&error))?;
        }
        self.waiting.clear();
        self.followed = image.last_seq();
        if self.index.len() > image.len() {
            for seq in self.index.seqs() {
                if image.by_seq(seq).is_none() {
                    self.index.remove(seq);
                }
            }
        }
        Ok(())
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
    StoreError::Invalid(crate::Invalid::new("vector", error.to_string()))
}
