//! The reference store: everything in memory. It is the oracle that the other stores are compared
//! with, and its [`Image`] is the working memory of the JSONL store.

mod feed;
mod image;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

pub use feed::{Arrival, ImageIndex};
pub use image::{Image, Past};

use crate::model::{Filter, Grant, Id, Page, Record, Right, Scan, Tenant};
use crate::ports::embed::ModelId;
use crate::ports::{
    Answer, Batch, Capabilities, Change, Changes, CodedVector, EmbeddedPage, Embedding, Hidden,
    HiddenScan, IndexCapabilities, Probe, Receipt, Replica, SearchIndex, Store, StoreError,
    StoredPage, StoredReceipt, Tally, Upkept,
};

/// A store that lives as long as the process.
#[derive(Debug, Default)]
pub struct Ram {
    images: Mutex<HashMap<Tenant, Searched>>,
}

/// An image, and the index that follows it.
#[derive(Debug, Default)]
struct Searched {
    image: Image,
    index: ImageIndex,
}

impl Ram {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn with<T>(&self, grant: &Grant, work: impl FnOnce(&mut Image) -> T) -> T {
        self.search(grant, |searched| work(&mut searched.image))
    }

    fn search<T>(&self, grant: &Grant, work: impl FnOnce(&mut Searched) -> T) -> T {
        let mut images = lock(&self.images);
        work(images.entry(grant.tenant().clone()).or_default())
    }
}

/// A panic elsewhere leaves the image as it was between two commits: it can still be read.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl SearchIndex for Ram {
    fn capabilities(&self) -> IndexCapabilities {
        IndexCapabilities::BUILT_IN
    }

    async fn find(&self, grant: &Grant, probe: &Probe) -> Result<Answer, StoreError> {
        self.search(grant, |Searched { image, index }| {
            index.find(image, grant, probe)
        })
    }

    async fn speakers(
        &self,
        grant: &Grant,
        audience: &Filter,
        words: &[&str],
    ) -> Result<Vec<String>, StoreError> {
        grant.require(Right::Read)?;
        self.search(grant, |Searched { image, index }| {
            index.speakers(image, grant, audience, words)
        })
    }
}

#[async_trait]
impl Store for Ram {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            backend: "ram",
            keeps_vectors: true,
        }
    }

    async fn apply(&self, grant: &Grant, mut batch: Batch) -> Result<Receipt, StoreError> {
        let vectors = ImageIndex::arrivals(&mut batch)?;
        self.search(grant, |Searched { image, index }| {
            let receipt = image.commit(grant, batch)?;
            index.keep(image, vectors);
            Ok(receipt)
        })
    }

    async fn get(&self, grant: &Grant, ids: &[Id]) -> Result<Vec<Option<Record>>, StoreError> {
        self.with(grant, |image| image.get(grant, ids))
    }

    async fn scan(&self, grant: &Grant, scan: &Scan) -> Result<Page, StoreError> {
        grant.require(Right::Read)?;
        Ok(self.with(grant, |image| image.scan(grant, scan)))
    }

    async fn hidden(&self, grant: &Grant, scan: &HiddenScan) -> Result<Vec<Hidden>, StoreError> {
        grant.require(Right::Read)?;
        Ok(self.with(grant, |image| image.hidden(grant, scan)))
    }

    async fn changes(&self, grant: &Grant, changes: &Changes) -> Result<Vec<Change>, StoreError> {
        Ok(self.with(grant, |image| image.changes(grant, changes)))
    }

    async fn newest_change(&self, grant: &Grant) -> Result<u64, StoreError> {
        Ok(self.with(grant, |image| image.last_seq()))
    }

    async fn tally(&self, grant: &Grant) -> Result<Tally, StoreError> {
        Ok(self.with(grant, |image| image.tally(grant)))
    }

    async fn upkeep(&self, grant: &Grant, limit: usize) -> Result<Upkept, StoreError> {
        grant.require(Right::Write)?;
        Ok(self.with(grant, |image| image.upkeep(grant, limit)).0)
    }

    async fn lacking(
        &self,
        grant: &Grant,
        model: &ModelId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        self.search(grant, |Searched { image, index }| {
            index.lacking(image, grant, model, after, limit)
        })
    }

    async fn embed(
        &self,
        grant: &Grant,
        vectors: Vec<(u64, Embedding)>,
    ) -> Result<usize, StoreError> {
        grant.require(Right::Write)?;
        self.search(grant, |Searched { image, index }| {
            index.embed(image, vectors)
        })
    }
}

#[async_trait]
impl Replica for Ram {
    async fn tenants(&self, grant: &Grant) -> Result<Vec<Tenant>, StoreError> {
        grant.require(Right::Purge)?;
        let images = lock(&self.images);
        let used = images.iter().filter(|(_, it)| !it.image.is_unused());
        let mut tenants: Vec<Tenant> = used.map(|(tenant, _)| tenant.clone()).collect();
        tenants.sort_by(|a, b| a.as_str().cmp(b.as_str()));
        Ok(tenants)
    }

    async fn stored_changes(
        &self,
        grant: &Grant,
        after: u64,
        limit: usize,
    ) -> Result<StoredPage, StoreError> {
        grant.require(Right::Read)?;
        Ok(self.with(grant, |image| image.stored_changes(after, limit)))
    }

    async fn embedded_after(
        &self,
        grant: &Grant,
        after: u64,
        limit: usize,
    ) -> Result<EmbeddedPage, StoreError> {
        grant.require(Right::Read)?;
        Ok(self.search(grant, |Searched { image, index }| {
            index.embedded_after(image, after, limit)
        }))
    }

    async fn stored_receipts(
        &self,
        grant: &Grant,
        after: &str,
        limit: usize,
    ) -> Result<Vec<StoredReceipt>, StoreError> {
        grant.require(Right::Read)?;
        Ok(self.with(grant, |image| image.stored_receipts(after, limit)))
    }

    /// Vectors of this store end with it, so none are copied.
    async fn restore_vectors(
        &self,
        _: &Grant,
        _: Vec<(u64, CodedVector)>,
    ) -> Result<(), StoreError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
