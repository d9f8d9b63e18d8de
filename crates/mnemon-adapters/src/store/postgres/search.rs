//! Searching: an index in memory for each tenant, which follows the database.
//!
//! Before every search one short query shows whether this or another server has written since.
//! Indexes that were not searched for the longest time are dropped when they exceed the budget.
//! Tenants that do not fit are searched in the database ([`super::index`]).

use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use mnemon_core::index::{Cache, Cursor, Index, TrackedIndex};
use mnemon_core::{Grant, Right, StoreError, Tenant};
use tokio::sync::Semaphore;

use super::errors::Failure;
use super::feed::{self, Moment, Numbers, wait};
use super::pool::{Lease, Pool};
use super::standby::Standby;
use super::url::IndexMode;

/// Indexes that are brought up to the database at once.
const LOADS: usize = 2;

/// The indexes of the tenants that were searched last.
pub(super) struct Indexes {
    pool: Arc<Pool>,
    standby: Option<Arc<Standby>>,
    slots: Mutex<Cache<Tenant, Slot>>,
    loads: Semaphore,
}

/// One tenant's place for an index.
#[derive(Default)]
struct Slot {
    /// Held while the index is brought up to the database; other searches wait without a thread.
    following: tokio::sync::Mutex<()>,
    tracked: RwLock<TrackedIndex>,
}

impl Slot {
    fn read(&self) -> RwLockReadGuard<'_, TrackedIndex> {
        self.tracked.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, TrackedIndex> {
        self.tracked.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn shows(&self, newest: Cursor) -> bool {
        self.read().has_followed(&Numbers(newest))
    }

    /// Brings the index to this moment. Returns its size.
    fn follow(&self, moment: &Moment<'_>) -> Result<usize, StoreError> {
        let is_new = self.read().cursor() == Cursor::default();
        if is_new {
            // Loaded aside: a search that was content with an earlier moment does not wait.
            let mut loaded = TrackedIndex::default();
            loaded.follow(moment)?;
            *self.write() = loaded;
        } else {
            self.write().follow(moment)?;
        }
        if self.read().index().is_stale()
            && let Ok(compacted) = self.read().compacted()
        {
            *self.write() = compacted;
        }
        Ok(self.read().index().bytes())
    }
}

impl Indexes {
    pub(super) fn new(pool: Arc<Pool>, standby: Option<Arc<Standby>>) -> Self {
        Self {
            pool,
            standby,
            slots: Mutex::default(),
            loads: Semaphore::new(LOADS),
        }
    }

    fn slots(&self) -> MutexGuard<'_, Cache<Tenant, Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the index of a tenant with so many records may be in memory.
    fn may_hold(&self, records: usize) -> bool {
        let address = self.pool.address();
        address.index != IndexMode::Database && records <= address.records_in_memory()
    }

    /// Answers by the tenant's index, brought up to the database; the default if it has no records.
    /// `None` if the tenant is to be searched in the database.
    pub(super) async fn ask<T, W>(&self, grant: &Grant, work: W) -> Result<Option<T>, Failure>
    where
        T: Default + Send + 'static,
        W: FnOnce(&Index) -> Result<T, StoreError> + Send + 'static,
    {
        grant.require(Right::Read).map_err(StoreError::from)?;
        if !self.may_hold(0) {
            return Ok(None);
        }
        let mut lease = self.pool.take().await?;
        let newest = feed::newest(&mut lease, grant.tenant()).await?;
        // No connection is held while waiting for another search.
        drop(lease);
        let Some((_, newest)) = newest else {
            return Ok(Some(T::default()));
        };
        if !self.may_hold(newest.records) {
            return Ok(None);
        }
        let budget = grant.limits().index_cache_bytes;
        let slot = self.slots().get_or_default(grant.tenant(), budget);
        if !slot.shows(newest) {
            let _following = slot.following.lock().await;
            if !slot.shows(newest) {
                let bytes = self.follow(grant.tenant(), &slot, newest).await?;
                self.slots().resize(grant.tenant(), &slot, bytes, budget);
            }
        }
        let answer = crate::blocking::run(move || work(slot.read().index())).await;
        Ok(Some(answer.unwrap_or_else(lost)?))
    }

    /// Brings the index up to the primary, from the standby if that shows `newest` already.
    async fn follow(
        &self,
        tenant: &Tenant,
        slot: &Arc<Slot>,
        newest: Cursor,
    ) -> Result<usize, Failure> {
        let turn = self.loads.acquire().await;
        let _turn = turn.map_err(|closed| StoreError::Internal(closed.to_string()))?;
        if let Some(standby) = self.standby.as_ref().filter(|it| it.is_usable()) {
            let followed = follow_on(&standby.pool, tenant, slot, newest).await;
            if let Some(bytes) = standby.accept(followed) {
                return Ok(bytes);
            }
        }
        let followed = follow_on(&self.pool, tenant, slot, Cursor::default()).await?;
        Ok(followed.unwrap_or(0))
    }
}

/// The size of the index after it was brought up to this server; `None` if the server is behind.
async fn follow_on(
    pool: &Pool,
    tenant: &Tenant,
    slot: &Arc<Slot>,
    at_least: Cursor,
) -> Result<Option<usize>, Failure> {
    let mut lease = pool.take().await?;
    lease.keep_to(tenant);
    lease
        .begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        .await?;
    let found = feed::newest(&mut lease, tenant).await?;
    let Some((number, newest)) = found.filter(|(_, newest)| newest.has_seen(&at_least)) else {
        lease.end("ROLLBACK").await?;
        return Ok(None);
    };
    let slot = Arc::clone(slot);
    let followed = crate::blocking::run(move || {
        let moment = Moment {
            lease: RefCell::new(&mut lease),
            tenant: number,
            newest,
        };
        let bytes = slot.follow(&moment)?;
        wait(end(lease))?;
        Ok(Some(bytes))
    });
    followed
        .await
        .unwrap_or_else(|| Err(Failure::Store(gone())))
}

async fn end(mut lease: Lease) -> Result<(), Failure> {
    lease.end("ROLLBACK").await
}

fn gone() -> StoreError {
    StoreError::Internal("a search was lost".to_owned())
}

fn lost<T>() -> Result<T, StoreError> {
    Err(gone())
}
