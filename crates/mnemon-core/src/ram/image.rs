//! One tenant's records, history and receipts in memory.

mod reads;
mod removals;
mod stored;
mod upkeep;
mod view;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use removals::Removals;

use crate::commit::{self, Effect, Entry, Plan, Request, Slot, Worth};
use crate::model::{Clock, Grant, Id, Kind, Namespace, Record, Scope, Time};
use crate::ports::{Batch, IdempotencyKey, Receipt, StoreError};

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
    /// `None` for a deletion or a purge.
    pub record: Option<Record>,
    /// When the version expires; of a deletion, when the version that it deleted does.
    pub expires: Option<Time>,
}

impl Past {
    /// A replaced or deleted version.
    pub fn of(entry: Entry, record: Record) -> Self {
        Self {
            entry,
            id: record.id.clone(),
            version: record.version,
            expires: record.expires,
            record: Some(record),
        }
    }

    /// The tombstone of a purge. Its version is 0: for every rule the record was never there.
    pub fn purged(entry: Entry, id: Id) -> Self {
        Self {
            entry,
            id,
            version: 0,
            record: None,
            expires: None,
        }
    }

    fn is_purge(&self) -> bool {
        self.version == 0
    }

    fn is_live(&self, now: Time) -> bool {
        self.expires.is_none_or(|expires| expires >= now)
    }
}

/// A receipt under its key.
#[derive(Debug, Clone, PartialEq)]
struct Receipted {
    key: IdempotencyKey,
    at: Time,
    receipt: Receipt,
}

/// One tenant's memory, with the indexes that keep every operation off the full scan.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Image {
    rows: HashMap<Id, Row>,
    by_seq: BTreeMap<u64, Id>,
    by_created: ByCreation,
    by_user: HashMap<String, ByCreation>,
    by_session: HashMap<String, ByCreation>,
    by_expiry: BTreeSet<(Time, Id)>,
    /// Notes in the order in which they are given up.
    by_worth: BTreeSet<Worth>,
    past: BTreeMap<u64, Past>,
    past_of: HashMap<Id, BTreeSet<u64>>,
    past_by_expiry: BTreeSet<(Time, u64)>,
    /// How many of `past` are tombstones of purges.
    tombstones: u64,
    derived: HashMap<Id, BTreeSet<Id>>,
    receipts: HashMap<String, Receipted>,
    groups: BTreeMap<(Scope, Kind, Namespace), u64>,
    last_seq: u64,
    clock: Clock,
    removals: Removals,
}

/// Records by when they were created, equals by when they were written.
type ByCreation = BTreeSet<(Time, u64)>;

impl Image {
    /// Does what the batch asks or nothing.
    pub fn commit(&mut self, grant: &Grant, batch: Batch) -> Result<Receipt, StoreError> {
        let plan = self.plan(vec![Request::new(grant, batch)?]);
        let mut receipts = self.apply(plan);
        self.trim_removals(grant);
        let lost = || Err(StoreError::Internal("a batch was lost".to_owned()));
        receipts.pop().unwrap_or_else(lost)
    }

    /// What becomes of the requests, one after the other. Changes nothing.
    pub fn plan(&self, requests: Vec<Request>) -> Plan {
        let view = self.view(&commit::needs(&requests));
        commit::plan(view, requests)
    }

    /// Carries out a plan that was made for the image as it is.
    pub fn apply(&mut self, plan: Plan) -> Vec<Result<Receipt, StoreError>> {
        let mut receipts = Vec::with_capacity(plan.outcomes.len());
        for outcome in plan.outcomes {
            receipts.push(outcome.map(|planned| {
                for made in planned.moves {
                    self.play(made.effect);
                }
                planned.receipt
            }));
        }
        self.clock = plan.clock;
        self.skip_to(plan.last_seq);
        receipts
    }

    /// Plays one effect of a log.
    pub fn play(&mut self, effect: Effect) {
        match effect {
            Effect::Write { entry, record } => self.write(entry, *record),
            Effect::Bury { entry, id } => self.bury(entry, &id),
            Effect::Tombstone {
                entry,
                id,
                version,
                expires,
            } => {
                if let Some(row) = self.take_row(&id) {
                    self.keep_past(Past::of(row.entry, row.record));
                }
                self.restore_past(Past {
                    entry,
                    id,
                    version,
                    record: None,
                    expires,
                });
            }
            Effect::Erase { id, purged } => {
                self.erase(&id);
                if let Some(entry) = purged {
                    self.last_seq = self.last_seq.max(entry.seq);
                    self.keep_past(Past::purged(entry, id));
                }
            }
            Effect::Receipt { key, at, receipt } => {
                self.receipts
                    .insert(key.name.clone(), Receipted { key, at, receipt });
            }
            Effect::Drop { seqs, keys } => {
                for seq in seqs {
                    self.drop_past(seq);
                }
                for key in keys {
                    self.receipts.remove(&key);
                }
            }
        }
    }

