//! The rules: what becomes of each batch of a group.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use super::needs::latest;
use super::{
    Effect, Entry, KeptReceipt, Move, Plan, Planned, Presence, Request, Slot, View, Worth,
};
use crate::error::Invalid;
use crate::model::{Grant, Id, Kind, Namespace, Record, Time, clock};
use crate::ports::{Batch, Cause, Expect, Fate, IdempotencyKey, Op, Outcome, Receipt, StoreError};

/// Decides what becomes of requests of one tenant, given a view that was loaded as
/// [`needs`](super::needs) asks. Each finds what the ones before it did; one that fails leaves no
/// trace.
pub fn plan(view: View, requests: Vec<Request>) -> Plan {
    let mut planner = Planner {
        latest: latest(&requests),
        view,
        sources: HashMap::new(),
        derived: HashMap::new(),
        journal: Journal::default(),
    };
    let outcomes = requests.into_iter().map(|request| planner.run(request));
    Plan {
        outcomes: outcomes.collect(),
        last_seq: planner.view.last_seq,
        clock: planner.view.clock,
    }
}

/// The view, changed by what was planned so far.
struct Planner {
    view: View,
    /// The latest time of any request.
    latest: Time,
    /// What the records that were written or erased are derived from now.
    sources: HashMap<Id, Vec<Id>>,
    /// The same by source. A record that was changed again is still listed here.
    derived: HashMap<Id, BTreeSet<Id>>,
    journal: Journal,
}

/// What the request under way has changed, so that it can be taken back.
#[derive(Default)]
struct Journal {
    last_seq: u64,
    notes: BTreeMap<Namespace, u64>,
    records: Vec<(Id, Option<Presence>)>,
    sources: Vec<(Id, Option<Vec<Id>>)>,
    weakest: Vec<(Worth, Id)>,
}

impl Planner {
    fn run(&mut self, request: Request) -> Result<Planned, StoreError> {
        self.journal = Journal {
            last_seq: self.view.last_seq,
            notes: self.view.notes.clone(),
            ..Journal::default()
        };
        let Request { grant, batch, .. } = request;
        let planned = self.commit(&grant, batch);
        if planned.is_err() {
            self.roll_back();
        }
        planned
    }

    fn roll_back(&mut self) {
        let journal = std::mem::take(&mut self.journal);
        self.view.last_seq = journal.last_seq;
        self.view.notes = journal.notes;
        for (id, before) in journal.records.into_iter().rev() {
            restore(&mut self.view.records, id, before);
        }
        for (id, before) in journal.sources.into_iter().rev() {
            restore(&mut self.sources, id, before);
        }
        // Entries of `expired` and `derived` are compared with the record when they are used.
        for worth in journal.weakest {
            self.view.weakest.remove(&worth);
        }
    }

    fn commit(&mut self, grant: &Grant, batch: Batch) -> Result<Planned, StoreError> {
        if let Some(replay) = batch.replay {
            return super::replay::plan(&mut self.view, *replay);
        }
        if let Some(key) = &batch.key
            && let Some(kept) = self.view.receipts.get(&key.name)
        {
            return repeated(key, kept);
        }
        let first = self.view.last_seq + 1;
        let mut work = Work {
            grant,
            days_ahead: self.view.clock.days_ahead(grant),
            commit: commit_number(batch.continues, first)?,
            planner: self,
            undoes: batch.undoes,
            grown: HashSet::new(),
            is_over: false,
            is_undoable: false,
            cascaded: Vec::new(),
            moves: Vec::with_capacity(batch.ops.len()),
        };
        let mut items = Vec::with_capacity(batch.ops.len());
        for op in batch.ops {
            items.push(work.run(op)?);
        }
        let evicted = work.evict();
        let notices = work.clear_expired();
        let commit = work.is_undoable.then_some(work.commit);
        let (cascaded, mut moves) = (work.cascaded, work.moves);
        let receipt = Receipt {
            commit,
            items,
            cascaded,
            evicted,
            notices,
        };
        if let Some(key) = batch.key {
            moves.push(self.keep_receipt(key, grant.now(), &receipt));
        }
        if !moves.is_empty() {
            let clock = self.view.clock;
            self.view.clock = clock.observe(grant.now(), grant.accepts_clock());
        }
        Ok(Planned { receipt, moves })
    }

