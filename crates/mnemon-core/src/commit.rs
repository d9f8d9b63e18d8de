//! What a commit means, written once for every store.
//!
//! A backend brings [`Tables`], primitive moves inside one of its own transactions; [`commit`]
//! decides which moves a batch comes to: versions and preconditions, idempotency, provenance,
//! caps, and clearing away what has expired. When it returns an error the backend rolls back, so
//! a batch happens whole or not at all.

use std::collections::{HashSet, VecDeque};

use crate::{
    Batch, Cause, Clock, Expect, Fate, Grant, Id, IdempotencyKey, Invalid, Kind, Namespace, Op,
    Outcome, Receipt, Record, Right, Scope, StoreError, Time, clock, limits,
};

/// The current version of a record, as far as the rules need to know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    pub seq: u64,
    pub version: u64,
    pub scope: Scope,
    pub kind: Kind,
    pub namespace: Namespace,
    pub expires: Option<Time>,
}

impl Slot {
    /// The slot a record fills.
    #[must_use]
    pub fn of(record: &Record) -> Self {
        Self {
            seq: record.seq,
            version: record.version,
            scope: record.scope,
            kind: record.kind,
            namespace: record.namespace,
            expires: record.expires,
        }
    }

    fn is_live(&self, now: Time) -> bool {
        self.expires.is_none_or(|expires| expires >= now)
    }
}

/// Who changed something when, why, and under which numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub seq: u64,
    pub commit: u64,
    pub at: Time,
    pub actor: String,
    pub cause: Cause,
}

/// A receipt kept for its idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptReceipt {
    pub digest: String,
    pub receipt: Receipt,
}

/// One tenant's tables inside one transaction.
pub trait Tables {
    /// The record that is there now, expired or not.
    fn slot(&mut self, id: &Id) -> Result<Option<Slot>, StoreError>;
    /// The newest version of a deleted record; 0 if there never was one.
    fn buried_version(&mut self, id: &Id) -> Result<u64, StoreError>;
    /// The number of the newest change.
    fn last_seq(&mut self) -> Result<u64, StoreError>;
    /// Makes this the current version; one that it replaces moves to the history. What it was
    /// derived from is recorded, and what the replaced version was derived from is not any more.
    fn write(
        &mut self,
        entry: &Entry,
        record: Record,
        replaced: Option<Slot>,
    ) -> Result<(), StoreError>;
    /// Moves the current version to the history, and marks there that it was deleted.
    fn bury(&mut self, entry: &Entry, id: &Id, slot: Slot) -> Result<(), StoreError>;
    /// Leaves nothing of the record: no version, no history, no links. Whether there was anything.
    fn erase(&mut self, id: &Id) -> Result<bool, StoreError>;
    /// Records, current or deleted, whose newest version was derived from this one; sorted.
    fn derived(&mut self, id: &Id) -> Result<Vec<Id>, StoreError>;
    /// How many notes there are.
    fn notes(&mut self, namespace: Namespace) -> Result<u64, StoreError>;
    /// The notes to go first: by importance, then age, then order of writing.
    fn weakest(&mut self, namespace: Namespace, count: usize) -> Result<Vec<Id>, StoreError>;
    /// Records that expired before `now`: by expiry, then id.
    fn expired(&mut self, now: Time, count: usize) -> Result<Vec<Id>, StoreError>;
    /// What the tenant knows of the clock.
    fn clock(&mut self) -> Result<Clock, StoreError>;
    /// Remembers the clock.
    fn keep_clock(&mut self, clock: Clock) -> Result<(), StoreError>;
    /// The receipt kept under this key.
    fn receipt(&mut self, key: &str) -> Result<Option<KeptReceipt>, StoreError>;
    /// Keeps the receipt under its key.
    fn keep_receipt(
        &mut self,
        key: &IdempotencyKey,
        at: Time,
        receipt: &Receipt,
    ) -> Result<(), StoreError>;
}

/// Does what the batch asks, by the rules, or fails and leaves the rolling back to the caller.
pub fn commit(grant: &Grant, batch: Batch, tables: &mut dyn Tables) -> Result<Receipt, StoreError> {
    check(grant, &batch)?;
    if let Some(key) = &batch.key
        && let Some(kept) = tables.receipt(&key.name)?
    {
        return replay(key, kept);
    }
    let first = tables.last_seq()? + 1;
    let clock = tables.clock()?;
    let mut work = Work {
        grant,
        tables,
        days_ahead: clock.days_ahead(grant),
        changed: false,
        next_seq: first,
        commit: commit_number(batch.continues, first)?,
        undoes: batch.undoes,
        grown: HashSet::new(),
        cascaded: Vec::new(),
    };
    let mut items = Vec::with_capacity(batch.ops.len());
    for op in batch.ops {
        items.push(work.run(op)?);
    }
    let evicted = work.evict()?;
    let notices = work.clear_expired()?;
    let changed = work.changed || batch.key.is_some();
    let receipt = Receipt {
        commit: (work.next_seq > first).then_some(work.commit),
        items,
        cascaded: work.cascaded,
        evicted,
        notices,
    };
    if let Some(key) = &batch.key {
        tables.keep_receipt(key, grant.now(), &receipt)?;
    }
    if changed {
        tables.keep_clock(clock.observe(grant.now(), grant.accepts_clock()))?;
    }
    Ok(receipt)
}

