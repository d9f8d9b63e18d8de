//! What a commit means, written once for every store.
//!
//! A store applies batches in groups: [`needs`] says what has to be known about the tenant, the
//! store loads that as a [`View`] in one read, [`plan`] decides without touching the store what
//! becomes of every batch, and the store carries out the [`Plan`] in one write. Both sides are
//! plain data, so a group costs two round trips on any backend. The rules (versions and
//! preconditions, idempotency, provenance, caps, expiry) are in [`planner`].

pub mod closure;

mod needs;
mod planner;
mod replay;
mod request;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

pub use needs::{Grown, Needs, needs};
pub use planner::plan;
pub use request::Request;

use crate::model::{Clock, Id, Kind, Namespace, Record, Scope, Time};
use crate::ports::{Cause, IdempotencyKey, Receipt, StoreError};

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

    fn is_note_in(&self, namespace: Namespace) -> bool {
        self.kind == Kind::Note && self.namespace == namespace
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

/// What a store has under an id. An id without one never had a record, or it was erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// The current version, expired or not.
    Current(Slot),
    /// The record was deleted; this is the version of the deletion.
    Deleted(u64),
}

impl Presence {
    fn slot(self) -> Option<Slot> {
        match self {
            Self::Current(slot) => Some(slot),
            Self::Deleted(_) => None,
        }
    }
}

/// The order in which notes are evicted: by importance, then age, then order of writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Worth {
    pub namespace: Namespace,
    importance: u64,
    created: Time,
    pub seq: u64,
}

impl Worth {
    /// The worth of a note with these fields.
    pub fn new(namespace: Namespace, importance: f64, created: Time, seq: u64) -> Self {
        Self {
            namespace,
            // For numbers between 0 and 1 the bits sort as the numbers do; adding 0 turns -0 into 0.
            importance: (importance + 0.0).to_bits(),
            created,
            seq,
        }
    }

    /// The worth of this record.
    pub fn of(record: &Record) -> Self {
        Self::new(
            record.namespace,
            record.importance,
            record.created,
            record.seq,
        )
    }

    /// No note of the namespace is worth less.
    pub fn least(namespace: Namespace) -> Self {
        Self::new(namespace, 0.0, Time::EPOCH.plus_millis(i64::MIN), 0)
    }
}

/// What a group of batches needs to know about its tenant, loaded at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct View {
    /// The number of the newest change.
    pub last_seq: u64,
    pub clock: Clock,
    /// What is under the ids of [`Needs::ids`] and all ids that are named below.
    pub records: HashMap<Id, Presence>,
    pub receipts: HashMap<String, KeptReceipt>,
    /// Records, current or deleted, whose newest version was derived from this one; sorted.
    pub derived: HashMap<Id, Vec<Id>>,
    /// Records whose derived ones were not loaded, because there were too many.
    pub cut_off: HashSet<Id>,
    /// How many notes there are in each of [`Needs::grown`].
    pub notes: BTreeMap<Namespace, u64>,
    /// The first notes to be evicted.
    pub weakest: BTreeSet<(Worth, Id)>,
    /// The first records to expire, and the first notes of namespaces that may grow over their cap.
    pub expired: BTreeSet<(Time, Id)>,
}

impl View {
    /// Follows the links from the roots that the group needs, breadth first; answers which records
    /// were met, for the caller to load. For stores on which reading the links of one record is
    /// cheap; others do the same in one query.
    pub fn follow(
        &mut self,
        needs: &Needs<'_>,
        mut derived: impl FnMut(&Id) -> Result<Vec<Id>, StoreError>,
    ) -> Result<HashSet<Id>, StoreError> {
        let mut met = HashSet::new();
        for root in &needs.roots {
            let mut open = VecDeque::from([(*root).clone()]);
            let most = met.len() + needs.most_derived;
            while let Some(source) = open.pop_front() {
                if self.derived.contains_key(&source) {
                    continue;
                }
                let found = derived(&source)?;
                let new = found.iter().filter(|id| !met.contains(*id)).count();
                if met.len() + new > most {
                    self.cut_off.insert(source);
                    continue;
                }
                met.extend(found.iter().cloned());
                open.extend(found.iter().cloned());
                self.cut_off.remove(&source);
                self.derived.insert(source, found);
            }
        }
        Ok(met)
    }
}

/// One change of what is stored, in the form a log keeps it. Playing the effects of all commits in
/// order rebuilds the store.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Makes this the current version; one that it replaces moves to the history. What it was
    /// derived from is recorded, and what the replaced version was derived from is not any more.
    Write { entry: Entry, record: Box<Record> },
    /// Moves the current version to the history, and marks there that it was deleted.
    Bury { entry: Entry, id: Id },
    /// The same for a deletion that was copied, under the version that it had: versions before it
    /// may be gone, and so may the record.
    Tombstone {
        entry: Entry,
        id: Id,
        version: u64,
        /// When the version expires that was deleted.
        expires: Option<Time>,
    },
    /// Leaves nothing of the record's content: no version, no history, no links. A purge leaves a
    /// tombstone, which holds the id, for listeners of the change feed.
    Erase { id: Id, purged: Option<Entry> },
    /// Keeps the receipt under its key.
    Receipt {
        key: IdempotencyKey,
        at: Time,
        receipt: Receipt,
    },
    /// History and receipts past their time go.
    Drop { seqs: Vec<u64>, keys: Vec<String> },
}

/// An effect, and the current version that it takes out of its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Move {
    pub effect: Effect,
    pub leaves: Option<Slot>,
}

/// A batch that is to be applied: what to answer, and what to write.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    pub receipt: Receipt,
    /// In the order in which they have to take effect. Moves of different records commute.
    pub moves: Vec<Move>,
}

/// What becomes of a group of batches.
#[derive(Debug)]
pub struct Plan {
    /// One for each request, in order. A request that failed changes nothing.
    pub outcomes: Vec<Result<Planned, StoreError>>,
    /// The number of the newest change, and the clock, afterwards.
    pub last_seq: u64,
    pub clock: Clock,
}
