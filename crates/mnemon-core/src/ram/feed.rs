//! Searching an image: its vectors, and the index that follows it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::Image;
use crate::model::{Filter, Grant, Id, Record};
use crate::ports::embed::ModelId;
use crate::ports::{Answer, Batch, EmbeddedPage, Embedding, Op, Probe, StoreError};
use crate::search::index::{Cursor, Delta, Doc, Feed, StoredVector, Terms, TrackedIndex};
use crate::search::index::{stored, wrong_vector};

/// The vectors of an image's records, and the index over both. It lives beside the image, and
/// follows when it is asked.
#[derive(Debug, Default)]
pub struct ImageIndex {
    tracked: TrackedIndex,
    vectors: Vectors,
}

/// A vector that came with a batch, and a digest of the content it was made of: by the time it is
/// handed over, the record may have another.
#[derive(Debug)]
pub struct Arrival {
    id: Id,
    content: u64,
    vector: StoredVector,
}

/// The vectors of records that are there, by `seq`, each with its number.
#[derive(Debug, Default)]
struct Vectors {
    of: BTreeMap<u64, (u64, StoredVector)>,
    newest: u64,
}

impl Vectors {
    fn insert(&mut self, image: &Image, seq: u64, vector: StoredVector) {
        self.newest += 1;
        self.of.insert(seq, (self.newest, vector));
        // Vectors of records that are gone are at most as many as the others.
        if self.of.len() > 2 * image.len() {
            self.of.retain(|seq, _| image.by_seq(*seq).is_some());
        }
    }
}

struct ImageFeed<'a> {
    image: &'a Image,
    vectors: &'a Vectors,
}

impl Feed for ImageFeed<'_> {
    fn newest(&self) -> Cursor {
        Cursor {
            seq: self.image.last_seq(),
            embedded: self.vectors.newest,
            removed: self.image.removals().newest(),
            records: self.image.len(),
        }
    }

    fn since(&self, cursor: Cursor, delta: &mut Delta<'_>) -> Result<(), StoreError> {
        for record in self.image.written_after(cursor.seq) {
            let vector = self.vectors.of.get(&record.seq).map(|(_, vector)| vector);
            delta.add(&Doc::of(record), &Terms::of(record), vector)?;
        }
        if cursor.embedded < self.vectors.newest {
            for (seq, (number, vector)) in self.vectors.of.range(..=cursor.seq) {
                if *number > cursor.embedded {
                    delta.embed(*seq, vector)?;
                }
            }
        }
        let removed = self.image.removals().since(cursor.removed);
        removed.for_each(|seq| delta.remove(seq));
        Ok(())
    }

    fn present(&self) -> Result<Vec<u64>, StoreError> {
        Ok(self.image.seqs().collect())
    }
}

impl ImageIndex {
    /// Takes the vectors out of a batch that is about to be written; an error if one cannot be
    /// used. A record that the batch puts twice gets its vector later.
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

    /// Keeps the vectors of records that were written, unless they say something else by now.
    pub fn keep(&mut self, image: &Image, arrivals: Vec<Arrival>) {
        for arrival in arrivals {
            let record = image.record(&arrival.id);
            if let Some(record) = record.filter(|now| digest(&now.content) == arrival.content) {
                self.vectors.insert(image, record.seq, arrival.vector);
            }
        }
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
        let index = self.tracked.index();
        let found = index.find(probe, grant.now(), within.as_ref());
        found.map_err(|error| wrong_vector(&error))
    }

    /// Speakers of this audience by their first words.
    pub fn speakers(
        &mut self,
        image: &Image,
        grant: &Grant,
        audience: &Filter,
        words: &[impl AsRef<str>],
    ) -> Result<Vec<String>, StoreError> {
        self.follow(image)?;
        let index = self.tracked.index();
        Ok(index.speakers(audience, words, grant.now()))
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
        let most = limit.min(grant.limits().page);
        let mut found = Vec::new();
        let mut after = after;
        // Records that have expired do not count, or they would keep those after them from view.
        loop {
            let seqs = self.tracked.index().lacking(model, after, most);
            let records = seqs.iter().filter_map(|seq| image.by_seq(*seq));
            let live = records.filter(|record| record.is_live(grant.now()));
            found.extend(live.take(most - found.len()).cloned());
            match seqs.last() {
                Some(last) if found.len() < most => after = *last,
                _ => return Ok(found),
            }
        }
    }

