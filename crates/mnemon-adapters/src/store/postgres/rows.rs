//! The rows that a plan inserts, moves and deletes: what its moves come to together.
//!
//! Several moves of a group may concern one record. They are played here in order, so that each row
//! is written once and in any order: a version that is replaced in the group in which it was
//! written goes to the history at once.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use mnemon_core::commit::{Effect, Entry, Move, Slot};
use mnemon_core::index::{StoredVector, Terms};
use mnemon_core::{Id, IdempotencyKey, Kind, Namespace, Receipt, Record, Scope, Time};

/// What a record is found by, made ready before its turn to be written.
#[derive(Debug, Clone)]
pub(super) struct FoundBy {
    pub(super) id: Id,
    pub(super) terms: Vec<u8>,
    pub(super) vector: Option<StoredVector>,
}

impl FoundBy {
    pub(super) fn of(record: &Record) -> Self {
        Self {
            id: record.id.clone(),
            terms: Terms::of(record).to_bytes(),
            vector: None,
        }
    }
}

/// A current version that is new.
#[derive(Debug)]
pub(super) struct CurrentRow {
    pub(super) entry: Entry,
    pub(super) record: Box<Record>,
    pub(super) found_by: FoundBy,
}

/// A new row of the history.
#[derive(Debug)]
pub(super) struct PastRow {
    pub(super) entry: Entry,
    pub(super) id: Id,
    /// 0 for the tombstone of a purge.
    pub(super) version: u64,
    pub(super) replaced: Time,
    pub(super) expires: Option<Time>,
    /// `None` for a tombstone.
    pub(super) record: Option<Box<Record>>,
}

/// A receipt to keep.
#[derive(Debug)]
pub(super) struct ReceiptRow {
    pub(super) key: IdempotencyKey,
    pub(super) at: Time,
    pub(super) receipt: Receipt,
}

/// Everything that changes in the tables.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// New current versions by `seq`.
    pub(super) current: BTreeMap<u64, CurrentRow>,
    /// New rows of the history by `seq`.
    pub(super) past: BTreeMap<u64, PastRow>,
    /// Stored current versions that move to the history, with the time.
    pub(super) retired: BTreeMap<u64, Time>,
    /// Stored current versions that are deleted.
    pub(super) removed: BTreeSet<u64>,
    /// Records whose stored history is deleted, but for tombstones of purges.
    pub(super) erased: BTreeSet<Id>,
    /// Records that come back after a deletion: the stored tombstone was followed by a change.
    pub(super) returned: BTreeMap<Id, Time>,
    /// What records are derived from now, where that may have changed.
    pub(super) links: BTreeMap<Id, Vec<Id>>,
    pub(super) receipts: Vec<ReceiptRow>,
    /// Stored past changes and receipts that are dropped from a copy.
    pub(super) dropped: Vec<u64>,
    pub(super) dropped_keys: Vec<String>,
    /// How many more or fewer records there are of each sort.
    pub(super) grown: BTreeMap<(Scope, Kind, Namespace), i64>,
    /// How many more rows the history has, without those of `erased`.
    pub(super) history_grown: i64,
    /// The rows of `past` and `retired` of each record.
    moved: HashMap<Id, BTreeSet<u64>>,
}

