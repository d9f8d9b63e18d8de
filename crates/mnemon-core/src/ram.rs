//! The reference store: everything in memory. It is the oracle that the other stores are compared
//! with, and its [`Image`] is the working memory of the JSONL store.

mod image;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

pub use image::{Committed, Effect, Image, Past, WayBack};

use crate::{
    Batch, Capabilities, Change, Changes, Grant, Id, Match, Page, Probe, Receipt, Record, Right,
    Scan, Store, StoreError, Tally, Tenant, Upkept,
};

/// A store that lives as long as the process.
#[derive(Debug, Default)]
pub struct Ram {
    images: Mutex<HashMap<Tenant, Image>>,
}

impl Ram {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn with<T>(&self, grant: &Grant, work: impl FnOnce(&mut Image) -> T) -> T {
        let mut images = lock(&self.images);
        work(images.entry(grant.tenant().clone()).or_default())
    }
}

/// A panic elsewhere leaves the image as it was between two commits: it can still be read.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl Store for Ram {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            backend: "ram",
            durable: false,
            shared: false,
            words: false,
            meaning: false,
        }
    }

    async fn apply(&self, grant: &Grant, batch: Batch) -> Result<Receipt, StoreError> {
        self.with(grant, |image| image.commit(grant, batch))
            .map(|done| done.receipt)
    }

    async fn get(&self, grant: &Grant, ids: &[Id]) -> Result<Vec<Option<Record>>, StoreError> {
        self.with(grant, |image| image.get(grant, ids))
    }

    async fn scan(&self, grant: &Grant, scan: &Scan) -> Result<Page, StoreError> {
        grant.require(Right::Read)?;
        Ok(self.with(grant, |image| image.scan(grant, scan)))
    }

    async fn find(&self, _grant: &Grant, _probe: &Probe) -> Result<Vec<Match>, StoreError> {
        Err(StoreError::Unsupported {
            backend: "ram",
            what: "search",
        })
    }

    async fn changes(&self, grant: &Grant, changes: &Changes) -> Result<Vec<Change>, StoreError> {
        Ok(self.with(grant, |image| image.changes(grant, changes)))
    }

    async fn tally(&self, grant: &Grant) -> Result<Tally, StoreError> {
        Ok(self.with(grant, |image| image.tally(grant)))
    }

    async fn upkeep(&self, grant: &Grant, limit: usize) -> Result<Upkept, StoreError> {
        grant.require(Right::Write)?;
        Ok(self.with(grant, |image| image.upkeep(grant, limit)).0)
    }
}

#[cfg(test)]
mod tests;
