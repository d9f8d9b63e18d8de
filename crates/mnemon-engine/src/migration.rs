//! Copying a store to another one while it is in use.
//!
//! Changes are copied in the order of their numbers, each batch in one commit of the target, whose
//! newest number is therefore the watermark: a migration that was killed goes on after it. Expiry,
//! retention, vectors that came late and receipts leave no change behind, so [`Migration::verify`]
//! compares both stores page by page, brings the target in line, and hashes what it read of each.

mod sums;

use std::collections::BTreeMap;
use std::sync::Arc;

use mnemon_core::{
    Batch, Clock, CodedVector, Ctx, Grant, Id, Invalid, Policy, Replay, Replica, Right, StoreError,
    StoredChange, StoredPage, StoredReceipt, Tenant, Time,
};
use serde::Serialize;

use sums::Hashes;
pub use sums::Sums;

/// Changes and receipts that are read and written at once.
const PAGE: usize = 1000;
/// How often a page is compared again after the target was brought in line.
const TRIES: usize = 5;

/// Is called with how many more changes were copied or compared.
pub type Watch<'a> = &'a (dyn Fn(u64) + Sync);

/// From one store to another.
pub struct Migration {
    source: Arc<dyn Replica>,
    target: Arc<dyn Replica>,
    ctx: Ctx,
    /// Both stores keep vectors.
    keeps_vectors: bool,
}

/// How far the copy of a tenant has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TenantState {
    pub tenant: Tenant,
    /// Current records of the source.
    pub records: u64,
    /// Its past versions and tombstones.
    pub versions: u64,
    /// The number of its newest change, and of the target's.
    pub seq: u64,
    pub copied_to: u64,
}

impl Migration {
    /// Nothing is read or written yet.
    pub fn new(source: Arc<dyn Replica>, target: Arc<dyn Replica>, ctx: Ctx) -> Self {
        let keeps_vectors =
            source.capabilities().keeps_vectors && target.capabilities().keeps_vectors;
        Self {
            source,
            target,
            ctx,
            keeps_vectors,
        }
    }

    /// Whether vectors are copied; otherwise they are computed again.
    pub fn keeps_vectors(&self) -> bool {
        self.keeps_vectors
    }

    /// The tenants to copy: one, or all of the source. Fails if the target holds data that is not
    /// from the source.
    pub async fn check(&self, only: Option<&Tenant>) -> Result<Vec<TenantState>, StoreError> {
        let all = self.source.tenants(&self.own(Right::Purge)?).await?;
        let tenants = match only {
            None => all,
            Some(tenant) if all.contains(tenant) => vec![tenant.clone()],
            Some(tenant) => {
                let what = format!("the source has no tenant `{tenant}`");
                return Err(Invalid::new("tenant", what).into());
            }
        };
        if only.is_none() {
            for tenant in self.target.tenants(&self.own(Right::Purge)?).await? {
                let read = self.grant(&tenant, Right::Read)?;
                let is_used = self.target.newest_change(&read).await? > 0;
                if is_used && !tenants.contains(&tenant) {
                    let what = "the source has no such tenant; --tenant NAME copies one tenant into a \
                                store that others use";
                    return Err(other_data(&tenant, what));
                }
            }
        }
        let mut states = Vec::with_capacity(tenants.len());
        for tenant in tenants {
            states.push(self.check_tenant(tenant).await?);
        }
        Ok(states)
    }

    async fn check_tenant(&self, tenant: Tenant) -> Result<TenantState, StoreError> {
        let read = self.grant(&tenant, Right::Read)?;
        let tally = self.source.tally(&read).await?;
        let copied_to = self.target.newest_change(&read).await?;
        if copied_to > tally.seq {
            let what = format!(
                "its newest change is {copied_to}, that of the source is {}",
                tally.seq
            );
            return Err(other_data(&tenant, &what));
        }
        let copy = TenantCopy::new(self, &tenant, copied_to)?;
        copy.check().await?;
        Ok(TenantState {
            records: tally.records(),
            versions: tally.history,
            seq: tally.seq,
            copied_to,
            tenant,
        })
    }

