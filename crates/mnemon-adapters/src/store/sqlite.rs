//! The default store: one SQLite file that any number of processes share.
//!
//! Writes go through one thread per handle, which commits everything that is waiting in one
//! transaction: eight writers share one fsync. Reads use a pool of connections of their own and
//! never wait for a writer. What a commit means is decided in core: [`view`] loads what
//! it needs to know, [`tables`] carries out its plan.

mod backup;
mod counts;
mod embeddings;
mod errors;
mod feed;
mod health;
mod hidden;
mod identity;
mod pool;
mod prepared;
mod reads;
mod removals;
mod replica;
mod salvage;
mod scans;
mod schema;
mod search;
mod snapshot_file;
mod sums;
mod tables;
mod upkeep;
mod view;
mod writer;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use mnemon_core::embed::ModelId;
use mnemon_core::index::stored;
use mnemon_core::{
    Answer, Batch, Capabilities, Change, Changes, Embedding, Filter, Grant, Hidden, HiddenScan, Id,
    IndexCapabilities, IndexUsage, Page, Probe, Receipt, Record, Scan, SearchIndex, SessionCount,
    Store, StoreError, Tally, Upkept, sessions_by_scan,
};

pub(crate) use backup::{backup, check_backup, restore};
pub(crate) use health::{examine, repair};
use identity::FileIds;
pub(crate) use identity::follow_link;
use pool::{Pool, Reader};
use search::Indexes;
pub use snapshot_file::Saving;
use writer::Writer;

/// So many records of a warm file are read sooner than a thread is woken for them.
const AT_ONCE: usize = 16;

/// A store in one SQLite file.
pub struct Sqlite {
    /// `None` if the file can only be read.
    writer: Option<Writer>,
    pool: Arc<Pool>,
    indexes: Arc<Indexes>,
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        self.indexes.finish();
        // The last connection to close the file is the writer's, which checkpoints.
        drop(self.pool.close());
    }
}

impl Sqlite {
    /// Opens the file, and makes it and its folder if they are not there. A file that cannot be
    /// written is opened for reading.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_with(path, Saving::default())
    }

    /// The same, and says when the search index is saved beside the file.
    pub fn open_with(path: &Path, saving: Saving) -> Result<Self, StoreError> {
        let path = &follow_link(path);
        let opened = schema::open_known(path);
        let ids = match &opened {
            Ok(file) => file.ids,
            Err(StoreError::ReadOnly { .. } | StoreError::Unavailable { .. }) => FileIds::of(path),
            Err(_) => FileIds::default(),
        };
        let pool = Arc::new(Pool::new(path, opened.is_ok(), ids));
        let writer = match opened {
            Ok(file) => Some(Writer::start(file, path, Arc::clone(&pool))?),
            Err(error) if ids.main.is_none() => return Err(error),
            // It may be readable nevertheless; if not, that it is read-only says more.
            Err(error) => match (error, schema::open_read_only(path)) {
                (_, Ok(_)) => None,
                (StoreError::ReadOnly { .. }, Err(error)) | (error, Err(_)) => return Err(error),
            },
        };
        Ok(Self {
            writer,
            indexes: Arc::new(Indexes::new(Arc::clone(&pool), saving)),
            pool,
        })
    }

    fn writer(&self) -> Result<&Writer, StoreError> {
        self.writer.as_ref().ok_or_else(|| StoreError::ReadOnly {
            place: self.pool.place.clone(),
        })
    }

    /// Runs a read on a pooled connection, on a thread where it may block.
    async fn read<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Reader<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        let pool = Arc::clone(&self.pool);
        let turn = self.pool.turns.acquire().await;
        let _turn = turn.map_err(|closed| StoreError::Internal(closed.to_string()))?;
        let lost = || Err(StoreError::Internal("a read was lost".to_owned()));
        let result = crate::blocking::run(move || pool.with(work)).await;
        result.unwrap_or_else(lost)
    }
}

#[async_trait]
impl SearchIndex for Sqlite {
    fn capabilities(&self) -> IndexCapabilities {
        IndexCapabilities::BUILT_IN
    }

    async fn find(&self, grant: &Grant, probe: &Probe) -> Result<Answer, StoreError> {
        let at_hand = |reader: &Reader<'_>| self.indexes.find_at_hand(reader, grant, probe);
        if let Some(found) = self.pool.with_idle(at_hand).transpose()?.flatten() {
            return Ok(found);
        }
        self.indexes.find(grant, probe).await
    }

