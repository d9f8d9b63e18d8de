//! One tenant's records, history and receipts in memory.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::commit::{self, Entry, KeptReceipt, Slot, Tables};
use crate::{
    Batch, Change, Changes, Cursor, Grant, Group, Id, IdempotencyKey, Kind, Namespace, Order, Page,
    Receipt, Record, Scan, Scope, StoreError, Tally, Time, Upkept, limits,
};

/// The current version of a record and the change that wrote it.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    entry: Entry,
    record: Record,
}

/// A change that is no longer the newest of its record: a replaced version, or a deletion.
#[derive(Debug, Clone, PartialEq)]
pub struct Past {
    pub entry: Entry,
    pub id: Id,
    pub version: u64,
    /// `None` marks the deletion.
    pub record: Option<Record>,
}

/// A receipt under its key.
#[derive(Debug, Clone, PartialEq)]
struct Receipted {
    key: IdempotencyKey,
    at: Time,
    receipt: Receipt,
}

/// One primitive move, in the form a log keeps it. Playing the effects of all commits in order
/// rebuilds the image.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    Write {
        entry: Entry,
        record: Box<Record>,
    },
    Bury {
        entry: Entry,
        id: Id,
    },
    Erase {
        id: Id,
    },
    Receipt {
        key: IdempotencyKey,
        at: Time,
        receipt: Receipt,
    },
}

/// One tenant's memory, with the indexes that keep every operation off the full scan.
#[derive(Debug, Clone, Default)]
pub struct Image {
    rows: HashMap<Id, Row>,
    by_seq: BTreeMap<u64, Id>,
    by_created: BTreeSet<(Time, u64)>,
    by_expiry: BTreeSet<(Time, Id)>,
    /// Notes in the order in which they are given up.
    by_worth: BTreeSet<(Namespace, u64, Time, u64)>,
    past: BTreeMap<u64, Past>,
    past_of: HashMap<Id, BTreeSet<u64>>,
    derived: HashMap<Id, BTreeSet<Id>>,
    receipts: HashMap<String, Receipted>,
    groups: BTreeMap<(Scope, Kind, Namespace), u64>,
    last_seq: u64,
}

/// For importance between 0 and 1 the bits sort as the numbers do; adding 0 turns -0 into 0.
fn worth(record: &Record) -> (Namespace, u64, Time, u64) {
    let importance = (record.importance + 0.0).to_bits();
    (record.namespace, importance, record.created, record.seq)
}

impl Image {
    /// Does what the batch asks or nothing; says what it did, for a log. An image has no
    /// transactions, so a batch runs on the image itself with a way back.
    pub fn commit(
        &mut self,
        grant: &Grant,
        batch: Batch,
    ) -> Result<(Receipt, Vec<Effect>), StoreError> {
        let mut draft = Draft {
            image: self,
            effects: Vec::new(),
            way_back: Vec::new(),
        };
        match commit::commit(grant, batch, &mut draft) {
            Ok(receipt) => Ok((receipt, draft.effects)),
            Err(error) => {
                draft.roll_back();
                Err(error)
            }
        }
    }

    /// Plays one effect of a log.
    pub fn play(&mut self, effect: Effect) {
        match effect {
            Effect::Write { entry, record } => self.write(entry, *record),
            Effect::Bury { entry, id } => self.bury(entry, &id),
            Effect::Erase { id } => {
                self.erase(&id);
            }
            Effect::Receipt { key, at, receipt } => {
                self.receipts
                    .insert(key.name.clone(), Receipted { key, at, receipt });
            }
        }
    }

    /// Puts back a change that a log had moved aside. A change that is already known is left as
    /// it is, so that a history may be read twice.
    pub fn restore_past(&mut self, past: Past) {
        let seq = past.entry.seq;
        let known = self.past.contains_key(&seq) || self.by_seq.contains_key(&seq);
        self.last_seq = self.last_seq.max(seq);
        if !known {
            let id = past.id.clone();
            self.unlink(&id);
            self.keep_past(past);
            self.link(&id);
        }
    }

    /// The effects that rebuild the current records, in the order they were written.
    #[must_use]
    pub fn current_effects(&self) -> Vec<Effect> {
        let rows = self.by_seq.values().filter_map(|id| self.rows.get(id));
        rows.map(|row| Effect::Write {
            entry: row.entry.clone(),
            record: Box::new(row.record.clone()),
        })
        .collect()
    }