    /// Copies the changes that the target does not have yet; the number of the newest one.
    pub async fn catch_up(&self, tenant: &Tenant, watch: Watch<'_>) -> Result<u64, StoreError> {
        let mut copy = self.continued(tenant).await?;
        copy.catch_up(watch).await?;
        Ok(copy.at)
    }

    /// Compares all changes and receipts, and brings the target in line where the source erased,
    /// dropped or embedded something without a change. Fails if anything else differs.
    pub async fn verify(&self, tenant: &Tenant, watch: Watch<'_>) -> Result<Sums, StoreError> {
        let mut copy = self.continued(tenant).await?;
        let mut hashes = Hashes::new(tenant);
        copy.verify_changes(&mut hashes, watch).await?;
        copy.verify_receipts(&mut hashes).await?;
        let seq = copy.at;
        hashes.finish(seq).ok_or_else(|| {
            let what = "the hashes of source and target differ";
            other_data(tenant, what)
        })
    }

    async fn continued(&self, tenant: &Tenant) -> Result<TenantCopy<'_>, StoreError> {
        let read = self.grant(tenant, Right::Read)?;
        let at = self.target.newest_change(&read).await?;
        TenantCopy::new(self, tenant, at)
    }

    fn own(&self, right: Right) -> Result<Grant, StoreError> {
        self.grant(&self.ctx.tenant, right)
    }

    fn grant(&self, tenant: &Tenant, right: Right) -> Result<Grant, StoreError> {
        self.grant_at(tenant, right, self.ctx.now)
    }

    fn grant_at(&self, tenant: &Tenant, right: Right, now: Time) -> Result<Grant, StoreError> {
        let ctx = Ctx {
            tenant: tenant.clone(),
            now,
            ..self.ctx.clone()
        };
        let policy = Policy::default();
        Ok(match tenant.is_system() {
            true => policy.check_system(&ctx, right)?,
            false => policy.check(&ctx, right)?,
        })
    }

    /// A grant to write at the time of the source's clock: a wrong clock of this machine must not
    /// make the target erase anything later.
    fn write_grant(&self, tenant: &Tenant, clock: Clock) -> Result<Grant, StoreError> {
        let now = clock.trusted.unwrap_or(self.ctx.now);
        let grant = self.grant_at(tenant, Right::Purge, now)?;
        Ok(grant.accept_clock())
    }
}

fn other_data(tenant: &Tenant, what: &str) -> StoreError {
    let what = format!(
        "the target already holds other data (tenant `{tenant}`: {what}); name an empty database, \
         file or folder"
    );
    Invalid::new("to", what).into()
}

/// The copy of one tenant.
struct TenantCopy<'a> {
    migration: &'a Migration,
    tenant: Tenant,
    read: Grant,
    /// The number of the target's newest change.
    at: u64,
}

/// Where the target differs from a page of the source.
#[derive(Default)]
struct Difference {
    erased: Vec<Id>,
    dropped: Vec<u64>,
    vectors: Vec<(u64, CodedVector)>,
}

impl Difference {
    fn is_none(&self) -> bool {
        self.erased.is_empty() && self.dropped.is_empty() && self.vectors.is_empty()
    }
}

impl<'a> TenantCopy<'a> {
    fn new(migration: &'a Migration, tenant: &Tenant, at: u64) -> Result<Self, StoreError> {
        Ok(Self {
            read: migration.grant(tenant, Right::Read)?,
            tenant: tenant.clone(),
            migration,
            at,
        })
    }

    async fn source(&self, after: u64) -> Result<StoredPage, StoreError> {
        let source = &self.migration.source;
        source.stored_changes(&self.read, after, PAGE).await
    }

    /// The target's changes after one number and up to another.
    async fn target(
        &self,
        mut after: u64,
        upto: u64,
    ) -> Result<BTreeMap<u64, StoredChange>, StoreError> {
        let mut found = BTreeMap::new();
        while after < upto {
            let target = &self.migration.target;
            let page = target.stored_changes(&self.read, after, PAGE).await?;
            after = page.reached();
            let is_last = !page.more;
            let changes = page.changes.into_iter();
            let meant = changes.filter(|change| change.seq <= upto);
            found.extend(meant.map(|change| (change.seq, change)));
            if is_last {
                break;
            }
        }
        Ok(found)
    }