    fn keep_receipt(&mut self, key: IdempotencyKey, at: Time, receipt: &Receipt) -> Move {
        let kept = KeptReceipt {
            digest: key.digest.clone(),
            receipt: receipt.clone(),
        };
        self.view.receipts.insert(key.name.clone(), kept);
        let receipt = receipt.clone();
        Move {
            effect: Effect::Receipt { key, at, receipt },
            leaves: None,
        }
    }

    fn slot(&self, id: &Id) -> Option<Slot> {
        self.view.records.get(id)?.slot()
    }

    fn newest_version(&self, id: &Id) -> u64 {
        match self.view.records.get(id) {
            Some(Presence::Current(slot)) => slot.version,
            Some(Presence::Deleted(version)) => *version,
            None => 0,
        }
    }

    fn set(&mut self, id: &Id, presence: Option<Presence>) {
        let before = restore(&mut self.view.records, id.clone(), presence);
        for (presence, grown) in [(before, -1), (presence, 1)] {
            let slot = presence.and_then(Presence::slot);
            if let Some(slot) = slot.filter(|slot| slot.kind == Kind::Note)
                && let Some(count) = self.view.notes.get_mut(&slot.namespace)
            {
                *count = count.saturating_add_signed(grown);
            }
        }
        self.journal.records.push((id.clone(), before));
    }

    fn set_sources(&mut self, id: &Id, sources: &[Id]) {
        for source in sources {
            let derived = self.derived.entry(source.clone()).or_default();
            derived.insert(id.clone());
        }
        let before = self.sources.insert(id.clone(), sources.to_vec());
        self.journal.sources.push((id.clone(), before));
    }

    fn write(&mut self, record: &Record) {
        let id = &record.id;
        // Of a record that never was and has no sources there are no links.
        if !record.derived_from.is_empty() || self.view.records.contains_key(id) {
            self.set_sources(id, &record.derived_from);
        }
        if record.kind == Kind::Note && self.view.notes.contains_key(&record.namespace) {
            let worth = (Worth::of(record), id.clone());
            self.journal.weakest.push(worth.clone());
            self.view.weakest.insert(worth);
        }
        if let Some(expires) = record.expires.filter(|expires| *expires < self.latest) {
            self.view.expired.insert((expires, id.clone()));
        }
        self.set(id, Some(Presence::Current(Slot::of(record))));
    }

    /// Records, current or deleted, whose newest version was derived from this one; sorted. `None`
    /// if they were not loaded.
    fn derived(&self, source: &Id) -> Option<BTreeSet<&Id>> {
        if self.view.cut_off.contains(source) {
            return None;
        }
        let stored = self.view.derived.get(source).into_iter().flatten();
        let stored = stored.filter(|id| !self.sources.contains_key(*id));
        let planned = self.derived.get(source).into_iter().flatten();
        let planned = planned.filter(|id| {
            let sources = self.sources.get(*id);
            sources.is_some_and(|sources| sources.contains(source))
        });
        Some(stored.chain(planned).collect())
    }

    /// Everything derived from the record, directly or through others; nearest first.
    fn downstream(&self, id: &Id, most: usize) -> Result<Vec<Id>, StoreError> {
        let mut seen = HashSet::from([id]);
        let mut found = Vec::new();
        let mut open = VecDeque::from([id]);
        while let Some(source) = open.pop_front() {
            let derived = self.derived(source);
            let is_cut_off = derived.is_none();
            for derived in derived.into_iter().flatten() {
                if seen.insert(derived) {
                    open.push_back(derived);
                    found.push(derived.clone());
                }
            }
            if is_cut_off || found.len() > most {
                return Err(StoreError::TooLarge {
                    what: "records derived from the one to forget",
                    count: found.len().max(most + 1),
                    most,
                });
            }
        }
        Ok(found)
    }

    /// The notes to go first.
    fn weakest(&self, namespace: Namespace, count: usize) -> Vec<(Id, Slot)> {
        let notes = self.view.weakest.iter();
        notes
            .filter_map(|(worth, id)| {
                let slot = self.slot(id)?;
                let is_this = slot.seq == worth.seq && slot.is_note_in(namespace);
                is_this.then(|| (id.clone(), slot))
            })
            .take(count)
            .collect()
    }

    /// Records that expired before `now`: by expiry, then id.
    fn expired(&self, now: Time) -> impl Iterator<Item = (&Id, Slot)> {
        let due = self.view.expired.iter();
        let due = due.take_while(move |(expires, _)| *expires < now);
        due.filter_map(|(expires, id)| {
            let slot = self.slot(id)?;
            (slot.expires == Some(*expires)).then_some((id, slot))
        })
    }
}