    /// The effects that rebuild the receipts, by key.
    #[must_use]
    pub fn receipt_effects(&self) -> Vec<Effect> {
        let mut kept: Vec<&Receipted> = self.receipts.values().collect();
        kept.sort_by(|a, b| a.key.name.cmp(&b.key.name));
        kept.into_iter()
            .map(|kept| Effect::Receipt {
                key: kept.key.clone(),
                at: kept.at,
                receipt: kept.receipt.clone(),
            })
            .collect()
    }

    /// Replaced versions and deletions, oldest first.
    pub fn past(&self) -> impl Iterator<Item = &Past> {
        self.past.values()
    }

    /// How many records there are, expired ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The number of the newest change.
    #[must_use]
    pub fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// Counts on from here, for changes that left no trace of their own.
    pub fn skip_to(&mut self, seq: u64) {
        self.last_seq = self.last_seq.max(seq);
    }

    /// Live records by id.
    pub fn get(&self, grant: &Grant, ids: &[Id]) -> Result<Vec<Option<Record>>, StoreError> {
        if ids.len() > limits::PAGE {
            return Err(StoreError::TooLarge {
                what: "ids in one get",
                count: ids.len(),
                most: limits::PAGE,
            });
        }
        Ok(ids
            .iter()
            .map(|id| self.live(id, grant.now()).cloned())
            .collect())
    }

    fn live(&self, id: &Id, now: Time) -> Option<&Record> {
        let record = &self.rows.get(id)?.record;
        record.is_live(now).then_some(record)
    }

    /// A page of live records in order.
    #[must_use]
    pub fn scan(&self, grant: &Grant, scan: &Scan) -> Page {
        let limit = scan.limit.min(limits::PAGE);
        let records = self
            .seqs_after(scan.order, scan.after)
            .filter_map(|seq| self.live(self.by_seq.get(&seq)?, grant.now()))
            .filter(|record| scan.filter.matches(record))
            .take(limit + 1)
            .cloned()
            .collect();
        Page::cut(records, limit, scan.order)
    }