    /// Gives records vectors.
    pub fn embed(
        &mut self,
        image: &Image,
        vectors: Vec<(u64, Embedding)>,
    ) -> Result<usize, StoreError> {
        let mut taken = 0;
        for (seq, embedding) in vectors {
            if image.by_seq(seq).is_some() {
                self.vectors.insert(image, seq, stored(&embedding)?);
                taken += 1;
            }
        }
        Ok(taken)
    }

    /// Records that got a vector after this number, by its number.
    pub(super) fn embedded_after(&self, image: &Image, after: u64, limit: usize) -> EmbeddedPage {
        let vectors = self.vectors.of.iter();
        let mut later: Vec<(u64, &Record, &StoredVector)> = vectors
            .filter(|(_, (number, _))| *number > after)
            .filter_map(|(seq, (number, vector))| Some((*number, image.by_seq(*seq)?, vector)))
            .collect();
        later.sort_unstable_by_key(|(number, ..)| *number);
        let more = later.len() > limit;
        later.truncate(limit);
        let last = later.last().map(|(number, ..)| *number);
        let records = later.into_iter();
        EmbeddedPage {
            records: records
                .map(|(_, record, vector)| (record.clone(), vector.coded()))
                .collect(),
            reached: last.filter(|_| more).unwrap_or(self.vectors.newest),
            more,
        }
    }

    /// Brings the index up to the image.
    fn follow(&mut self, image: &Image) -> Result<(), StoreError> {
        let feed = ImageFeed {
            image,
            vectors: &self.vectors,
        };
        if self.tracked.has_followed(&feed) {
            return Ok(());
        }
        self.tracked.follow(&feed)?;
        if self.tracked.index().is_stale()
            && let Ok(compacted) = self.tracked.compacted()
        {
            self.tracked = compacted;
        }
        Ok(())
    }
}

fn digest(content: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Ctx, Policy, Right, Tenant, Time};
    use crate::ports::{SearchIndex, Store};
    use crate::ram::Ram;

    fn note(name: &str, content: &str) -> (Record, Grant) {
        let ctx = Ctx::new(Tenant::default(), "test", Time::EPOCH);
        let grant = Policy::default().check(&ctx, Right::Write).unwrap();
        (Record::note(name.parse().unwrap(), &ctx, content), grant)
    }

    fn embedding() -> Embedding {
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
            vectors: vec![embedding()],
            depth: 10,
            ..Probe::new(crate::model::Filter::all_of_tenant(), 0)
        };
        let found = futures::executor::block_on(store.find(grant, &probe));
        found.unwrap().matches.len()
    }

    fn put(store: &Ram, name: &str, content: &str, with_vector: bool) {
        let (record, grant) = note(name, content);
        let mut batch = Batch::of(Op::put(record));
        if with_vector {
            batch.vectors = vec![(name.parse().unwrap(), embedding())];
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
    fn an_index_that_is_compacted_keeps_the_vectors() {
        let (store, (_, grant)) = (Ram::new(), note("a", ""));
        put(&store, "a", "tea", true);
        for number in 0..1200 {
            put(&store, "b", &number.to_string(), false);
            assert_eq!(near(&store, &grant), 1);
        }
    }

    #[test]
    fn vectors_of_records_that_are_never_searched_do_not_pile_up() {
        let (mut image, mut index) = (Image::default(), ImageIndex::default());
        for number in 0..100 {
            let (record, grant) = note("a", &number.to_string());
            let mut batch = Batch::of(Op::put(record));
            batch.vectors = vec![("a".parse().unwrap(), embedding())];
            let arrivals = ImageIndex::arrivals(&mut batch).unwrap();
            image.commit(&grant, batch).unwrap();
            index.keep(&image, arrivals);
        }
        assert!(index.vectors.of.len() <= 2, "{}", index.vectors.of.len());
    }
}