    /// That what the target has is a copy of the source, as far as its first and its last changes
    /// show it. All others are compared in the end.
    async fn check(&self) -> Result<(), StoreError> {
        if self.at == 0 {
            let target = &self.migration.target;
            let receipts = target.stored_receipts(&self.read, "", 1).await?;
            let source = &self.migration.source;
            let expected = source.stored_receipts(&self.read, "", 1).await?;
            return match receipts.is_empty() || receipts == expected {
                true => Ok(()),
                false => Err(other_data(&self.tenant, "it has receipts of other batches")),
            };
        }
        let mut shared = 0;
        for after in [0, self.at.saturating_sub(PAGE as u64)] {
            let page = self.source(after).await?;
            let upto = page.reached().min(self.at);
            let have = self.target(after, upto).await?;
            let copied = page.changes.iter().filter(|change| change.seq <= upto);
            for change in copied {
                let seq = change.seq;
                match have.get(&seq) {
                    Some(there) if there.is_same(change) => shared += 1,
                    _ => return Err(self.differs(seq)),
                }
            }
        }
        match shared {
            0 => Err(other_data(
                &self.tenant,
                "none of its changes is from the source",
            )),
            _ => Ok(()),
        }
    }

    fn differs(&self, seq: u64) -> StoreError {
        other_data(&self.tenant, &format!("change {seq} differs"))
    }

    async fn apply(&mut self, replay: Replay) -> Result<(), StoreError> {
        let grant = self.migration.write_grant(&self.tenant, replay.clock)?;
        let last_seq = replay.last_seq;
        let target = &self.migration.target;
        target.apply(&grant, Batch::replaying(replay)).await?;
        self.at = last_seq;
        Ok(())
    }

    /// Copies all changes that the source has at this moment.
    async fn catch_up(&mut self, watch: Watch<'_>) -> Result<(), StoreError> {
        loop {
            let page = self.source(self.at).await?;
            let (reached, more) = (page.reached(), page.more);
            if reached == self.at {
                return Ok(());
            }
            let count = page.changes.len() as u64;
            self.apply(Replay {
                after: self.at,
                changes: page.changes,
                last_seq: reached,
                clock: page.clock,
                ..Replay::default()
            })
            .await?;
            watch(count);
            if !more {
                return Ok(());
            }
        }
    }

    async fn verify_changes(
        &mut self,
        hashes: &mut Hashes,
        watch: Watch<'_>,
    ) -> Result<(), StoreError> {
        let mut after = 0;
        loop {
            let (page, have) = self.compared(after).await?;
            let upto = page.reached();
            for change in &page.changes {
                let there = have
                    .get(&change.seq)
                    .ok_or_else(|| self.differs(change.seq))?;
                hashes.add(change, there, self.migration.keeps_vectors);
            }
            watch(page.changes.len() as u64);
            if !page.more {
                return Ok(());
            }
            after = upto;
        }
    }

    /// A page of the source, and the same changes of the target, which was brought in line.
    async fn compared(
        &mut self,
        after: u64,
    ) -> Result<(StoredPage, BTreeMap<u64, StoredChange>), StoreError> {
        for _ in 0..TRIES {
            let page = self.source(after).await?;
            // A change that the source has replaced by now is replaced in the target, too.
            if page.last_seq > self.at {
                self.catch_up(&|_| ()).await?;
            }
            let have = self.target(after, page.reached()).await?;
            let difference = self.difference(&page, &have)?;
            if difference.is_none() {
                return Ok((page, have));
            }
            self.settle(difference, page.clock).await?;
        }
        let what = format!("changes after {after} still differ after {TRIES} tries");
        Err(other_data(&self.tenant, &what))
    }

    async fn settle(&mut self, difference: Difference, clock: Clock) -> Result<(), StoreError> {
        if !difference.erased.is_empty() || !difference.dropped.is_empty() {
            self.apply(Replay {
                after: self.at,
                erased: difference.erased,
                dropped: difference.dropped,
                last_seq: self.at,
                clock,
                ..Replay::default()
            })
            .await?;
        }
        if difference.vectors.is_empty() {
            return Ok(());
        }
        let grant = self.migration.write_grant(&self.tenant, clock)?;
        let target = &self.migration.target;
        target.restore_vectors(&grant, difference.vectors).await
    }