    /// The numbers of the records that come after the cursor, in order.
    fn seqs_after<'a>(
        &'a self,
        order: Order,
        after: Option<Cursor>,
    ) -> Box<dyn Iterator<Item = u64> + 'a> {
        use std::ops::Bound::{Excluded, Unbounded};
        let place = after.map(|cursor| (clamped(cursor.key), cursor.seq));
        let ascending = |place: Option<(Time, u64)>| (place.map_or(Unbounded, Excluded), Unbounded);
        match order {
            Order::Newest => {
                let range = (Unbounded, place.map_or(Unbounded, Excluded));
                Box::new(self.by_created.range(range).rev().map(|(_, seq)| *seq))
            }
            Order::Oldest => Box::new(self.by_created.range(ascending(place)).map(|(_, seq)| *seq)),
            Order::Written => {
                let from = after.map_or(Unbounded, |cursor| Excluded(cursor.seq));
                Box::new(self.by_seq.range((from, Unbounded)).map(|(seq, _)| *seq))
            }
        }
    }

    /// A part of the history, newest first.
    #[must_use]
    pub fn changes(&self, grant: &Grant, changes: &Changes) -> Vec<Change> {
        let limit = changes.limit.min(limits::CHANGES);
        let before = changes.before.unwrap_or(u64::MAX);
        let seqs: BTreeSet<u64> = match (&changes.id, changes.commit) {
            (Some(id), _) => self.seqs_of(id),
            (None, Some(commit)) => self.seqs_from(commit),
            (None, None) => self
                .by_seq
                .keys()
                .chain(self.past.keys())
                .copied()
                .collect(),
        };
        seqs.into_iter()
            .rev()
            .filter(|seq| *seq < before)
            .filter_map(|seq| self.change(seq))
            .filter(|change| changes.commit.is_none_or(|commit| change.commit == commit))
            .filter_map(|change| change.shown_at(grant.now()))
            .take(limit)
            .collect()
    }

    fn seqs_of(&self, id: &Id) -> BTreeSet<u64> {
        let past = self.past_of.get(id).into_iter().flatten().copied();
        let current = self.rows.get(id).map(|row| row.entry.seq);
        past.chain(current).collect()
    }

    fn seqs_from(&self, commit: u64) -> BTreeSet<u64> {
        let past = self.past.range(commit..).map(|(seq, _)| *seq);
        let current = self.by_seq.range(commit..).map(|(seq, _)| *seq);
        past.chain(current).collect()
    }

    fn change(&self, seq: u64) -> Option<Change> {
        let (entry, id, version, after) = match self.past.get(&seq) {
            Some(past) => (&past.entry, &past.id, past.version, past.record.clone()),
            None => {
                let row = self.rows.get(self.by_seq.get(&seq)?)?;
                let record = Some(row.record.clone());
                (&row.entry, &row.record.id, row.record.version, record)
            }
        };
        let previous = self
            .past_of
            .get(id)
            .and_then(|seqs| seqs.range(..seq).next_back())
            .and_then(|seq| self.past.get(seq));
        Some(Change {
            commit: entry.commit,
            seq,
            at: entry.at,
            actor: entry.actor.clone(),
            cause: entry.cause.clone(),
            id: id.clone(),
            version,
            before: previous.and_then(|past| past.record.clone()),
            before_known: version == 1 || previous.is_some(),
            after,
        })
    }

    /// How much there is.
    #[must_use]
    pub fn tally(&self, grant: &Grant) -> Tally {
        let groups = self.groups.iter().map(|(sort, count)| Group {
            scope: sort.0,
            kind: sort.1,
            namespace: sort.2,
            count: *count,
        });
        let expired = self
            .by_expiry
            .iter()
            .take_while(|(expires, _)| *expires < grant.now())
            .count();
        Tally {
            groups: groups.collect(),
            expired: expired as u64,
            history: self.past.len() as u64,
            seq: self.last_seq,
        }
    }

    /// A slice of housekeeping, and what it erased of current records, for a log.
    pub fn upkeep(&mut self, grant: &Grant, limit: usize) -> (Upkept, Vec<Effect>) {
        let mut done = Upkept::default();
        let mut effects = Vec::new();
        let mut left = limit;
        for id in self.expired_ids(grant.now(), left) {
            self.erase(&id);
            effects.push(Effect::Erase { id });
            done.expired += 1;
            left -= 1;
        }
        if let Some(until) = grant.history_until() {
            let replaced: Vec<u64> = self.replaced_before(until).take(left).collect();
            for seq in replaced {
                self.drop_past(seq);
                done.history += 1;
                left -= 1;
            }
        }
        let oldest = grant.now().plus_days(-limits::RECEIPT_DAYS);
        for key in self.receipts_before(oldest, left) {
            self.receipts.remove(&key);
            done.receipts += 1;
            left -= 1;
        }
        done.more = left == 0;
        (done, effects)
    }

    /// The keys of receipts kept since before then, oldest first.
    fn receipts_before(&self, oldest: Time, count: usize) -> Vec<String> {
        let kept = self.receipts.values().filter(|kept| kept.at < oldest);
        let mut stale: Vec<(Time, &str)> =
            kept.map(|kept| (kept.at, kept.key.name.as_str())).collect();
        stale.sort_unstable();
        let keys = stale.into_iter().take(count);
        keys.map(|(_, key)| key.to_owned()).collect()
    }

    /// Past changes that had been followed by another one of the same record before `until`,
    /// or that deleted it before then.
    fn replaced_before(&self, until: Time) -> impl Iterator<Item = u64> {
        self.past
            .values()
            .filter(move |past| {
                let next = self.next_of(&past.id, past.entry.seq);
                next.unwrap_or(past.entry.at) < until
            })
            .map(|past| past.entry.seq)
    }

    /// When the record was changed next after this change.
    fn next_of(&self, id: &Id, seq: u64) -> Option<Time> {
        let later = self.past_of.get(id)?.range(seq + 1..).next();
        match later {
            Some(later) => self.past.get(later).map(|past| past.entry.at),
            None => self.rows.get(id).map(|row| row.entry.at),
        }
    }

    fn expired_ids(&self, now: Time, count: usize) -> Vec<Id> {
        self.by_expiry
            .iter()
            .take_while(|(expires, _)| *expires < now)
            .take(count)
            .map(|(_, id)| id.clone())
            .collect()
    }

    fn write(&mut self, entry: Entry, record: Record) {
        self.last_seq = self.last_seq.max(entry.seq);
        if let Some(replaced) = self.take_row(&record.id) {
            self.keep_past(Past {
                id: replaced.record.id.clone(),
                version: replaced.record.version,
                record: Some(replaced.record),
                entry: replaced.entry,
            });
        }
        self.unlink(&record.id);
        let id = record.id.clone();
        self.put_row(Row { entry, record });
        self.link(&id);
    }

    fn bury(&mut self, entry: Entry, id: &Id) {
        self.last_seq = self.last_seq.max(entry.seq);
        if let Some(row) = self.take_row(id) {
            let version = row.record.version;
            self.keep_past(Past {
                id: id.clone(),
                version,
                record: Some(row.record),
                entry: row.entry,
            });
            self.keep_past(Past {
                id: id.clone(),
                version: version + 1,
                record: None,
                entry,
            });
        }
    }

    fn erase(&mut self, id: &Id) -> bool {
        self.unlink(id);
        let row = self.take_row(id);
        let seqs = self.past_of.remove(id).unwrap_or_default();
        for seq in &seqs {
            self.past.remove(seq);
        }
        row.is_some() || !seqs.is_empty()
    }

    /// What the newest version of the record that is kept, current or deleted, was derived from.
    /// The links of an id are always these.
    fn sources(&self, id: &Id) -> Vec<Id> {
        let newest = match self.rows.get(id) {
            Some(row) => Some(&row.record),
            None => self.past_of.get(id).and_then(|seqs| {
                seqs.iter()
                    .rev()
                    .find_map(|seq| self.past.get(seq)?.record.as_ref())
            }),
        };
        newest.map_or_else(Vec::new, |record| record.derived_from.clone())
    }

    fn link(&mut self, id: &Id) {
        for source in self.sources(id) {
            self.derived.entry(source).or_default().insert(id.clone());
        }
    }

    fn unlink(&mut self, id: &Id) {
        for source in self.sources(id) {
            if let Some(derived) = self.derived.get_mut(&source) {
                derived.remove(id);
                if derived.is_empty() {
                    self.derived.remove(&source);
                }
            }
        }
    }

    fn put_row(&mut self, row: Row) {
        let record = &row.record;
        self.by_seq.insert(record.seq, record.id.clone());
        self.by_created.insert((record.created, record.seq));
        if let Some(expires) = record.expires {
            self.by_expiry.insert((expires, record.id.clone()));
        }
        if record.kind == Kind::Note {
            self.by_worth.insert(worth(record));
        }
        let sort = (record.scope, record.kind, record.namespace);
        *self.groups.entry(sort).or_default() += 1;
        self.rows.insert(record.id.clone(), row);
    }

    fn take_row(&mut self, id: &Id) -> Option<Row> {
        let row = self.rows.remove(id)?;
        let record = &row.record;
        self.by_seq.remove(&record.seq);
        self.by_created.remove(&(record.created, record.seq));
        if let Some(expires) = record.expires {
            self.by_expiry.remove(&(expires, record.id.clone()));
        }
        self.by_worth.remove(&worth(record));
        let sort = (record.scope, record.kind, record.namespace);
        if let Some(count) = self.groups.get_mut(&sort) {
            *count -= 1;
            if *count == 0 {
                self.groups.remove(&sort);
            }
        }
        Some(row)
    }

    fn keep_past(&mut self, past: Past) {
        let seq = past.entry.seq;
        self.past_of.entry(past.id.clone()).or_default().insert(seq);
        self.past.insert(seq, past);
    }

    fn drop_past(&mut self, seq: u64) {
        let Some(id) = self.past.get(&seq).map(|past| past.id.clone()) else {
            return;
        };
        self.unlink(&id);
        self.past.remove(&seq);
        if let Some(seqs) = self.past_of.get_mut(&id) {
            seqs.remove(&seq);
            if seqs.is_empty() {
                self.past_of.remove(&id);
            }
        }
        self.link(&id);
    }
}

