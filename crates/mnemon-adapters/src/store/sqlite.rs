//! The default store: one SQLite file that any number of processes share.
//!
//! Writes go through one thread per handle, which commits everything that is waiting in one
//! transaction: eight writers share one fsync. Reads use a pool of connections of their own and
//! never wait for a writer. What a commit means is decided in core; [`tables`] only moves rows.

mod counts;
mod errors;
mod health;
mod hidden;
mod reads;
mod saved;
mod schema;
mod search;
mod tables;
mod upkeep;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use mnemon_core::embed::ModelId;
use mnemon_core::ram::stored;
use mnemon_core::{
    Batch, Candidate, Capabilities, Change, Changes, Embedding, Grant, Hidden, HiddenScan, Id,
    Page, Probe, Recall, Receipt, Record, Scan, Store, StoreError, Tally, Upkept,
};
use rusqlite::Connection;
use tokio::sync::Semaphore;

pub(crate) use health::{examine, repair};
pub use saved::Saving;
use search::Indexes;
use writer::Writer;

/// How many reads of one handle run at once; more wait their turn.
const READERS: usize = 8;
/// So many records of a warm file are read sooner than a thread is woken for them.
const AT_ONCE: usize = 16;

/// A store in one SQLite file.
pub struct Sqlite {
    writer: Writer,
    pool: Arc<Pool>,
    indexes: Arc<Indexes>,
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        self.indexes.finish();
    }
}

impl Sqlite {
    /// Opens the file, and makes it and its folder if they are not there.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_with(path, Saving::default())
    }

    /// The same, and says when the search index is saved beside the file.
    pub fn open_with(path: &Path, saving: Saving) -> Result<Self, StoreError> {
        let connection = schema::open(path)?;
        let pool = Pool {
            path: path.to_owned(),
            idle: Mutex::new(Vec::new()),
            turns: Semaphore::new(READERS),
        };
        Ok(Self {
            writer: Writer::start(connection, path)?,
            pool: Arc::new(pool),
            indexes: Arc::new(Indexes::new(saving)),
        })
    }

    /// Runs a read on a pooled connection, on a thread where it may block.
    async fn read<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection, &str) -> Result<T, StoreError> + Send + 'static,
    {
        let pool = Arc::clone(&self.pool);
        let turn = self.pool.turns.acquire().await;
        let _turn = turn.map_err(|closed| StoreError::Internal(closed.to_string()))?;
        let run = move || pool.with(work);
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => match runtime.spawn_blocking(run).await {
                Ok(result) => result,
                Err(lost) => Err(StoreError::Internal(format!("a read was lost: {lost}"))),
            },
            // Another executor: it has no threads to lend, so the read runs here.
            Err(_) => run(),
        }
    }
}

/// Connections for reading.
struct Pool {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    turns: Semaphore,
}

impl Pool {
    fn with<T>(
        &self,
        work: impl FnOnce(&Connection, &str) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let idle = self.lock().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => schema::open_reader(&self.path)?,
        };
        let result = work(&connection, &self.path.display().to_string());
        self.lock().push(connection);
        result
    }

    /// The same on a connection that is idle; `None` if none is.
    fn with_idle<T>(&self, work: impl FnOnce(&Connection, &str) -> T) -> Option<T> {
        let connection = self.lock().pop()?;
        let result = work(&connection, &self.path.display().to_string());
        self.lock().push(connection);
        Some(result)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Recall for Sqlite {
    async fn find(&self, grant: &Grant, probe: &Probe) -> Result<Vec<Candidate>, StoreError> {
        let at_hand = |connection: &Connection, place: &str| {
            self.indexes.find_at_hand(connection, place, grant, probe)
        };
        if let Some(found) = self.pool.with_idle(at_hand).transpose()?.flatten() {
            return Ok(found);
        }
        let (grant, probe, indexes) = (grant.clone(), probe.clone(), Arc::clone(&self.indexes));
        self.read(move |connection, place| indexes.find(connection, place, &grant, &probe))
            .await
    }

    async fn speakers(&self, grant: &Grant) -> Result<Vec<String>, StoreError> {
        // Every search asks, and should not queue behind what others ask in the meantime.
        let at_hand = |connection: &Connection, place: &str| {
            self.indexes.speakers_at_hand(connection, place, grant)
        };
        if let Some(known) = self.pool.with_idle(at_hand).transpose()?.flatten() {
            return Ok(known);
        }
        let (grant, indexes) = (grant.clone(), Arc::clone(&self.indexes));
        self.read(move |connection, place| indexes.speakers(connection, place, &grant))
            .await
    }

    async fn lacking(
        &self,
        grant: &Grant,
        model: &ModelId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        let (grant, model) = (grant.clone(), model.clone());
        self.read(move |connection, place| {
            search::lacking(connection, place, &grant, &model, after, limit)
        })
        .await
    }

    async fn embed(
        &self,
        grant: &Grant,
        vectors: Vec<(u64, Embedding)>,
    ) -> Result<usize, StoreError> {
        let vectors = vectors.into_iter().map(|(seq, embedding)| {
            let kept = stored(&embedding)?;
            Ok((seq, kept))
        });
        let vectors = vectors.collect::<Result<_, StoreError>>()?;
        self.writer.embed(grant, vectors).await
    }
}

#[async_trait]
impl Store for Sqlite {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            backend: "sqlite",
            durable: true,
            shared: true,
            keeps_vectors: true,
        }
    }

    async fn apply(&self, grant: &Grant, batch: Batch) -> Result<Receipt, StoreError> {
        self.writer.apply(grant, batch).await
    }

    async fn get(&self, grant: &Grant, ids: &[Id]) -> Result<Vec<Option<Record>>, StoreError> {
        if ids.len() <= AT_ONCE {
            let get =
                |connection: &Connection, place: &str| reads::get(connection, place, grant, ids);
            if let Some(records) = self.pool.with_idle(get) {
                return records;
            }
        }
        let (grant, ids) = (grant.clone(), ids.to_vec());
        self.read(move |connection, place| reads::get(connection, place, &grant, &ids))
            .await
    }

    async fn scan(&self, grant: &Grant, scan: &Scan) -> Result<Page, StoreError> {
        let is_empty = |connection: &Connection, place: &str| {
            reads::is_surely_empty(connection, place, grant, scan)
        };
        let read = match self.pool.with_idle(is_empty).transpose()? {
            Some(true) => return Ok(Page::default()),
            Some(false) => reads::walk,
            None => reads::scan,
        };
        let (grant, scan) = (grant.clone(), scan.clone());
        self.read(move |connection, place| read(connection, place, &grant, &scan))
            .await
    }

    async fn hidden(&self, grant: &Grant, scan: &HiddenScan) -> Result<Vec<Hidden>, StoreError> {
        let (grant, scan) = (grant.clone(), scan.clone());
        self.read(move |connection, place| hidden::hidden(connection, place, &grant, &scan))
            .await
    }

    async fn changes(&self, grant: &Grant, changes: &Changes) -> Result<Vec<Change>, StoreError> {
        let (grant, changes) = (grant.clone(), changes.clone());
        self.read(move |connection, place| reads::changes(connection, place, &grant, &changes))
            .await
    }

    async fn tally(&self, grant: &Grant) -> Result<Tally, StoreError> {
        let grant = grant.clone();
        self.read(move |connection, place| reads::tally(connection, place, &grant))
            .await
    }

    async fn upkeep(&self, grant: &Grant, limit: usize) -> Result<Upkept, StoreError> {
        self.writer.upkeep(grant, limit).await
    }
}