/// What can be refused without looking at the tables.
fn check(grant: &Grant, batch: &Batch) -> Result<(), StoreError> {
    grant.require(Right::Write)?;
    // An undo has to restore all that one commit did, or nothing.
    let (most_ops, most_bytes) = match batch.undoes {
        Some(_) => (limits::UNDO_OPS, limits::UNDO_BYTES),
        None => (limits::BATCH_OPS, limits::BATCH_BYTES),
    };
    if batch.ops.len() > most_ops {
        return Err(StoreError::TooLarge {
            what: "operations in a batch",
            count: batch.ops.len(),
            most: most_ops,
        });
    }
    if let Some(key) = &batch.key {
        key.check()?;
    }
    let mut bytes = 0;
    for op in &batch.ops {
        match op {
            Op::Purge { .. } => grant.require(Right::Purge)?,
            Op::Delete { .. } => {}
            Op::Put { record, .. } => {
                check_tenant(grant, record)?;
                record.check()?;
                bytes += record.weight();
            }
        }
    }
    if bytes > most_bytes {
        return Err(StoreError::TooLarge {
            what: "bytes in a batch",
            count: bytes,
            most: most_bytes,
        });
    }
    Ok(())
}

fn check_tenant(grant: &Grant, record: &Record) -> Result<(), StoreError> {
    if record.tenant == *grant.tenant() {
        return Ok(());
    }
    Err(crate::Denied::Tenant(record.tenant.clone()).into())
}

/// A commit goes on under the number that it began with.
fn commit_number(continues: Option<u64>, next_seq: u64) -> Result<u64, StoreError> {
    match continues {
        None => Ok(next_seq),
        Some(begun) if (1..next_seq).contains(&begun) => Ok(begun),
        Some(begun) => Err(Invalid::new("continues", format!("there is no commit {begun}")).into()),
    }
}

fn replay(key: &IdempotencyKey, kept: KeptReceipt) -> Result<Receipt, StoreError> {
    if kept.digest == key.digest {
        return Ok(kept.receipt);
    }
    Err(StoreError::KeyReused {
        key: key.name.clone(),
    })
}

/// A batch under way.
struct Work<'a> {
    grant: &'a Grant,
    tables: &'a mut dyn Tables,
    /// How many days the clock is ahead, if it must not erase what has expired.
    days_ahead: Option<i64>,
    /// Whether any move was made.
    changed: bool,
    next_seq: u64,
    /// Under which number the changes stand in the history.
    commit: u64,
    undoes: Option<u64>,
    /// Namespaces that got a note, where a cap may have been passed.
    grown: HashSet<Namespace>,
    cascaded: Vec<Id>,
}