impl Rows {
    /// Plays the moves of one batch. Its puts come in order, and so does what they are found by.
    pub(super) fn play(&mut self, moves: Vec<Move>, found_by: impl IntoIterator<Item = FoundBy>) {
        let mut found_by = found_by.into_iter();
        for Move { effect, leaves } in moves {
            match (effect, leaves) {
                (Effect::Write { entry, record }, leaves) => {
                    let next = found_by.next().filter(|next| next.id == record.id);
                    let next = next.unwrap_or_else(|| FoundBy::of(&record));
                    self.write(entry, record, leaves, next);
                }
                (Effect::Bury { entry, id }, Some(slot)) => self.bury(entry, id, slot),
                (
                    Effect::Tombstone {
                        entry,
                        id,
                        version,
                        expires,
                    },
                    leaves,
                ) => {
                    if let Some(slot) = leaves {
                        self.retire(&id, &slot, entry.at);
                    }
                    self.history_grown += 1;
                    self.moved.entry(id.clone()).or_default().insert(entry.seq);
                    self.add_tombstone(entry, id, version, expires);
                }
                (Effect::Erase { id, purged }, leaves) => {
                    self.erase(&id, leaves);
                    if let Some(entry) = purged {
                        // Version 0: for every rule the record was never there.
                        self.add_tombstone(entry, id, 0, None);
                    }
                }
                (Effect::Receipt { key, at, receipt }, _) => {
                    self.receipts.push(ReceiptRow { key, at, receipt });
                }
                (Effect::Drop { seqs, keys }, _) => {
                    self.dropped.extend(seqs);
                    self.dropped_keys.extend(keys);
                }
                // Nothing is buried that is not there.
                (Effect::Bury { .. }, None) => {}
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.current.is_empty()
            && self.past.is_empty()
            && self.retired.is_empty()
            && self.removed.is_empty()
            && self.erased.is_empty()
            && self.receipts.is_empty()
            && self.dropped.is_empty()
            && self.dropped_keys.is_empty()
    }

    fn count(&mut self, slot: &Slot, grown: i64) {
        let sort = (slot.scope, slot.kind, slot.namespace);
        *self.grown.entry(sort).or_default() += grown;
    }

    fn write(
        &mut self,
        entry: Entry,
        record: Box<Record>,
        replaced: Option<Slot>,
        found_by: FoundBy,
    ) {
        match replaced {
            Some(slot) => self.retire(&record.id, &slot, entry.at),
            None if record.version > 1 => self.come_back(&record.id, entry.at),
            None => {}
        }
        self.count(&Slot::of(&record), 1);
        // The first version of a record that was never erased here has no links yet.
        if record.version > 1
            || !record.derived_from.is_empty()
            || self.links.contains_key(&record.id)
        {
            self.links
                .insert(record.id.clone(), record.derived_from.clone());
        }
        let row = CurrentRow {
            entry,
            record,
            found_by,
        };
        self.current.insert(row.entry.seq, row);
    }

    /// The deletion of the record is now followed by a change.
    fn come_back(&mut self, id: &Id, at: Time) {
        let newest = self.moved.get(id).and_then(BTreeSet::last);
        match newest.and_then(|seq| self.past.get_mut(seq)) {
            Some(past) => past.replaced = at,
            None => drop(self.returned.insert(id.clone(), at)),
        }
    }

    /// Moves the current version to the history.
    fn retire(&mut self, id: &Id, slot: &Slot, at: Time) {
        self.count(slot, -1);
        self.history_grown += 1;
        self.moved.entry(id.clone()).or_default().insert(slot.seq);
        match self.current.remove(&slot.seq) {
            Some(CurrentRow { entry, record, .. }) => {
                let past = PastRow {
                    entry,
                    id: id.clone(),
                    version: record.version,
                    replaced: at,
                    expires: record.expires,
                    record: Some(record),
                };
                self.past.insert(slot.seq, past);
            }
            None => drop(self.retired.insert(slot.seq, at)),
        }
    }

    fn bury(&mut self, entry: Entry, id: Id, slot: Slot) {
        self.retire(&id, &slot, entry.at);
        self.history_grown += 1;
        self.moved.entry(id.clone()).or_default().insert(entry.seq);
        self.add_tombstone(entry, id, slot.version + 1, slot.expires);
    }

    fn add_tombstone(&mut self, entry: Entry, id: Id, version: u64, expires: Option<Time>) {
        let past = PastRow {
            id,
            version,
            replaced: entry.at,
            expires,
            record: None,
            entry,
        };
        self.past.insert(past.entry.seq, past);
    }

    /// Leaves nothing of the record but the tombstones of earlier purges.
    pub(super) fn erase(&mut self, id: &Id, slot: Option<Slot>) {
        if let Some(slot) = slot {
            self.count(&slot, -1);
            if self.current.remove(&slot.seq).is_none() {
                self.removed.insert(slot.seq);
            }
        }
        for seq in self.moved.remove(id).unwrap_or_default() {
            self.history_grown -= 1;
            if self.past.remove(&seq).is_none() && self.retired.remove(&seq).is_some() {
                self.removed.insert(seq);
            }
        }
        self.returned.remove(id);
        self.links.insert(id.clone(), Vec::new());
        self.erased.insert(id.clone());
    }

    /// Stored current versions that leave their table.
    pub(super) fn left(&self) -> Vec<i64> {
        let left = self.retired.keys().chain(&self.removed);
        left.map(|seq| seq.cast_signed()).collect()
    }
}

#[cfg(test)]
mod tests {
    use mnemon_core::{Cause, Ctx, Tenant};

    use super::*;

    fn entry(seq: u64) -> Entry {
        Entry {
            seq,
            commit: seq,
            at: Time::EPOCH.plus_millis(seq.cast_signed()),
            actor: "test".to_owned(),
            cause: Cause::Written,
        }
    }

    fn record(seq: u64, version: u64) -> Box<Record> {
        let ctx = Ctx::new(Tenant::default(), "test", Time::EPOCH);
        let mut record = Record::note("a".parse().unwrap(), &ctx, "tea");
        (record.seq, record.version) = (seq, version);
        Box::new(record)
    }

    fn write(seq: u64, version: u64, leaves: Option<&Record>) -> Move {
        Move {
            effect: Effect::Write {
                entry: entry(seq),
                record: record(seq, version),
            },
            leaves: leaves.map(Slot::of),
        }
    }

    fn bury(seq: u64, leaves: &Record) -> Move {
        Move {
            effect: Effect::Bury {
                entry: entry(seq),
                id: leaves.id.clone(),
            },
            leaves: Some(Slot::of(leaves)),
        }
    }

    fn erase(leaves: Option<&Record>) -> Move {
        Move {
            effect: Effect::Erase {
                id: "a".parse().unwrap(),
                purged: None,
            },
            leaves: leaves.map(Slot::of),
        }
    }

    fn played(moves: Vec<Move>) -> Rows {
        let mut rows = Rows::default();
        rows.play(moves, []);
        rows
    }

    fn grown(rows: &Rows) -> (i64, i64) {
        (rows.grown.values().sum(), rows.history_grown)
    }

    #[test]
    fn a_version_that_is_replaced_in_its_group_goes_to_the_history_at_once() {
        let moves = vec![write(1, 1, None), write(2, 2, Some(&record(1, 1)))];
        let rows = played(moves);
        assert!(rows.current.keys().eq(&[2]) && rows.past.keys().eq(&[1]));
        assert!(rows.retired.is_empty() && rows.left().is_empty());
        assert_eq!(rows.past[&1].replaced, entry(2).at);
        assert_eq!(grown(&rows), (1, 1));
    }

    #[test]
    fn a_record_that_comes_back_follows_the_tombstone_of_its_group() {
        let rows = played(vec![bury(2, &record(1, 1)), write(3, 3, None)]);
        assert!(rows.retired.keys().eq(&[1]) && rows.past.keys().eq(&[2]));
        assert_eq!(rows.past[&2].replaced, entry(3).at);
        assert!(rows.returned.is_empty());
        // Without one, the stored tombstone is updated.
        let rows = played(vec![write(3, 3, None)]);
        assert_eq!(rows.returned.len(), 1);
    }

    #[test]
    fn an_erased_record_leaves_no_row_of_its_group() {
        let moves = vec![
            write(2, 2, Some(&record(1, 1))),
            bury(3, &record(2, 2)),
            erase(None),
            write(4, 1, None),
        ];
        let rows = played(moves);
        assert!(rows.past.is_empty() && rows.retired.is_empty());
        assert!(rows.removed.iter().eq(&[1]) && rows.current.keys().eq(&[4]));
        assert_eq!(rows.erased.len(), 1);
        assert_eq!(grown(&rows), (0, 0));
    }
}