    /// Puts back a change that a log had moved aside. A change that is already known is left as
    /// it is, so that a history may be read twice.
    pub fn restore_past(&mut self, past: Past) {
        let seq = past.entry.seq;
        let known = self.has_change(seq);
        self.last_seq = self.last_seq.max(seq);
        if !known {
            let id = past.id.clone();
            self.unlink(&id);
            self.keep_past(past);
            self.link(&id);
        }
    }

    /// The current records with the changes that wrote them, in the order they were written.
    pub fn current(&self) -> impl Iterator<Item = (&Entry, &Record)> {
        let rows = self.by_seq.values().filter_map(|id| self.rows.get(id));
        rows.map(|row| (&row.entry, &row.record))
    }

    /// The current record that this change wrote, if it still is current.
    pub fn by_seq(&self, seq: u64) -> Option<&Record> {
        let row = self.rows.get(self.by_seq.get(&seq)?)?;
        Some(&row.record)
    }

    /// The record that is there now, expired or not.
    pub(super) fn record(&self, id: &Id) -> Option<&Record> {
        self.rows.get(id).map(|row| &row.record)
    }

    /// The changes that made the records that are there, in order.
    pub(super) fn seqs(&self) -> impl Iterator<Item = u64> {
        self.by_seq.keys().copied()
    }

    /// Which records have left.
    /// Logs no more removals than the caller's limits allow.
    pub fn trim_removals(&mut self, grant: &Grant) {
        self.removals.trim(grant.limits().removal_log);
    }

    pub(super) fn removals(&self) -> &Removals {
        &self.removals
    }

    /// Current records written after this change, in order.
    pub fn written_after(&self, seq: u64) -> impl Iterator<Item = &Record> {
        let ids = self.by_seq.range(seq + 1..).map(|(_, id)| id);
        ids.filter_map(|id| Some(&self.rows.get(id)?.record))
    }

    /// The effects that rebuild the receipts, by key.
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

    /// Whether a current record or the history has this number.
    pub fn has_change(&self, seq: u64) -> bool {
        self.has_past(seq) || self.by_seq.contains_key(&seq)
    }

    /// Whether this change is in the history as a replaced version or a deletion.
    pub fn has_past(&self, seq: u64) -> bool {
        self.past.contains_key(&seq)
    }

    /// Whether this very change is known, as the current version or in the history.
    pub fn is_written(&self, entry: &Entry, record: &Record) -> bool {
        let current = self.rows.get(&record.id);
        let current = current.map(|row| (&row.entry, &row.record));
        let past = self.past.get(&entry.seq);
        let past = past.and_then(|past| Some((&past.entry, past.record.as_ref()?)));
        [current, past].contains(&Some((entry, record)))
    }

    /// Whether this very deletion is in the history.
    pub fn is_buried(&self, entry: &Entry, id: &Id) -> bool {
        let past = self.past.get(&entry.seq);
        past.is_some_and(|past| past.record.is_none() && past.entry == *entry && past.id == *id)
    }

    /// What is known of the clock.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Takes over what a log knew of the clock.
    pub fn set_clock(&mut self, clock: Clock) {
        self.clock = clock;
    }

    /// Follows the clock through a log.
    pub fn observe_clock(&mut self, now: Time, accepted: bool) {
        self.clock = self.clock.observe(now, accepted);
    }

    /// The record that is there now, expired or not.
    pub fn slot(&self, id: &Id) -> Option<Slot> {
        self.rows.get(id).map(|row| Slot::of(&row.record))
    }

    /// The newest version under this id, a deletion included; 0 if there never was one.
    pub fn newest_version(&self, id: &Id) -> u64 {
        match self.rows.get(id) {
            Some(row) => row.record.version,
            None => self.buried_version(id),
        }
    }

    fn buried_version(&self, id: &Id) -> u64 {
        let newest = self.past_of.get(id).and_then(|seqs| seqs.last());
        newest
            .and_then(|seq| self.past.get(seq))
            .map_or(0, |past| past.version)
    }

    /// How many records there are, expired ones included.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The number of the newest change.
    pub fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// Counts on from here, for changes that left no trace of their own.
    pub fn skip_to(&mut self, seq: u64) {
        self.last_seq = self.last_seq.max(seq);
    }

    /// Records that expired before `now`: by expiry, then id.
    fn expired(&self, now: Time) -> impl Iterator<Item = &(Time, Id)> {
        self.by_expiry
            .iter()
            .take_while(move |(expires, _)| *expires < now)
    }

    fn write(&mut self, entry: Entry, record: Record) {
        self.last_seq = self.last_seq.max(entry.seq);
        if let Some(replaced) = self.take_row(&record.id) {
            self.keep_past(Past::of(replaced.entry, replaced.record));
        }
        let id = record.id.clone();
        self.unlink(&id);
        self.put_row(Row { entry, record });
        self.link(&id);
    }

