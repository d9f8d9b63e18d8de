//! What must be true of a store, written as simply as possible.
//!
//! The model is told of every batch that a store was given and of its answer. It decides by
//! itself what the answer had to be, and from then on what the store must show. Where a store has
//! a choice (records that have expired may be erased sooner or later), the model accepts each
//! permitted answer and adopts the one that was given.

mod commit;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use mnemon_core::{Grant, Id, Receipt, Record, Tenant, Time};

use super::OperationId;

/// Every tenant's records as they must be.
#[derive(Default)]
pub struct Model {
    tenants: BTreeMap<Tenant, Tenancy>,
    epoch: u64,
}

/// A moment in the order of commits, to tell what changed while an operation ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    epoch: u64,
}

/// One tenant's records.
#[derive(Default, Clone)]
struct Tenancy {
    entries: BTreeMap<Id, Entry>,
    keys: BTreeMap<String, KeptReceipt>,
    commits: BTreeMap<u64, Vec<Touched>>,
    /// When an id was purged.
    purged: BTreeMap<Id, u64>,
    /// Puts so far: their order decides which of two equal notes is evicted first.
    puts: u64,
}

/// The newest version of one record.
#[derive(Clone)]
struct Entry {
    newest: Arc<Record>,
    /// The number of its newest change; a deletion counts, too.
    version: u64,
    is_deleted: bool,
    /// Whether it is deleted and the receipt leaves open whether it was purged, too.
    may_be_purged: bool,
    /// Whether it is deleted because a cap was reached.
    is_evicted: bool,
    /// When it was changed last, and by which operation.
    changed: u64,
    by: OperationId,
    /// Its place in the order of all puts.
    order: u64,
}

#[derive(Clone)]
struct KeptReceipt {
    digest: String,
    receipt: Receipt,
    at: Time,
}

/// What a record was before a commit changed it.
#[derive(Clone)]
struct Touched {
    id: Id,
    /// `None` if there was no record. Unknown if there was one that had expired.
    before: Result<Option<Arc<Record>>, ()>,
}

impl Entry {
    fn is_live(&self, now: Time) -> bool {
        !self.is_deleted && self.newest.is_live(now)
    }

    /// Whether a store may have erased it already.
    fn may_be_erased(&self, now: Time) -> bool {
        self.may_be_purged || !self.newest.is_live(now)
    }
}

impl Tenancy {
    /// Records that were derived from this one, directly or through others. With a time, only
    /// those that no expiry can have cut off.
    fn derived(&self, id: &Id, only_kept_at: Option<Time>) -> BTreeSet<Id> {
        let mut found = BTreeSet::new();
        let mut open = VecDeque::from([id.clone()]);
        while let Some(source) = open.pop_front() {
            for (derived, entry) in &self.entries {
                let is_kept = only_kept_at.is_none_or(|now| !entry.may_be_erased(now));
                let is_next = entry.newest.derived_from.contains(&source) && derived != id;
                if is_kept && is_next && found.insert(derived.clone()) {
                    open.push_back(derived.clone());
                }
            }
        }
        found
    }
}

impl Model {
    /// The tenants that were written to.
    pub fn tenants(&self) -> impl Iterator<Item = &Tenant> {
        self.tenants.keys()
    }

    /// The records that must be shown at this moment.
    pub fn live(&self, tenant: &Tenant, now: Time) -> impl Iterator<Item = &Record> {
        let tenancy = self.tenants.get(tenant).into_iter();
        let entries = tenancy.flat_map(|tenancy| tenancy.entries.values());
        entries
            .filter(move |entry| entry.is_live(now))
            .map(|entry| entry.newest.as_ref())
    }

    /// All ids that were ever used, purged ones included.
    pub fn ids(&self, tenant: &Tenant) -> Vec<Id> {
        let tenancy = self.tenants.get(tenant).into_iter();
        tenancy
            .flat_map(|t| t.entries.keys().chain(t.purged.keys()).cloned())
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect()
    }

    /// The record that must be shown under this id.
    pub fn get(&self, tenant: &Tenant, id: &Id, now: Time) -> Option<&Record> {
        let entry = self.tenants.get(tenant)?.entries.get(id)?;
        entry.is_live(now).then(|| entry.newest.as_ref())
    }

    /// Whether nothing of this id may be found, not even in the history.
    pub fn is_purged(&self, tenant: &Tenant, id: &Id) -> bool {
        self.tenants
            .get(tenant)
            .is_some_and(|t| t.purged.contains_key(id) && !t.entries.contains_key(id))
    }

    /// Whether the record is deleted, and no expiry can have erased its history.
    pub fn is_deleted(&self, tenant: &Tenant, id: &Id, now: Time) -> bool {
        let entry = self.tenants.get(tenant).and_then(|t| t.entries.get(id));
        entry.is_some_and(|entry| entry.is_deleted && !entry.may_be_erased(now))
    }

