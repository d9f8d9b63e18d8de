//! What a batch must do.

use std::collections::BTreeSet;
use std::sync::Arc;

use mnemon_core::{
    Batch, Expect, Fate, Grant, Id, Kind, Namespace, Op, Receipt, Record, StoreError, Time, limits,
};

use super::super::OperationId;
use super::{Entry, KeptReceipt, Model, Tenancy, Touched, is_too_large};

/// A batch in the middle of being judged.
struct Judge<'a> {
    tenancy: &'a mut Tenancy,
    grant: &'a Grant,
    receipt: Option<&'a Receipt>,
    epoch: u64,
    by: OperationId,
    /// The latest moment that anybody has acted at.
    latest: Time,
    touched: Vec<Touched>,
    accounted: BTreeSet<Id>,
    most_cascaded: usize,
    has_changed: bool,
    /// Whether the batch takes a commit back: it names all that it deletes.
    is_undo: bool,
    /// How many operations of the batch delete or purge.
    removals: usize,
    /// Whether a refused batch may or may not have reached a record through an expired one.
    is_uncertain: bool,
}

/// Why an operation could not be done as it was asked.
enum Refused {
    /// What had to be there is not.
    Precondition,
    /// The store answered something that cannot be.
    Wrong(String),
}

impl Model {
    /// A store was given the batch and answered. Whether the answer is right; from now on the
    /// store must show it.
    pub fn applied(
        &mut self,
        by: OperationId,
        latest: Time,
        grant: &Grant,
        batch: &Batch,
        result: &Result<Receipt, StoreError>,
    ) -> Result<(), String> {
        self.epoch += 1;
        let epoch = self.epoch;
        let tenancy = self.tenants.entry(grant.tenant().clone()).or_default();
        if let Some(answer) = tenancy.replayed(grant, batch, result) {
            return answer;
        }
        let mut after = tenancy.clone();
        let mut judge = Judge {
            tenancy: &mut after,
            grant,
            receipt: result.as_ref().ok(),
            epoch,
            by,
            latest,
            touched: Vec::new(),
            accounted: BTreeSet::new(),
            most_cascaded: 0,
            has_changed: false,
            is_undo: batch.undoes.is_some(),
            removals: batch
                .ops
                .iter()
                .filter(|op| !matches!(op, Op::Put { .. }))
                .count(),
            is_uncertain: false,
        };
        let judged = judge.batch(batch);
        let (most_cascaded, is_uncertain) = (judge.most_cascaded, judge.is_uncertain);
        match (result, judged) {
            (Ok(_), Ok(())) => {
                *tenancy = after;
                Ok(())
            }
            (Ok(_), Err(Refused::Precondition)) => {
                Err("a batch was applied whose precondition does not hold".to_owned())
            }
            (Ok(_), Err(Refused::Wrong(what))) => Err(what),
            (Err(StoreError::Conflict { .. }), _) if is_uncertain => Ok(()),
            (Err(error), judged) => explained(error, grant, batch, &judged, most_cascaded),
        }
    }
}

/// Whether the batch gave reason for this error.
fn explained(
    error: &StoreError,
    grant: &Grant,
    batch: &Batch,
    judged: &Result<(), Refused>,
    most_cascaded: usize,
) -> Result<(), String> {
    let puts = || {
        batch.ops.iter().filter_map(|op| match op {
            Op::Put { record, .. } => Some(record),
            _ => None,
        })
    };
    let has_reason = match error {
        StoreError::Conflict { .. } => matches!(judged, Err(Refused::Precondition)),
        StoreError::TooLarge { .. } => {
            let bytes = puts().map(|record| record.weight()).sum();
            is_too_large(grant, batch.ops.len(), most_cascaded, bytes)
        }
        StoreError::Invalid(_) => puts().any(|record| record.check().is_err()),
        StoreError::Denied(_) => puts().any(|record| record.tenant != *grant.tenant()),
        _ => false,
    };
    match has_reason {
        true => Ok(()),
        false => Err(format!("a batch was refused without reason: {error}")),
    }
}