/// Puts back what was there, or takes away what was not; answers what is there now.
fn restore<T>(map: &mut HashMap<Id, T>, id: Id, value: Option<T>) -> Option<T> {
    match value {
        Some(value) => map.insert(id, value),
        None => map.remove(&id),
    }
}

/// A commit goes on under the number that it began with.
fn commit_number(continues: Option<u64>, next_seq: u64) -> Result<u64, StoreError> {
    match continues {
        None => Ok(next_seq),
        Some(begun) if (1..next_seq).contains(&begun) => Ok(begun),
        Some(begun) => Err(Invalid::new("continues", format!("there is no commit {begun}")).into()),
    }
}

fn repeated(key: &IdempotencyKey, kept: &KeptReceipt) -> Result<Planned, StoreError> {
    if kept.digest == key.digest {
        return Ok(Planned {
            receipt: kept.receipt.clone(),
            moves: Vec::new(),
        });
    }
    Err(StoreError::KeyReused {
        key: key.name.clone(),
    })
}

/// Why a record is erased. Expiry is no change: listeners read the time in the record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Erasure {
    Expired,
    Purged,
}

/// A batch under way.
struct Work<'a> {
    planner: &'a mut Planner,
    grant: &'a Grant,
    /// How many days the clock is ahead, if it must not erase what has expired.
    days_ahead: Option<i64>,
    /// Under which number the changes stand in the history.
    commit: u64,
    undoes: Option<u64>,
    /// Namespaces that got a note, where a cap may have been passed.
    grown: HashSet<Namespace>,
    /// Whether a cap was passed.
    is_over: bool,
    /// Whether something was written or deleted that undo can take back; a purge is not.
    is_undoable: bool,
    cascaded: Vec<Id>,
    moves: Vec<Move>,
}

