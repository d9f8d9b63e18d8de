//! An append-only log of JSON lines in a folder, readable by people and by the program that the
//! format comes from.
//!
//! The whole memory of a tenant is held in an [`mnemon_core::ram::Image`]; the log is how it
//! survives. A write is played on the image, appended to the log as lines that count only
//! together, and acknowledged when the disk has it. Several processes may use one folder: whoever
//! writes holds a lock and first reads what the others appended, and a reader looks at the size of
//! the file to see whether it has missed something. `docs/formats.md` describes the lines.
//!
//! It is made for thousands of records, not for millions: opening reads the whole log, and a purge
//! rewrites it.

mod backup;
mod bad;
mod checksum;
mod compact;
mod decode;
mod disk;
mod doctor;
mod encode;
mod folder;
mod foreign;
mod line;
mod notices;
mod reader;
mod replica;
mod state;
mod write;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use mnemon_core::embed::ModelId;
use mnemon_core::ram::{Image, ImageIndex};
use mnemon_core::{
    Answer, Batch, Capabilities, Change, Changes, Embedding, Filter, Grant, Hidden, HiddenScan, Id,
    IndexCapabilities, Page, Probe, Receipt, Record, Right, Scan, SearchIndex, Store, StoreError,
    Tally, Tenant, Upkept,
};

pub(crate) use backup::{backup, check_backup, restore};
pub(crate) use doctor::{examine, repair};
pub use notices::{Notices, Skipped};

use folder::Folder;

/// How many tenants are held in memory at once; others are read again when they are needed.
const TENANTS_HELD: usize = 256;

/// A store of JSON lines in a folder.
#[derive(Debug, Clone)]
pub struct Jsonl {
    shelf: Arc<Shelf>,
}

#[derive(Debug)]
struct Shelf {
    root: PathBuf,
    folders: Mutex<HashMap<Tenant, Arc<Folder>>>,
}

impl Jsonl {
    /// Opens the folder and reads the default tenant's log, if there is one. The folder is made
    /// by the first write.
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        if root.exists() && !root.is_dir() {
            return Err(StoreError::Foreign {
                place: root.display().to_string(),
                what: "it is a file; name the folder that holds memory.jsonl".to_owned(),
            });
        }
        let shelf = Shelf {
            root: root.to_owned(),
            folders: Mutex::default(),
        };
        let folder = shelf.folder(&Tenant::default());
        if root.is_dir() {
            folder.look()?;
        }
        Ok(Self {
            shelf: Arc::new(shelf),
        })
    }

    /// What was noticed so far about the logs that were read.
    pub fn notices(&self) -> Notices {
        let mut all = Notices::default();
        for folder in self.shelf.held().values() {
            all.join(&folder.notices());
        }
        all
    }

    /// Rewrites the tenant's log without its dead lines now, whether that is due or not.
    pub fn compact(&self, tenant: &Tenant) -> Result<(), StoreError> {
        self.shelf.folder(tenant).compact()
    }

    async fn read<T: Send + 'static>(
        &self,
        grant: &Grant,
        work: impl FnOnce(&Image) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        grant.require(Right::Read)?;
        let folder = self.shelf.folder(grant.tenant());
        blocking(move || folder.read(work)).await
    }

    /// Searches the tenant's image with the index that follows it.
    async fn search<T: Send + 'static>(
        &self,
        grant: &Grant,
        work: impl FnOnce(&mut ImageIndex, &Image) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        grant.require(Right::Read)?;
        let folder = self.shelf.folder(grant.tenant());
        blocking(move || folder.search(work)?).await
    }
}

impl Shelf {
    fn held(&self) -> MutexGuard<'_, HashMap<Tenant, Arc<Folder>>> {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn folder(&self, tenant: &Tenant) -> Arc<Folder> {
        let mut folders = self.held();
        if folders.len() >= TENANTS_HELD && !folders.contains_key(tenant) {
            // A folder that nobody is using holds nothing that is not on the disk.
            let idle = folders
                .iter()
                .find(|(_, folder)| Arc::strong_count(folder) == 1);
            if let Some(tenant) = idle.map(|(tenant, _)| tenant.clone()) {
                folders.remove(&tenant);
            }
        }
        let made = || Arc::new(Folder::new(&self.root, tenant.clone()));
        Arc::clone(folders.entry(tenant.clone()).or_insert_with(made))
    }
}