impl Tenancy {
    /// The verdict on a batch whose key was used before; `None` for any other batch.
    fn replayed(
        &mut self,
        grant: &Grant,
        batch: &Batch,
        result: &Result<Receipt, StoreError>,
    ) -> Option<Result<(), String>> {
        let key = batch.key.as_ref()?;
        let kept = self.keys.get(&key.name)?;
        let may_be_dropped = kept.at.plus_days(limits::RECEIPT_DAYS) <= grant.now();
        if kept.digest != key.digest {
            return match result {
                Err(StoreError::KeyReused { .. }) => Some(Ok(())),
                _ if may_be_dropped => self.drop_key(&key.name),
                _ => Some(Err("a key was accepted for another intent".to_owned())),
            };
        }
        match result {
            Ok(receipt) if *receipt == kept.receipt => Some(Ok(())),
            _ if may_be_dropped => self.drop_key(&key.name),
            Ok(_) => Some(Err("a retry with a key was applied again".to_owned())),
            // The limits of the grant are checked before the key is looked up.
            Err(StoreError::TooLarge { .. }) => Some(Ok(())),
            Err(error) => Some(Err(format!("a retry with a key failed: {error}"))),
        }
    }

    fn drop_key(&mut self, name: &str) -> Option<Result<(), String>> {
        self.keys.remove(name);
        None
    }
}