    /// Changes that only the target has were erased or dropped by the source, as numbers are never
    /// given out twice. Changes that only the source has, or that differ, are of another store.
    fn difference(
        &self,
        page: &StoredPage,
        have: &BTreeMap<u64, StoredChange>,
    ) -> Result<Difference, StoreError> {
        let mut difference = Difference::default();
        let mut extra: BTreeMap<u64, &StoredChange> =
            have.iter().map(|(seq, change)| (*seq, change)).collect();
        for change in &page.changes {
            let there = extra.remove(&change.seq);
            let there = there.filter(|there| {
                // The target may know more than the page, but not less.
                let is_known = there.is_current || !change.is_current || self.at > page.last_seq;
                there.is_same(change) && is_known && (change.is_current || !there.is_current)
            });
            let there = there.ok_or_else(|| self.differs(change.seq))?;
            let is_current = change.is_current && there.is_current;
            if self.migration.keeps_vectors && is_current && change.vector != there.vector {
                let vector = change.vector.clone();
                let vector = vector.ok_or_else(|| self.differs(change.seq))?;
                difference.vectors.push((change.seq, vector));
            }
        }
        for (seq, change) in extra {
            match change.is_current {
                true => difference.erased.push(change.id.clone()),
                false => difference.dropped.push(seq),
            }
        }
        Ok(difference)
    }

    async fn verify_receipts(&mut self, hashes: &mut Hashes) -> Result<(), StoreError> {
        let mut after = String::new();
        loop {
            let (wanted, upto) = self.compared_receipts(&after).await?;
            for kept in &wanted {
                hashes.add_receipt(kept);
            }
            match upto {
                Some(upto) => after = upto,
                None => return Ok(()),
            }
        }
    }

    /// A page of receipts that the target has, too, and the last key of it unless it is the last
    /// page.
    async fn compared_receipts(
        &mut self,
        after: &str,
    ) -> Result<(Vec<StoredReceipt>, Option<String>), StoreError> {
        for _ in 0..TRIES {
            let source = &self.migration.source;
            let wanted = source.stored_receipts(&self.read, after, PAGE).await?;
            let is_last = wanted.len() < PAGE;
            let upto = wanted.last().filter(|_| !is_last);
            let upto = upto.map(|last| last.key.name.clone());
            let have = self.target_receipts(after, upto.as_deref()).await?;
            if have == wanted {
                return Ok((wanted, upto));
            }
            let clock = self.source(self.at).await?.clock;
            let is_new = |kept: &StoredReceipt| !have.contains(kept);
            let is_gone = |kept: &&StoredReceipt| !wanted.contains(kept);
            let gone = have.iter().filter(is_gone);
            self.apply(Replay {
                after: self.at,
                dropped_keys: gone.map(|kept| kept.key.name.clone()).collect(),
                receipts: wanted.iter().filter(|kept| is_new(kept)).cloned().collect(),
                last_seq: self.at,
                clock,
                ..Replay::default()
            })
            .await?;
        }
        let what = format!("receipts after `{after}` still differ after {TRIES} tries");
        Err(other_data(&self.tenant, &what))
    }

    async fn target_receipts(
        &self,
        after: &str,
        upto: Option<&str>,
    ) -> Result<Vec<StoredReceipt>, StoreError> {
        let mut found: Vec<StoredReceipt> = Vec::new();
        loop {
            let after = found.last().map_or(after, |last| last.key.name.as_str());
            let target = &self.migration.target;
            let page = target.stored_receipts(&self.read, after, PAGE).await?;
            let is_meant =
                |kept: &StoredReceipt| upto.is_none_or(|upto| kept.key.name.as_str() <= upto);
            let count = page.len();
            found.extend(page.into_iter().filter(is_meant));
            let is_past = found.last().map(|last| last.key.name.as_str()) >= upto;
            if count < PAGE || (upto.is_some() && is_past) {
                return Ok(found);
            }
        }
    }
}