fn clamped(millis: i64) -> Time {
    Time::EPOCH.plus_millis(millis)
}

/// The state of one id before a draft first touched it.
struct Before {
    id: Id,
    row: Option<Row>,
    past: Vec<Past>,
}

/// A batch that runs on the image and can be taken back.
struct Draft<'a> {
    image: &'a mut Image,
    effects: Vec<Effect>,
    way_back: Vec<Step>,
}

/// How to take one move back.
enum Step {
    /// Put the id back into this state.
    Id(Box<Before>),
    /// Forget the receipt.
    Receipt(String),
    /// Count from here.
    Seq(u64),
}

impl Draft<'_> {
    fn remember(&mut self, id: &Id) {
        let image = &*self.image;
        let row = image.rows.get(id).cloned();
        let past: Vec<Past> = image
            .past_of
            .get(id)
            .into_iter()
            .flatten()
            .filter_map(|seq| image.past.get(seq).cloned())
            .collect();
        let seq = image.last_seq;
        self.way_back.push(Step::Seq(seq));
        self.way_back.push(Step::Id(Box::new(Before {
            id: id.clone(),
            row,
            past,
        })));
    }

    fn roll_back(self) {
        let image = self.image;
        for step in self.way_back.into_iter().rev() {
            match step {
                Step::Seq(seq) => image.last_seq = seq,
                Step::Receipt(key) => {
                    image.receipts.remove(&key);
                }
                Step::Id(before) => {
                    image.erase(&before.id);
                    for past in before.past {
                        image.keep_past(past);
                    }
                    if let Some(row) = before.row {
                        image.put_row(row);
                    }
                    image.link(&before.id);
                }
            }
        }
    }
}