impl Work<'_> {
    fn run(&mut self, op: Op) -> Result<Outcome, StoreError> {
        let id = op.id().clone();
        let fate = match op {
            Op::Put { record, expect } => self.put(record, expect)?,
            Op::Delete { id, expect } => self.delete(&id, expect)?,
            Op::Purge { id } => self.purge(&id)?,
        };
        Ok(Outcome { id, fate })
    }

    fn put(&mut self, mut record: Box<Record>, expect: Expect) -> Result<Fate, StoreError> {
        let mut there = self.planner.slot(&record.id);
        self.hold(&record.id, expect, there)?;
        let version = self.planner.newest_version(&record.id) + 1;
        let was_live = there.is_some_and(|slot| slot.is_live(self.grant.now()));
        if there.is_some() && !was_live && self.days_ahead.is_none() {
            // What expired must not live on in the history; only its version number counts on.
            self.erase(&record.id, Erasure::Expired);
            there = None;
        }
        let entry = self.entry(self.undoes.map_or(Cause::Written, Cause::Undone));
        record.seq = entry.seq;
        record.version = version;
        if record.kind == Kind::Note {
            self.grown.insert(record.namespace);
        }
        self.planner.write(&record);
        self.moves.push(Move {
            effect: Effect::Write { entry, record },
            leaves: there,
        });
        Ok(match was_live {
            true => Fate::Updated { version },
            false => Fate::Stored { version },
        })
    }

    fn delete(&mut self, id: &Id, expect: Expect) -> Result<Fate, StoreError> {
        let there = self.planner.slot(id);
        self.hold(id, expect, there)?;
        let Some(slot) = there.filter(|slot| slot.is_live(self.grant.now())) else {
            return Ok(Fate::Missing);
        };
        let cause = self.undoes.map_or(Cause::Forgotten, Cause::Undone);
        self.bury(cause, id, slot);
        // An undo restores what was, and names all that it deletes.
        let derived = match self.undoes {
            Some(_) => Vec::new(),
            None => self.planner.downstream(id, self.grant.limits().cascade)?,
        };
        for derived in derived {
            match self.planner.slot(&derived) {
                Some(slot) if slot.is_live(self.grant.now()) || self.days_ahead.is_some() => {
                    self.bury(Cause::Cascaded(id.clone()), &derived, slot);
                    self.cascaded.push(derived);
                }
                // It was not seen any more, so its deletion is not for the history.
                Some(_) => {
                    self.erase(&derived, Erasure::Expired);
                }
                None => {}
            }
        }
        Ok(Fate::Deleted)
    }

    fn purge(&mut self, id: &Id) -> Result<Fate, StoreError> {
        for derived in self.planner.downstream(id, self.grant.limits().cascade)? {
            if self.erase(&derived, Erasure::Purged) {
                self.cascaded.push(derived);
            }
        }
        Ok(match self.erase(id, Erasure::Purged) {
            true => Fate::Purged,
            false => Fate::Missing,
        })
    }

    /// Expired notes go first and leave no trace; then the weakest, which undo can bring back.
    fn evict(&mut self) -> Vec<Id> {
        let mut evicted = Vec::new();
        for namespace in Namespace::ALL {
            let Some(cap) = self.grant.caps().of(*namespace) else {
                continue;
            };
            let count = self.planner.view.notes.get(namespace);
            let over = count.map_or(0, |count| count.saturating_sub(cap));
            if over == 0 || !self.grown.contains(namespace) {
                continue;
            }
            self.is_over = true;
            let mut over = usize::try_from(over).unwrap_or(usize::MAX);
            if self.days_ahead.is_none() {
                over -= self.erase_expired(over, |slot| slot.is_note_in(*namespace));
            }
            for (id, slot) in self.planner.weakest(*namespace, over) {
                self.bury(Cause::Evicted, &id, slot);
                evicted.push(id);
            }
        }
        evicted
    }

    /// Erases at most so many of the expired records that are `meant`; answers how many.
    fn erase_expired(&mut self, most: usize, meant: impl Fn(&Slot) -> bool) -> usize {
        let due = self.planner.expired(self.grant.now());
        let due = due.filter(|(_, slot)| meant(slot)).take(most);
        let due: Vec<Id> = due.map(|(id, _)| id.clone()).collect();
        for id in &due {
            self.erase(id, Erasure::Expired);
        }
        due.len()
    }

    /// A small slice of housekeeping with every write, for those who never call upkeep, and a
    /// page of it where a cap was passed: finding expired notes among other expired records should
    /// not stay slow. Says so when the clock does not allow it.
    fn clear_expired(&mut self) -> Vec<String> {
        if let Some(days_ahead) = self.days_ahead {
            let is_due = self.planner.expired(self.grant.now()).next().is_some();
            return Vec::from_iter(is_due.then(|| clock::notice(days_ahead)));
        }
        let limits = self.grant.limits();
        let most = match self.is_over {
            true => limits.page,
            false => limits.expired_per_write,
        };
        self.erase_expired(most, |_| true);
        Vec::new()
    }

    fn bury(&mut self, cause: Cause, id: &Id, slot: Slot) {
        let entry = self.entry(cause);
        self.planner
            .set(id, Some(Presence::Deleted(slot.version + 1)));
        self.moves.push(Move {
            effect: Effect::Bury {
                entry,
                id: id.clone(),
            },
            leaves: Some(slot),
        });
    }

    /// Whether there was anything to erase. It is erased in any case: a store may have remains
    /// that it cannot read.
    fn erase(&mut self, id: &Id, why: Erasure) -> bool {
        let there = self.planner.view.records.get(id).copied();
        let is_change = there.is_some() && why == Erasure::Purged;
        let purged = is_change.then(|| self.entry(Cause::Purged));
        self.planner.set_sources(id, &[]);
        self.planner.set(id, None);
        self.moves.push(Move {
            effect: Effect::Erase {
                id: id.clone(),
                purged,
            },
            leaves: there.and_then(Presence::slot),
        });
        there.is_some()
    }

    fn hold(&self, id: &Id, expect: Expect, there: Option<Slot>) -> Result<(), StoreError> {
        let live = there.filter(|slot| slot.is_live(self.grant.now()));
        let current = live.map(|slot| slot.version);
        let expected = match expect {
            Expect::Anything => return Ok(()),
            Expect::Absent if current.is_none() => return Ok(()),
            Expect::Version(version) if current == Some(version) => return Ok(()),
            Expect::Absent => "no record".to_owned(),
            Expect::Version(version) => format!("version {version}"),
        };
        Err(StoreError::Conflict {
            id: id.clone(),
            expected,
            current,
        })
    }

    fn entry(&mut self, cause: Cause) -> Entry {
        self.planner.view.last_seq += 1;
        self.is_undoable |= cause != Cause::Purged;
        Entry {
            seq: self.planner.view.last_seq,
            commit: self.commit,
            at: self.grant.now(),
            actor: self.grant.actor().to_owned(),
            cause,
        }
    }
}