    /// Marks the beginning of a read.
    #[must_use]
    pub fn begin(&self) -> Read {
        Read { epoch: self.epoch }
    }

    /// Whether a batch took effect since.
    #[must_use]
    pub fn has_changed(&self, since: Read) -> bool {
        self.epoch != since.epoch
    }

    /// Whether this id was written, deleted or purged since.
    #[must_use]
    pub fn was_touched(&self, tenant: &Tenant, id: &Id, since: Read) -> bool {
        let Some(tenancy) = self.tenants.get(tenant) else {
            return false;
        };
        let changed = tenancy.entries.get(id).map(|entry| entry.changed);
        let latest = changed.max(tenancy.purged.get(id).copied());
        latest.is_some_and(|epoch| epoch > since.epoch)
    }

    /// Whether an answer may contain this record: it is live, or was when the read began.
    pub fn check_shown(
        &self,
        since: Read,
        tenant: &Tenant,
        now: Time,
        shown: &Record,
    ) -> Result<(), String> {
        let id = &shown.id;
        if shown.tenant != *tenant {
            return Err(format!(
                "{id} of tenant {} was shown to {tenant}",
                shown.tenant
            ));
        }
        if !shown.is_live(now) {
            return Err(format!("{id} was shown though it has expired"));
        }
        if self.was_touched(tenant, id, since) {
            return Ok(());
        }
        match self.get(tenant, id, now) {
            Some(live) if same(live, shown) => Ok(()),
            Some(live) => Err(format!(
                "{id} was shown in another version than it has\n  shown: {shown:?}\n   must: {live:?}"
            )),
            None => Err(format!(
                "{id} was shown though it is deleted, purged or never was"
            )),
        }
    }

    /// Whether every record that the condition means, and that was there all the time, is among
    /// those that were shown.
    pub fn check_complete(
        &self,
        since: Read,
        tenant: &Tenant,
        now: Time,
        is_meant: impl Fn(&Record) -> bool,
        shown: &BTreeSet<Id>,
    ) -> Result<(), String> {
        let missing = self.live(tenant, now).find(|record| {
            let is_untouched = !self.was_touched(tenant, &record.id, since);
            is_untouched && is_meant(record) && !shown.contains(&record.id)
        });
        match missing {
            None => Ok(()),
            Some(record) => Err(format!("{} is missing, it is live", record.id)),
        }
    }

    /// The commits that could be undone.
    #[must_use]
    pub fn commits(&self, tenant: &Tenant) -> Vec<u64> {
        let tenancy = self.tenants.get(tenant).into_iter();
        tenancy.flat_map(|t| t.commits.keys().copied()).collect()
    }

    /// Whether all that a commit changed is as it was before, apart from records that another
    /// operation has changed since.
    pub fn check_undone(
        &self,
        tenant: &Tenant,
        commit: u64,
        by: OperationId,
        now: Time,
    ) -> Result<(), String> {
        let Some(tenancy) = self.tenants.get(tenant) else {
            return Ok(());
        };
        for touched in tenancy.commits.get(&commit).into_iter().flatten() {
            let (id, Ok(before)) = (&touched.id, &touched.before) else {
                continue;
            };
            let entry = tenancy.entries.get(id);
            // A note that came back may be evicted in the same commit.
            if entry.is_none_or(|entry| entry.by != by || entry.is_evicted) {
                continue;
            }
            let before = before.as_deref().filter(|record| record.is_live(now));
            let current = self.get(tenant, id, now);
            let is_restored = match (before, current) {
                (Some(before), Some(current)) => same_content(before, current),
                (None, None) => true,
                _ => false,
            };
            if !is_restored {
                return Err(format!(
                    "undo of commit {commit} left {id} as {current:?}, before it was {before:?}"
                ));
            }
        }
        Ok(())
    }

    /// Whether an operation has written or deleted this id last.
    #[must_use]
    pub fn was_changed_by(&self, tenant: &Tenant, id: &Id, by: OperationId) -> bool {
        let entry = self.tenants.get(tenant).and_then(|t| t.entries.get(id));
        entry.is_some_and(|entry| entry.by == by)
    }
}

/// The same version of the same record; `seq` is the store's own.
fn same(a: &Record, b: &Record) -> bool {
    a.version == b.version && same_content(a, b)
}

fn same_content(a: &Record, b: &Record) -> bool {
    let plain = |record: &Record| Record {
        seq: 0,
        version: 0,
        ..record.clone()
    };
    plain(a) == plain(b)
}

/// The limits of a grant in the words of an error.
fn is_too_large(grant: &Grant, ops: usize, cascade: usize, bytes: usize) -> bool {
    let limits = grant.limits();
    ops > limits.batch_ops || cascade > limits.cascade || bytes > limits.batch_bytes
}