impl Tables for Draft<'_> {
    fn slot(&mut self, id: &Id) -> Result<Option<Slot>, StoreError> {
        Ok(self.image.rows.get(id).map(|row| Slot::of(&row.record)))
    }

    fn buried_version(&mut self, id: &Id) -> Result<u64, StoreError> {
        let image = &*self.image;
        let newest = image.past_of.get(id).and_then(|seqs| seqs.last());
        Ok(newest
            .and_then(|seq| image.past.get(seq))
            .map_or(0, |past| past.version))
    }

    fn last_seq(&mut self) -> Result<u64, StoreError> {
        Ok(self.image.last_seq)
    }

    fn write(
        &mut self,
        entry: &Entry,
        record: Record,
        _replaced: Option<Slot>,
    ) -> Result<(), StoreError> {
        self.remember(&record.id);
        self.effects.push(Effect::Write {
            entry: entry.clone(),
            record: Box::new(record.clone()),
        });
        self.image.write(entry.clone(), record);
        Ok(())
    }

    fn bury(&mut self, entry: &Entry, id: &Id, _slot: Slot) -> Result<(), StoreError> {
        self.remember(id);
        self.effects.push(Effect::Bury {
            entry: entry.clone(),
            id: id.clone(),
        });
        self.image.bury(entry.clone(), id);
        Ok(())
    }

    fn erase(&mut self, id: &Id) -> Result<bool, StoreError> {
        self.remember(id);
        self.effects.push(Effect::Erase { id: id.clone() });
        Ok(self.image.erase(id))
    }

    fn derived(&mut self, id: &Id) -> Result<Vec<Id>, StoreError> {
        let derived = self.image.derived.get(id);
        Ok(derived.into_iter().flatten().cloned().collect())
    }

    fn notes(&mut self, namespace: Namespace) -> Result<u64, StoreError> {
        let notes = self.image.groups.iter();
        Ok(notes
            .filter(|((_, kind, space), _)| *kind == Kind::Note && *space == namespace)
            .map(|(_, count)| count)
            .sum())
    }

    fn weakest(&mut self, namespace: Namespace, count: usize) -> Result<Vec<Id>, StoreError> {
        let image = &*self.image;
        let first = (namespace, 0, Time::EPOCH.plus_millis(i64::MIN), 0);
        Ok(image
            .by_worth
            .range(first..)
            .take_while(|(space, ..)| *space == namespace)
            .take(count)
            .filter_map(|(.., seq)| image.by_seq.get(seq).cloned())
            .collect())
    }

    fn expired(&mut self, now: Time, count: usize) -> Result<Vec<Id>, StoreError> {
        Ok(self.image.expired_ids(now, count))
    }

    fn receipt(&mut self, key: &str) -> Result<Option<KeptReceipt>, StoreError> {
        let kept = self.image.receipts.get(key);
        Ok(kept.map(|kept| KeptReceipt {
            digest: kept.key.digest.clone(),
            receipt: kept.receipt.clone(),
        }))
    }

    fn keep_receipt(
        &mut self,
        key: &IdempotencyKey,
        at: Time,
        receipt: &Receipt,
    ) -> Result<(), StoreError> {
        self.way_back.push(Step::Receipt(key.name.clone()));
        let effect = Effect::Receipt {
            key: key.clone(),
            at,
            receipt: receipt.clone(),
        };
        self.effects.push(effect.clone());
        self.image.play(effect);
        Ok(())
    }
}