impl Judge<'_> {
    fn batch(&mut self, batch: &Batch) -> Result<(), Refused> {
        let limits = self.grant.limits();
        if self.receipt.is_some() && batch.undoes.is_none() && batch.ops.len() > limits.batch_ops {
            return wrong("a batch of more operations than the limit was applied");
        }
        let mut grown = BTreeSet::new();
        for (index, op) in batch.ops.iter().enumerate() {
            let fate = self.receipt.map(|receipt| receipt.items.get(index));
            let fate = match fate {
                Some(None) => return wrong("the receipt lacks an item"),
                Some(Some(item)) if item.id != *op.id() => {
                    return wrong("the receipt is about another record");
                }
                Some(Some(item)) => Some(&item.fate),
                None => None,
            };
            match op {
                Op::Put { record, expect } => {
                    if record.kind == Kind::Note {
                        grown.insert(record.namespace as usize);
                    }
                    self.put(record, *expect, fate)?;
                }
                Op::Delete { id, expect } => self.delete(id, *expect, fate)?,
                Op::Purge { id } => self.purge(id, fate)?,
            }
        }
        let Some(receipt) = self.receipt else {
            return Ok(());
        };
        if receipt.items.len() != batch.ops.len() {
            return wrong("the receipt has more items than the batch");
        }
        self.evict(receipt, &grown)?;
        self.close(batch, receipt)
    }

    /// The receipt names nothing else, and is kept under its key.
    fn close(&mut self, batch: &Batch, receipt: &Receipt) -> Result<(), Refused> {
        let unknown = receipt
            .cascaded
            .iter()
            .find(|id| !self.accounted.contains(id));
        if let Some(id) = unknown {
            return wrong(format!("{id} was taken along though it was not derived"));
        }
        if receipt.commit.is_some() != self.has_changed {
            return wrong(
                "the receipt has a commit number without a change, or the other way round",
            );
        }
        if let Some(key) = &batch.key {
            let kept = KeptReceipt {
                digest: key.digest.clone(),
                receipt: receipt.clone(),
                at: self.grant.now(),
            };
            self.tenancy.keys.insert(key.name.clone(), kept);
        }
        let Some(commit) = receipt.commit else {
            return Ok(());
        };
        let newest = self.tenancy.commits.keys().next_back().copied();
        match batch.continues {
            Some(begun) if begun != commit => return wrong("a batch continued another commit"),
            None if newest >= Some(commit) => return wrong("a commit number was used again"),
            _ => {}
        }
        let log = self.tenancy.commits.entry(commit).or_default();
        for touched in self.touched.drain(..) {
            if !log.iter().any(|known| known.id == touched.id) {
                log.push(touched);
            }
        }
        Ok(())
    }

    fn put(&mut self, record: &Record, expect: Expect, fate: Option<&Fate>) -> Result<(), Refused> {
        let id = &record.id;
        self.hold(id, expect)?;
        let there = self.tenancy.entries.get(id).cloned();
        let was_live = there.as_ref().is_some_and(|e| e.is_live(self.grant.now()));
        let known = there.as_ref().map_or(0, |entry| entry.version);
        let version = match (fate, was_live) {
            (None, _) => known + 1,
            (Some(Fate::Updated { version }), true) => *version,
            (Some(Fate::Stored { version }), false) => *version,
            (Some(fate), _) => return wrong(format!("the fate of {id} is {fate:?}")),
        };
        let may_restart = there
            .as_ref()
            .is_some_and(|entry| entry.may_be_erased(self.latest));
        // A refused batch does not tell which version it would have got.
        self.is_uncertain |= may_restart && fate.is_none();
        if version != known + 1 && !(may_restart && (1..=known).contains(&version)) {
            return wrong(format!("{id} got version {version} after {known}"));
        }
        self.touch(id);
        self.tenancy.puts += 1;
        let newest = Record {
            seq: 0,
            version,
            ..record.clone()
        };
        let entry = Entry {
            newest: Arc::new(newest),
            version,
            is_deleted: false,
            may_be_purged: false,
            is_evicted: false,
            changed: self.epoch,
            by: self.by,
            order: self.tenancy.puts,
        };
        self.tenancy.entries.insert(id.clone(), entry);
        Ok(())
    }

    fn delete(&mut self, id: &Id, expect: Expect, fate: Option<&Fate>) -> Result<(), Refused> {
        self.hold(id, expect)?;
        let now = self.grant.now();
        let entry = self.tenancy.entries.get(id);
        let is_live = entry.is_some_and(|entry| entry.is_live(now));
        match (is_live, fate) {
            (false, None | Some(Fate::Missing)) => return Ok(()),
            (true, None | Some(Fate::Deleted)) => {}
            (_, Some(fate)) => return wrong(format!("the fate of {id} is {fate:?}")),
        }
        self.touch(id);
        self.bury(id);
        if self.is_undo {
            return Ok(());
        }
        let certain = self.tenancy.derived(id, Some(self.latest));
        let possible = self.tenancy.derived(id, None);
        self.most_cascaded = self.most_cascaded.max(possible.len());
        self.is_uncertain |= self.receipt.is_none() && certain.len() != possible.len();
        for derived in possible {
            let entry = self.tenancy.entries.get(&derived);
            let was_live = entry.is_some_and(|entry| entry.is_live(now));
            let was_there = entry.is_some_and(|entry| !entry.is_deleted);
            let is_listed = self.is_cascaded(&derived);
            if was_live && certain.contains(&derived) && !is_listed {
                return wrong(format!(
                    "{derived} was derived from {id} and not deleted with it"
                ));
            }
            if was_there && is_listed {
                self.accounted.insert(derived.clone());
                self.touch(&derived);
                self.bury(&derived);
            }
        }
        Ok(())
    }

    fn purge(&mut self, id: &Id, fate: Option<&Fate>) -> Result<(), Refused> {
        let certain = self.tenancy.derived(id, Some(self.latest));
        let possible = self.tenancy.derived(id, None);
        self.most_cascaded = self.most_cascaded.max(possible.len());
        self.is_uncertain |= self.receipt.is_none() && certain.len() != possible.len();
        for derived in possible {
            let is_listed = self.is_cascaded(&derived);
            if certain.contains(&derived) && !is_listed {
                return wrong(format!(
                    "{derived} was derived from {id} and not purged with it"
                ));
            }
            // Another operation of the batch may be the reason why it is listed.
            let is_ambiguous = !certain.contains(&derived) && self.removals > 1;
            if let Some(entry) = self.tenancy.entries.get_mut(&derived)
                && is_ambiguous
                && is_listed
            {
                entry.is_deleted = true;
                entry.may_be_purged = true;
                entry.changed = self.epoch;
                self.accounted.insert(derived);
                continue;
            }
            if is_listed {
                self.accounted.insert(derived.clone());
                self.erase(&derived);
            }
        }
        let entry = self.tenancy.entries.get(id);
        let may_be_erased = entry.is_some_and(|entry| entry.may_be_erased(self.latest));
        let is_right = match fate {
            None => true,
            Some(Fate::Purged) => entry.is_some(),
            Some(Fate::Missing) => entry.is_none() || may_be_erased,
            Some(_) => false,
        };
        self.erase(id);
        match is_right {
            true => Ok(()),
            false => wrong(format!("the fate of the purged {id} is {fate:?}")),
        }
    }

    /// Notes that were evicted are the weakest, and no more than needed.
    fn evict(&mut self, receipt: &Receipt, grown: &BTreeSet<usize>) -> Result<(), Refused> {
        for id in &receipt.evicted {
            let entry = self.tenancy.entries.get(id);
            let is_note = entry.is_some_and(|e| !e.is_deleted && e.newest.kind == Kind::Note);
            if !is_note {
                return wrong(format!("{id} was evicted and is no note"));
            }
        }
        for namespace in Namespace::ALL {
            let cap = self.grant.caps().of(*namespace);
            let evicted = self.notes(*namespace, Some(&receipt.evicted));
            match cap.filter(|_| grown.contains(&(*namespace as usize))) {
                Some(cap) => self.evicted_in(*namespace, cap, &evicted, receipt)?,
                None if evicted.is_empty() => {}
                None => return wrong("a note was evicted where there is no cap"),
            }
        }
        for id in &receipt.evicted {
            self.touch(id);
            self.bury(id);
            if let Some(entry) = self.tenancy.entries.get_mut(id) {
                entry.is_evicted = true;
            }
        }
        Ok(())
    }

    fn evicted_in(
        &self,
        namespace: Namespace,
        cap: u64,
        evicted: &[Entry],
        receipt: &Receipt,
    ) -> Result<(), Refused> {
        let now = self.grant.now();
        let is_evicted = |entry: &&Entry| evicted.iter().any(|e| e.newest.id == entry.newest.id);
        let live: Vec<Entry> = self.notes(namespace, None);
        let live: Vec<&Entry> = live.iter().filter(|entry| entry.is_live(now)).collect();
        let over = (live.len() as u64).saturating_sub(cap);
        let count = live.iter().filter(|entry| is_evicted(entry)).count() as u64;
        // While the clock is not trusted, expired notes stay and take up room.
        let is_clock_suspect = !receipt.notices.is_empty();
        if count < over || (count > over && !is_clock_suspect) {
            return wrong(format!(
                "{count} notes were evicted, {over} are over the cap"
            ));
        }
        let worth = |entry: &Entry| {
            let record = &entry.newest;
            (record.importance.to_bits(), record.created, entry.order)
        };
        let strongest_evicted = evicted.iter().map(worth).max();
        let kept = live.iter().filter(|entry| !is_evicted(entry));
        let weakest_kept = kept.map(|entry| worth(entry)).min();
        match (strongest_evicted, weakest_kept) {
            (Some(gone), Some(kept)) if gone > kept => {
                wrong("a stronger note was evicted than one that was kept")
            }
            _ => Ok(()),
        }
    }

    /// The notes that are there, or those of them that are listed.
    fn notes(&self, namespace: Namespace, listed: Option<&[Id]>) -> Vec<Entry> {
        let entries = self.tenancy.entries.values();
        entries
            .filter(|e| !e.is_deleted && e.newest.kind == Kind::Note)
            .filter(|e| e.newest.namespace == namespace)
            .filter(|e| listed.is_none_or(|ids| ids.contains(&e.newest.id)))
            .cloned()
            .collect()
    }

    fn hold(&self, id: &Id, expect: Expect) -> Result<(), Refused> {
        let entry = self.tenancy.entries.get(id);
        let live = entry.filter(|entry| entry.is_live(self.grant.now()));
        let holds = match expect {
            Expect::Anything => true,
            Expect::Absent => live.is_none(),
            Expect::Version(version) => live.is_some_and(|entry| entry.version == version),
        };
        match holds {
            true => Ok(()),
            false => Err(Refused::Precondition),
        }
    }

    /// Whether the store says that it took the record along. Of a batch that was refused it says
    /// nothing: then all are assumed to be.
    fn is_cascaded(&self, id: &Id) -> bool {
        self.receipt
            .is_none_or(|receipt| receipt.cascaded.contains(id))
    }

    /// Notes what the record was before this batch.
    fn touch(&mut self, id: &Id) {
        self.has_changed = true;
        if self.touched.iter().any(|touched| touched.id == *id) {
            return;
        }
        let entry = self.tenancy.entries.get(id).filter(|e| !e.is_deleted);
        let before = match entry {
            None => Ok(None),
            Some(entry) if entry.newest.is_live(self.latest) => Ok(Some(entry.newest.clone())),
            Some(_) => Err(()),
        };
        self.touched.push(Touched {
            id: id.clone(),
            before,
        });
    }

    fn bury(&mut self, id: &Id) {
        if let Some(entry) = self.tenancy.entries.get_mut(id) {
            entry.is_deleted = true;
            entry.version += 1;
            entry.changed = self.epoch;
            entry.by = self.by;
        }
    }

    fn erase(&mut self, id: &Id) {
        self.touched.retain(|touched| touched.id != *id);
        if self.tenancy.entries.remove(id).is_none() {
            return;
        }
        self.tenancy.purged.insert(id.clone(), self.epoch);
        for log in self.tenancy.commits.values_mut() {
            log.retain(|touched| touched.id != *id);
        }
        self.tenancy.commits.retain(|_, log| !log.is_empty());
    }
}

fn wrong<T>(what: impl Into<String>) -> Result<T, Refused> {
    Err(Refused::Wrong(what.into()))
}