/// Waits for the disk without holding up other tasks; where there is no runtime, there are none.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let lost = || StoreError::Internal("a call of the store panicked".to_owned());
    crate::blocking::run(work).await.ok_or_else(lost)?
}

#[async_trait]
impl SearchIndex for Jsonl {
    fn capabilities(&self) -> IndexCapabilities {
        IndexCapabilities::BUILT_IN
    }

    async fn find(&self, grant: &Grant, probe: &Probe) -> Result<Answer, StoreError> {
        let (held, probe) = (grant.clone(), probe.clone());
        self.search(grant, move |index, image| index.find(image, &held, &probe))
            .await
    }

    async fn speakers(
        &self,
        grant: &Grant,
        audience: &Filter,
        words: &[&str],
    ) -> Result<Vec<String>, StoreError> {
        let (held, audience) = (grant.clone(), audience.clone());
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        self.search(grant, move |index, image| {
            index.speakers(image, &held, &audience, &words)
        })
        .await
    }
}

#[async_trait]
impl Store for Jsonl {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            backend: "jsonl",
            keeps_vectors: false,
        }
    }

    async fn apply(&self, grant: &Grant, mut batch: Batch) -> Result<Receipt, StoreError> {
        let vectors = ImageIndex::arrivals(&mut batch)?;
        let folder = self.shelf.folder(grant.tenant());
        let grant = grant.clone();
        blocking(move || {
            let receipt = folder.apply(grant, batch)?;
            folder.keep_vectors(vectors);
            Ok(receipt)
        })
        .await
    }

    async fn get(&self, grant: &Grant, ids: &[Id]) -> Result<Vec<Option<Record>>, StoreError> {
        let (held, ids) = (grant.clone(), ids.to_vec());
        self.read(grant, move |image| image.get(&held, &ids))
            .await?
    }

    async fn scan(&self, grant: &Grant, scan: &Scan) -> Result<Page, StoreError> {
        let (held, scan) = (grant.clone(), scan.clone());
        self.read(grant, move |image| image.scan(&held, &scan))
            .await
    }

    async fn hidden(&self, grant: &Grant, scan: &HiddenScan) -> Result<Vec<Hidden>, StoreError> {
        let (held, scan) = (grant.clone(), scan.clone());
        self.read(grant, move |image| image.hidden(&held, &scan))
            .await
    }

    async fn changes(&self, grant: &Grant, changes: &Changes) -> Result<Vec<Change>, StoreError> {
        let (held, changes) = (grant.clone(), changes.clone());
        self.read(grant, move |image| image.changes(&held, &changes))
            .await
    }

    async fn newest_change(&self, grant: &Grant) -> Result<u64, StoreError> {
        self.read(grant, |image| image.last_seq()).await
    }

    async fn tally(&self, grant: &Grant) -> Result<Tally, StoreError> {
        let held = grant.clone();
        self.read(grant, move |image| image.tally(&held)).await
    }

    async fn upkeep(&self, grant: &Grant, limit: usize) -> Result<Upkept, StoreError> {
        let folder = self.shelf.folder(grant.tenant());
        let grant = grant.clone();
        blocking(move || folder.upkeep(&grant, limit)).await
    }

    async fn lacking(
        &self,
        grant: &Grant,
        model: &ModelId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        let (held, model) = (grant.clone(), model.clone());
        self.search(grant, move |index, image| {
            index.lacking(image, &held, &model, after, limit)
        })
        .await
    }

    async fn embed(
        &self,
        grant: &Grant,
        vectors: Vec<(u64, Embedding)>,
    ) -> Result<usize, StoreError> {
        grant.require(Right::Write)?;
        self.search(grant, move |index, image| index.embed(image, vectors))
            .await
    }
}