impl Work<'_> {
    fn run(&mut self, op: Op) -> Result<Outcome, StoreError> {
        let id = op.id().clone();
        let fate = match op {
            Op::Put { record, expect } => self.put(*record, expect)?,
            Op::Delete { id, expect } => self.delete(&id, expect)?,
            Op::Purge { id } => self.purge(&id)?,
        };
        Ok(Outcome { id, fate })
    }

    fn put(&mut self, mut record: Record, expect: Expect) -> Result<Fate, StoreError> {
        let mut there = self.tables.slot(&record.id)?;
        self.hold(&record.id, expect, there)?;
        let before = match there {
            Some(slot) => slot.version,
            None => self.tables.buried_version(&record.id)?,
        };
        let was_live = there.is_some_and(|slot| slot.is_live(self.grant.now()));
        if there.is_some() && !was_live && self.days_ahead.is_none() {
            // What expired must not live on in the history; only its version number counts on.
            self.erase(&record.id)?;
            there = None;
        }
        let entry = self.entry(self.undoes.map_or(Cause::Written, Cause::Undone));
        record.seq = entry.seq;
        record.version = before + 1;
        let version = record.version;
        if record.kind == Kind::Note {
            self.grown.insert(record.namespace);
        }
        self.changed = true;
        self.tables.write(&entry, record, there)?;
        Ok(match was_live {
            true => Fate::Updated { version },
            false => Fate::Stored { version },
        })
    }

    fn delete(&mut self, id: &Id, expect: Expect) -> Result<Fate, StoreError> {
        let there = self.tables.slot(id)?;
        self.hold(id, expect, there)?;
        let Some(slot) = there.filter(|slot| slot.is_live(self.grant.now())) else {
            return Ok(Fate::Missing);
        };
        let entry = self.entry(self.undoes.map_or(Cause::Forgotten, Cause::Undone));
        self.bury(&entry, id, slot)?;
        for derived in self.downstream(id)? {
            match self.tables.slot(&derived)? {
                Some(slot) if slot.is_live(self.grant.now()) || self.days_ahead.is_some() => {
                    let entry = self.entry(Cause::Cascaded(id.clone()));
                    self.bury(&entry, &derived, slot)?;
                    self.cascaded.push(derived);
                }
                // It was not seen any more, so its deletion is not for the history.
                Some(_) => {
                    self.erase(&derived)?;
                }
                None => {}
            }
        }
        Ok(Fate::Deleted)
    }

    fn purge(&mut self, id: &Id) -> Result<Fate, StoreError> {
        for derived in self.downstream(id)? {
            if self.erase(&derived)? {
                self.cascaded.push(derived);
            }
        }
        Ok(if self.erase(id)? {
            Fate::Purged
        } else {
            Fate::Missing
        })
    }

    /// Everything derived from the record, directly or through others; nearest first.
    fn downstream(&mut self, id: &Id) -> Result<Vec<Id>, StoreError> {
        let mut seen = HashSet::from([id.clone()]);
        let mut found = Vec::new();
        let mut open = VecDeque::from([id.clone()]);
        while let Some(source) = open.pop_front() {
            for derived in self.tables.derived(&source)? {
                if seen.insert(derived.clone()) {
                    open.push_back(derived.clone());
                    found.push(derived);
                }
            }
            if found.len() > limits::CASCADE {
                return Err(StoreError::TooLarge {
                    what: "records derived from the one to forget",
                    count: found.len(),
                    most: limits::CASCADE,
                });
            }
        }
        Ok(found)
    }

    /// Expired notes go first and leave no trace; then the weakest, which undo can bring back.
    fn evict(&mut self) -> Result<Vec<Id>, StoreError> {
        let mut evicted = Vec::new();
        for namespace in Namespace::ALL {
            let Some(cap) = self.grant.caps().of(*namespace) else {
                continue;
            };
            if !self.grown.contains(namespace) {
                continue;
            }
            let count = self.tables.notes(*namespace)?;
            let mut over = usize::try_from(count.saturating_sub(cap)).unwrap_or(usize::MAX);
            if over > 0 && self.days_ahead.is_none() {
                over -= self.clear_expired_notes(*namespace, over)?;
            }
            for id in self.tables.weakest(*namespace, over)? {
                if let Some(slot) = self.tables.slot(&id)? {
                    let entry = self.entry(Cause::Evicted);
                    self.bury(&entry, &id, slot)?;
                    evicted.push(id);
                }
            }
        }
        Ok(evicted)
    }

    fn clear_expired_notes(
        &mut self,
        namespace: Namespace,
        most: usize,
    ) -> Result<usize, StoreError> {
        let mut cleared = 0;
        // Expired records of other kinds may stand in between: they go as well.
        while cleared < most {
            let batch = self.tables.expired(self.grant.now(), limits::PAGE)?;
            if batch.is_empty() {
                break;
            }
            for id in batch {
                let note = self
                    .tables
                    .slot(&id)?
                    .is_some_and(|slot| slot.kind == Kind::Note && slot.namespace == namespace);
                self.erase(&id)?;
                cleared += usize::from(note);
            }
        }
        Ok(cleared.min(most))
    }

    /// A small slice of housekeeping with every write, for those who never call upkeep. Says so
    /// when the clock does not allow it.
    fn clear_expired(&mut self) -> Result<Vec<String>, StoreError> {
        let expired = self
            .tables
            .expired(self.grant.now(), limits::EXPIRED_PER_WRITE)?;
        if let Some(days_ahead) = self.days_ahead.filter(|_| !expired.is_empty()) {
            return Ok(vec![clock::notice(days_ahead)]);
        }
        for id in expired {
            self.erase(&id)?;
        }
        Ok(Vec::new())
    }

    fn bury(&mut self, entry: &Entry, id: &Id, slot: Slot) -> Result<(), StoreError> {
        self.changed = true;
        self.tables.bury(entry, id, slot)
    }

    fn erase(&mut self, id: &Id) -> Result<bool, StoreError> {
        self.changed = true;
        self.tables.erase(id)
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
        let seq = self.next_seq;
        self.next_seq += 1;
        Entry {
            seq,
            commit: self.commit,
            at: self.grant.now(),
            actor: self.grant.actor().to_owned(),
            cause,
        }
    }
}
