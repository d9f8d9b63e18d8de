//! Searching an image: the index that follows it.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::Image;
use crate::embed::ModelId;
use crate::index::{Doc, Index, StoredVector, Terms};
use crate::vector::{VectorError, quantise};
use crate::{Answer, Batch, Embedding, Grant, Id, Op, Probe, Record, StoreError, limits};

/// An index over an image. It lives beside the image and catches up when it is asked.
#[derive(Debug, Default)]
pub struct Finder {
    index: Index,
    /// The newest change that was looked at.
    followed: u64,
    /// Vectors that came with a batch, until their records are indexed.
    waiting: HashMap<Id, Arrival>,
}

/// A vector on its way to its record, with the content it was made of: by the time the record is
/// indexed, it may say something else.
#[derive(Debug)]
pub struct Arrival {
    id: Id,
    content: u64,
    vector: StoredVector,
}

impl Finder {
    /// Takes the vectors out of a batch that is about to be written; an error if one cannot be
    /// used. What the batch puts twice gets its vector later.
    pub fn arrivals(batch: &mut Batch) -> Result<Vec<Arrival>, StoreError> {
        let mut puts: HashMap<&Id, Option<u64>> = HashMap::new();
        for op in &batch.ops {
            if let Op::Put { record, .. } = op {
                let digest = digest(&record.content);
                puts.entry(&record.id)
                    .and_modify(|known| *known = None)
                    .or_insert(Some(digest));
            }
        }
        let mut arrivals = Vec::with_capacity(batch.vectors.len());
        for (id, embedding) in std::mem::take(&mut batch.vectors) {
            let vector = stored(&embedding)?;
            if let Some(Some(content)) = puts.get(&id).copied() {
                arrivals.push(Arrival {
                    id,
                    content,
                    vector,
                });
            }
        }
        Ok(arrivals)
    }

    /// Vectors of records that were written.
    pub fn expect(&mut self, arrivals: Vec<Arrival>) {
        let arrivals = arrivals.into_iter();
        self.waiting
            .extend(arrivals.map(|arrival| (arrival.id.clone(), arrival)));
    }

    /// The best records by words and by meaning.
    pub fn find(
        &mut self,
        image: &Image,
        grant: &Grant,
        probe: &Probe,
    ) -> Result<Answer, StoreError> {
        self.follow(image)?;
        let within: Option<HashSet<u64>> = probe.filter.needs_records().then(|| {
            let current = image.current().map(|(_, record)| record);
            let meant = current.filter(|record| probe.filter.matches(record));
            meant.map(|record| record.seq).collect()
        });
        let found = self.index.find(probe, grant.now(), within.as_ref());
        found.map_err(|error| wrong_vector(&error))
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
        let mut old = Index::new();
        if self.index.is_stale() || self.followed > image.last_seq() {
            // Nobody else keeps the vectors.
            old = std::mem::take(&mut self.index);
            self.followed = 0;
        }
        for record in image.written_after(self.followed) {
            let arrived = self.waiting.remove(&record.id);
            let arrived = arrived.filter(|arrival| arrival.content == digest(&record.content));
            let vector = arrived.map(|arrival| arrival.vector);
            let added = self
                .index
                .add(&Doc::of(record), &Terms::of(record), vector.as_ref());
            added.map_err(|error| wrong_vector(&error))?;
            for kept in old.vectors_of(record.seq) {
                let embedded = self.index.embed(record.seq, &kept);
                embedded.map_err(|error| wrong_vector(&error))?;
            }
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

fn digest(content: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    hasher.finish()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ram::Ram;
    use crate::{Ctx, Policy, Right, SearchIndex, Store, Tenant, Time};

    fn note(name: &str, content: &str) -> (Record, Grant) {
        let ctx = Ctx::new(Tenant::default(), "test", Time::EPOCH);
        let grant = Policy::default().check(&ctx, Right::Write).unwrap();
        (Record::note(name.parse().unwrap(), &ctx, content), grant)
    }

    fn place() -> Embedding {
        let model = ModelId {
            name: "m".to_owned(),
            dimension: 2,
        };
        Embedding {
            model,
            vector: vec![1.0, 0.0],
        }
    }

    fn near(store: &Ram, grant: &Grant) -> usize {
        let probe = Probe {
            vectors: vec![place()],
            depth: 10,
            ..Probe::default()
        };
        let found = futures::executor::block_on(store.find(grant, &probe));
        found.unwrap().matches.len()
    }

    fn put(store: &Ram, name: &str, content: &str, placed: bool) {
        let (record, grant) = note(name, content);
        let mut batch = Batch::of(Op::put(record));
        if placed {
            batch.vectors = vec![(name.parse().unwrap(), place())];
        }
        futures::executor::block_on(store.apply(&grant, batch)).unwrap();
    }

    #[test]
    fn a_vector_is_not_given_to_a_later_version() {
        let (store, (_, grant)) = (Ram::new(), note("a", ""));
        put(&store, "a", "tea", true);
        put(&store, "a", "coffee", false);
        assert_eq!(near(&store, &grant), 0);
        put(&store, "a", "tea", true);
        assert_eq!(near(&store, &grant), 1);
    }

    #[test]
    fn an_index_that_is_made_anew_keeps_the_vectors() {
        let (store, (_, grant)) = (Ram::new(), note("a", ""));
        put(&store, "a", "tea", true);
        for number in 0..1200 {
            put(&store, "b", &number.to_string(), false);
            assert_eq!(near(&store, &grant), 1);
        }
    }
}
