use std::cell::Cell;
use std::collections::BTreeMap;

use super::*;
use crate::model::{Ctx, Record, Tenant, Time};
use crate::ports::embed::ModelId;
use crate::ports::{Embedding, Probe};
use crate::search::vector::quantise;

/// A store that counts what it is asked for.
#[derive(Default)]
struct FakeStore {
    newest: Cursor,
    records: BTreeMap<u64, Record>,
    /// By number: the record's `seq` and its vector.
    vectors: BTreeMap<u64, (u64, StoredVector)>,
    /// By number.
    removals: BTreeMap<u64, u64>,
    added: Cell<usize>,
    embedded: Cell<usize>,
    compared: Cell<usize>,
}

impl FakeStore {
    fn put(&mut self, seq: u64) {
        let ctx = Ctx::new(Tenant::default(), "test", Time::EPOCH);
        let mut record = Record::note(format!("r{seq}").parse().unwrap(), &ctx, "tea");
        record.seq = seq;
        self.records.insert(seq, record);
        self.newest.seq = self.newest.seq.max(seq);
        self.newest.records = self.records.len();
    }

    fn remove(&mut self, seq: u64) {
        self.records.remove(&seq);
        self.newest.records = self.records.len();
        self.newest.removed += 1;
        self.removals.insert(self.newest.removed, seq);
    }

    fn embed(&mut self, seq: u64, model: &str) {
        self.newest.embedded += 1;
        let vector = stored(model);
        self.vectors.insert(self.newest.embedded, (seq, vector));
    }

    /// Follows, and says how many records, vectors and whole comparisons that took.
    fn follow(&self, index: &mut TrackedIndex) -> [usize; 3] {
        index.follow(self).unwrap();
        assert!(index.has_followed(self));
        assert_eq!(
            index.index().seqs(),
            self.records.keys().copied().collect::<Vec<_>>()
        );
        [&self.added, &self.embedded, &self.compared].map(Cell::take)
    }
}

impl Feed for FakeStore {
    fn newest(&self) -> Cursor {
        self.newest
    }

    fn since(&self, cursor: Cursor, delta: &mut Delta<'_>) -> Result<(), StoreError> {
        for (_, record) in self.records.range(cursor.seq + 1..) {
            self.added.set(self.added.get() + 1);
            delta.add(&Doc::of(record), &Terms::of(record), None)?;
        }
        for (_, (seq, vector)) in self.vectors.range(cursor.embedded + 1..) {
            self.embedded.set(self.embedded.get() + 1);
            delta.embed(*seq, vector)?;
        }
        let removed = self.removals.range(cursor.removed + 1..);
        removed.for_each(|(_, seq)| delta.remove(*seq));
        Ok(())
    }

    fn present(&self) -> Result<Vec<u64>, StoreError> {
        self.compared.set(self.compared.get() + 1);
        Ok(self.records.keys().copied().collect())
    }
}

fn model(name: &str) -> ModelId {
    ModelId {
        name: name.to_owned(),
        dimension: 2,
    }
}

fn stored(name: &str) -> StoredVector {
    StoredVector {
        model: model(name),
        vector: quantise(&[1.0, 0.0]).unwrap(),
    }
}

fn near(index: &TrackedIndex, name: &str) -> Vec<u64> {
    let probe = Probe {
        vectors: vec![Embedding {
            model: model(name),
            vector: vec![1.0, 0.0],
        }],
        depth: 100,
        ..Probe::new(crate::model::Filter::all_of_tenant(), 0)
    };
    let found = index.index().find(&probe, Time::EPOCH, None).unwrap();
    let features = found.matches.iter().flat_map(|found| &found.features);
    let mut seqs: Vec<u64> = features.map(|features| features.seq).collect();
    seqs.sort_unstable();
    seqs
}

#[test]
fn following_costs_what_changed() {
    let (mut store, mut index) = (FakeStore::default(), TrackedIndex::default());
    (1..=100).for_each(|seq| store.put(seq));
    assert_eq!(store.follow(&mut index), [100, 0, 0]);
    store.put(101);
    store.remove(7);
    assert_eq!(store.follow(&mut index), [1, 0, 0]);
    store.embed(3, "one");
    store.embed(4, "one");
    assert_eq!(store.follow(&mut index), [0, 2, 0]);
    assert_eq!(near(&index, "one"), [3, 4]);
    store.embed(3, "two");
    assert_eq!(store.follow(&mut index), [0, 1, 0]);
    assert_eq!(near(&index, "one"), [4], "a record has one vector");
    assert_eq!(near(&index, "two"), [3]);
}

#[test]
fn an_index_behind_the_log_of_removals_compares_all_numbers() {
    let (mut store, mut index) = (FakeStore::default(), TrackedIndex::default());
    (1..=10).for_each(|seq| store.put(seq));
    store.follow(&mut index);
    (2..=6).for_each(|seq| store.remove(seq));
    store.removals.pop_first();
    assert_eq!(store.follow(&mut index), [0, 0, 1]);
    store.remove(8);
    assert_eq!(store.follow(&mut index), [0, 0, 0]);
}

#[test]
fn a_store_that_was_put_back_is_read_anew() {
    let (mut store, mut index) = (FakeStore::default(), TrackedIndex::default());
    (1..=10).for_each(|seq| store.put(seq));
    store.follow(&mut index);
    let mut restored = FakeStore::default();
    (1..=5).for_each(|seq| restored.put(seq));
    assert_eq!(restored.follow(&mut index), [5, 0, 0]);
    // A record turns up between others, as in a log that somebody has joined from two.
    restored.put(9);
    restored.follow(&mut index);
    restored.put(7);
    assert_eq!(restored.follow(&mut index), [7, 0, 1]);
}

#[test]
fn a_wrong_count_of_records_is_not_looked_into_twice() {
    let (mut store, mut index) = (FakeStore::default(), TrackedIndex::default());
    (1..=10).for_each(|seq| store.put(seq));
    store.newest.records = 11;
    assert_eq!(store.follow(&mut index), [10, 0, 1]);
    assert!(index.has_followed(&store));
}

#[test]
fn a_compacted_index_answers_as_before() {
    let (mut store, mut index) = (FakeStore::default(), TrackedIndex::default());
    (1..=10).for_each(|seq| store.put(seq));
    (1..=10).for_each(|seq| store.embed(seq, "one"));
    (2..=9).for_each(|seq| store.remove(seq));
    store.follow(&mut index);
    let mut compacted = index.compacted().unwrap();
    assert_eq!(near(&compacted, "one"), near(&index, "one"));
    assert!(compacted.index().bytes() < index.index().bytes());
    store.put(11);
    assert_eq!(store.follow(&mut compacted), [1, 0, 0]);
}