    fn bury(&mut self, entry: Entry, id: &Id) {
        self.last_seq = self.last_seq.max(entry.seq);
        if let Some(row) = self.take_row(id) {
            let mark = Past {
                id: id.clone(),
                version: row.record.version + 1,
                record: None,
                expires: row.record.expires,
                entry,
            };
            self.keep_past(Past::of(row.entry, row.record));
            self.keep_past(mark);
        }
    }

    /// Takes out every version and deletion; tombstones of earlier purges stay.
    fn erase(&mut self, id: &Id) {
        self.unlink(id);
        self.take_row(id);
        let seqs = self.past_of.remove(id).unwrap_or_default();
        let is_tombstone = |seq: &u64| self.past.get(seq).is_some_and(Past::is_purge);
        let (tombstones, gone): (BTreeSet<u64>, BTreeSet<u64>) =
            seqs.into_iter().partition(is_tombstone);
        for seq in gone {
            self.take_past(seq);
        }
        if !tombstones.is_empty() {
            self.past_of.insert(id.clone(), tombstones);
        }
    }

    /// Forgets what the newest version of the record was derived from. Whoever changes which
    /// version is the newest unlinks before and links after.
    fn unlink(&mut self, id: &Id) {
        for source in self.newest_sources(id) {
            if let Some(derived) = self.derived.get_mut(&source) {
                derived.remove(id);
                if derived.is_empty() {
                    self.derived.remove(&source);
                }
            }
        }
    }

    /// Records what the newest version of the record, current or deleted, was derived from.
    fn link(&mut self, id: &Id) {
        for source in self.newest_sources(id) {
            let derived = self.derived.entry(source).or_default();
            derived.insert(id.clone());
        }
    }

    fn newest_sources(&self, id: &Id) -> Vec<Id> {
        let newest = match self.rows.get(id) {
            Some(row) => Some(&row.record),
            None => self.past_of.get(id).and_then(|seqs| {
                seqs.iter()
                    .rev()
                    .find_map(|seq| self.past.get(seq)?.record.as_ref())
            }),
        };
        let sources = newest.map(|record| record.derived_from.clone());
        sources.unwrap_or_default()
    }

    fn put_row(&mut self, row: Row) {
        let record = &row.record;
        self.by_seq.insert(record.seq, record.id.clone());
        let place = (record.created, record.seq);
        self.by_created.insert(place);
        note_owner(&mut self.by_user, record.owner.user.as_ref(), place);
        note_owner(&mut self.by_session, record.owner.session.as_ref(), place);
        if let Some(expires) = record.expires {
            self.by_expiry.insert((expires, record.id.clone()));
        }
        if record.kind == Kind::Note {
            self.by_worth.insert(Worth::of(record));
        }
        let sort = (record.scope, record.kind, record.namespace);
        *self.groups.entry(sort).or_default() += 1;
        self.rows.insert(record.id.clone(), row);
    }

    fn take_row(&mut self, id: &Id) -> Option<Row> {
        let row = self.rows.remove(id)?;
        let record = &row.record;
        self.by_seq.remove(&record.seq);
        self.removals.push(record.seq);
        let place = (record.created, record.seq);
        self.by_created.remove(&place);
        drop_owner(&mut self.by_user, record.owner.user.as_ref(), place);
        drop_owner(&mut self.by_session, record.owner.session.as_ref(), place);
        if let Some(expires) = record.expires {
            self.by_expiry.remove(&(expires, record.id.clone()));
        }
        self.by_worth.remove(&Worth::of(record));
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
        if let Some(expires) = past.expires {
            self.past_by_expiry.insert((expires, seq));
        }
        self.tombstones += u64::from(past.is_purge());
        self.past.insert(seq, past);
    }

    /// Takes a change out of the history; its record's list of changes is the caller's to mend.
    fn take_past(&mut self, seq: u64) -> Option<Past> {
        let past = self.past.remove(&seq)?;
        if let Some(expires) = past.expires {
            self.past_by_expiry.remove(&(expires, seq));
        }
        self.tombstones -= u64::from(past.is_purge());
        Some(past)
    }

    fn drop_past(&mut self, seq: u64) {
        let Some(id) = self.past.get(&seq).map(|past| past.id.clone()) else {
            return;
        };
        self.unlink(&id);
        self.take_past(seq);
        if let Some(seqs) = self.past_of.get_mut(&id) {
            seqs.remove(&seq);
            if seqs.is_empty() {
                self.past_of.remove(&id);
            }
        }
        self.link(&id);
    }
}

fn note_owner(of: &mut HashMap<String, ByCreation>, name: Option<&String>, place: (Time, u64)) {
    if let Some(name) = name {
        of.entry(name.clone()).or_default().insert(place);
    }
}

fn drop_owner(of: &mut HashMap<String, ByCreation>, name: Option<&String>, place: (Time, u64)) {
    if let Some(name) = name
        && let Some(places) = of.get_mut(name)
    {
        places.remove(&place);
        if places.is_empty() {
            of.remove(name);
        }
    }
}