    async fn speakers(
        &self,
        grant: &Grant,
        audience: &Filter,
        words: &[&str],
    ) -> Result<Vec<String>, StoreError> {
        let indexes = &self.indexes;
        // Every search asks, and should not queue behind what others ask in the meantime.
        let at_hand =
            |reader: &Reader<'_>| indexes.speakers_at_hand(reader, grant, audience, words);
        if let Some(found) = self.pool.with_idle(at_hand).transpose()?.flatten() {
            return Ok(found);
        }
        indexes.speakers(grant, audience, words).await
    }

    fn usage(&self) -> IndexUsage {
        self.indexes.usage()
    }
}

#[async_trait]
impl Store for Sqlite {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            backend: "sqlite",
            keeps_vectors: true,
        }
    }

    async fn apply(&self, grant: &Grant, batch: Batch) -> Result<Receipt, StoreError> {
        self.writer()?.apply(grant, batch).await
    }

    async fn get(&self, grant: &Grant, ids: &[Id]) -> Result<Vec<Option<Record>>, StoreError> {
        if ids.len() <= AT_ONCE {
            let get = |reader: &Reader<'_>| reads::get(reader, grant, ids);
            if let Some(records) = self.pool.with_idle(get) {
                return records;
            }
        }
        let (grant, ids) = (grant.clone(), ids.to_vec());
        self.read(move |reader| reads::get(reader, &grant, &ids))
            .await
    }

    async fn scan(&self, grant: &Grant, scan: &Scan) -> Result<Page, StoreError> {
        let is_empty = |reader: &Reader<'_>| scans::is_surely_empty(reader, grant, scan);
        if self.pool.with_idle(is_empty).transpose()? == Some(true) {
            return Ok(Page::default());
        }
        let (grant, scan) = (grant.clone(), scan.clone());
        self.read(move |reader| scans::scan(reader, &grant, &scan))
            .await
    }

    async fn hidden(&self, grant: &Grant, scan: &HiddenScan) -> Result<Vec<Hidden>, StoreError> {
        let (grant, scan) = (grant.clone(), scan.clone());
        self.read(move |reader| hidden::hidden(reader, &grant, &scan))
            .await
    }

    async fn changes(&self, grant: &Grant, changes: &Changes) -> Result<Vec<Change>, StoreError> {
        let (grant, changes) = (grant.clone(), changes.clone());
        self.read(move |reader| reads::changes(reader, &grant, &changes))
            .await
    }

    async fn ids_with_prefix(
        &self,
        grant: &Grant,
        prefix: &str,
        limit: usize,
    ) -> Result<Vec<Id>, StoreError> {
        let (grant, prefix) = (grant.clone(), prefix.to_owned());
        self.read(move |reader| reads::ids_with_prefix(reader, &grant, &prefix, limit))
            .await
    }

    async fn newest_change(&self, grant: &Grant) -> Result<u64, StoreError> {
        let grant = grant.clone();
        self.read(move |reader| reads::newest_change(reader, &grant))
            .await
    }

    async fn tally(&self, grant: &Grant) -> Result<Tally, StoreError> {
        let grant = grant.clone();
        self.read(move |reader| reads::tally(reader, &grant)).await
    }

    async fn sessions(
        &self,
        grant: &Grant,
        filter: &Filter,
    ) -> Result<Vec<SessionCount>, StoreError> {
        let (own, wanted) = (grant.clone(), filter.clone());
        let counted = self.read(move |reader| scans::sessions(reader, &own, &wanted));
        match counted.await? {
            Some(sessions) => Ok(sessions),
            None => sessions_by_scan(self, grant, filter).await,
        }
    }

    async fn upkeep(&self, grant: &Grant, limit: usize) -> Result<Upkept, StoreError> {
        self.writer()?.upkeep(grant, limit).await
    }

    async fn lacking(
        &self,
        grant: &Grant,
        model: &ModelId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        let (grant, model) = (grant.clone(), model.clone());
        self.read(move |reader| embeddings::lacking(reader, &grant, &model, after, limit))
            .await
    }

    async fn embed(
        &self,
        grant: &Grant,
        vectors: Vec<(u64, Embedding)>,
    ) -> Result<usize, StoreError> {
        let vectors = vectors.into_iter();
        let vectors = vectors.map(|(seq, embedding)| Ok((seq, stored(&embedding)?)));
        let vectors = vectors.collect::<Result<_, StoreError>>()?;
        self.writer()?.embed(grant, vectors).await
    }
}
