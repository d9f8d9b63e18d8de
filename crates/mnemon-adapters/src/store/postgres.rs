//! A store in a PostgreSQL database, which any number of servers share.
//!
//! A group of batches costs two round trips: [`view`] loads what core needs to know, [`apply`]
//! writes its plan and commits. The row of the tenant is locked in between, so tenants never wait
//! for each other and the changes of a tenant become visible in the order of their numbers.
//!
//! Connections are driven by a runtime of the store's own, so the store works on every executor,
//! and a caller that goes away cancels no write.

mod apply;
mod claims;
mod embeddings;
mod errors;
mod feed;
mod health;
mod hidden;
mod index;
mod job;
mod pool;
mod reads;
mod replica;
mod row_security;
mod rows;
mod schema;
mod search;
mod standby;
mod tls;
mod upkeep;
mod url;
mod view;
mod wake;
mod writer;

use std::collections::HashSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use mnemon_core::embed::ModelId;
use mnemon_core::index::{stored, wrong_vector};
use mnemon_core::{
    Answer, Batch, Capabilities, Change, ChangeHandler, Changes, Claim, Claimed, Embedding, Filter,
    Grant, Hidden, HiddenScan, Id, IndexCapabilities, Order, Page, Probe, Receipt, Record, Scan,
    SearchIndex, SessionCount, SessionWindow, Store, StoreError, Tally, Upkept, sessions_by_scan,
};
use tokio::runtime::Runtime;

use crate::health::Finding;
use errors::Failure;
use index::DatabaseIndex;
use pool::Pool;
pub(crate) use replica::has_no_tables;
use search::Indexes;
use standby::Standby;
use url::Address;
use wake::Wake;
use writer::{RECONNECT, Writer};

/// Threads that drive the connections.
const THREADS: usize = 2;

/// A store in a PostgreSQL database.
pub struct Postgres {
    writer: Option<Writer>,
    wake: Wake,
    indexes: Indexes,
    database: Arc<DatabaseIndex>,
    standby: Option<Arc<Standby>>,
    pool: Arc<Pool>,
    runtime: Option<Runtime>,
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // First the writer, which waits until accepted batches are written.
        drop(self.writer.take());
        self.wake.finish();
        if let Some(runtime) = self.runtime.take() {
            // Waiting for its threads is not allowed inside another runtime.
            runtime.shutdown_background();
        }
    }
}

/// Does a read. If the connection was lost, it is done again on another one.
macro_rules! read {
    ($self:ident, |$lease:ident| $work:expr) => {
        read!($self, async {
            let mut $lease = $self.pool.take().await?;
            $work.await
        })
    };
    ($self:ident, $work:expr) => {{
        let since = Instant::now();
        loop {
            let outcome = $work.await;
            match outcome {
                Err(failure) if failure.is_lost() && since.elapsed() < RECONNECT => {
                    $self.pool.forget_idle();
                    $self.pause().await;
                }
                outcome => {
                    break outcome.map_err(|failure: Failure| failure.at(&$self.pool.place));
                }
            }
        }
    }};
}

use read;

impl Postgres {
    /// Connects to the database that the URL names, and makes or migrates the tables.
    pub fn open(url: &str) -> Result<Self, StoreError> {
        let store = Self::connect(url)?;
        let pool = Arc::clone(&store.pool);
        store.block_on(async move {
            schema::migrate(&pool).await?;
            let prepared = async {
                index::pending::reset_limit(&pool).await?;
                index::near::prepare(&pool).await
            };
            prepared.await.map_err(|failure| failure.at(&pool.place))
        })?;
        Ok(store)
    }

    fn connect(url: &str) -> Result<Self, StoreError> {
        let address = Address::of(url)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("mnemon-postgres")
            .enable_all()
            .build()
            .map_err(|error| {
                let what = "the threads for its connections cannot be started";
                crate::store::unavailable(&address.place, what, error)
            })?;
        let pool = Arc::new(Pool::new(address, runtime.handle().clone())?);
        let standby = pool.of_standby()?.map(|pool| Standby::new(Arc::new(pool)));
        let standby = standby.map(Arc::new);
        let wake = Wake::new(Arc::clone(&pool));
        let writer = Writer::new(Arc::clone(&pool), runtime.handle().clone(), wake.clone());
        Ok(Self {
            writer: Some(writer),
            wake,
            indexes: Indexes::new(Arc::clone(&pool), standby.clone()),
            database: Arc::new(DatabaseIndex::new(Arc::clone(&pool), standby.clone())),
            standby,
            pool,
            runtime: Some(runtime),
        })
    }

    /// Waits for work on our runtime, whether or not this thread belongs to another one.
    fn block_on<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let lost = || StoreError::Internal("the runtime has ended".to_owned());
        let (sender, receiver) = std::sync::mpsc::channel();
        self.runtime.as_ref().ok_or_else(lost)?.spawn(async move {
            // The receiver waits until there is an answer.
            let _ = sender.send(work.await);
        });
        receiver.recv().unwrap_or_else(|_| Err(lost()))
    }

    fn writer(&self) -> Result<&Writer, StoreError> {
        let closed = || StoreError::Internal("the store is closed".to_owned());
        self.writer.as_ref().ok_or_else(closed)
    }

    /// A moment before the next try, on our timer.
    async fn pause(&self) {
        let sleep = self.runtime.as_ref().map(|runtime| {
            let _ours = runtime.enter();
            tokio::time::sleep(std::time::Duration::from_millis(100))
        });
        if let Some(sleep) = sleep {
            sleep.await;
        }
    }

    /// The newest records that the probe's filter means.
    async fn newest(&self, grant: &Grant, probe: &Probe) -> Result<Answer, StoreError> {
        let mut scan = Scan::new(probe.filter.clone(), probe.depth.min(grant.limits().page));
        let mut matches = Vec::new();
        loop {
            let page = self.scan(grant, &scan).await?;
            let left = probe.depth - matches.len();
            matches.extend(page.records.iter().take(left).map(index::describe));
            match page.next {
                Some(next) if matches.len() < probe.depth => scan.after = Some(next),
                _ => break,
            }
        }
        Ok(Answer {
            matches,
            ..Answer::default()
        })
    }

    /// The records that a filter means which only whole records can answer.
    async fn meant(&self, grant: &Grant, filter: &Filter) -> Result<HashSet<u64>, StoreError> {
        let mut scan = Scan {
            order: Order::Written,
            ..Scan::new(filter.clone(), grant.limits().page)
        };
        let mut seqs = HashSet::new();
        loop {
            let page = self.scan(grant, &scan).await?;
            seqs.extend(page.records.iter().map(|record| record.seq));
            match page.next {
                Some(next) => scan.after = Some(next),
                None => return Ok(seqs),
            }
        }
    }
}

/// Looks at the database without using it. Returns its place and the findings.
pub(crate) fn examine(url: &str) -> Result<(String, Vec<Finding>), StoreError> {
    let store = Postgres::connect(url)?;
    let (pool, standby) = (Arc::clone(&store.pool), store.standby.clone());
    let findings = store.block_on(async move {
        let findings = async {
            let mut lease = pool.take().await?;
            let mut findings = health::examine(&mut lease, pool.address()).await?;
            if let Some(standby) = standby {
                findings.push(standby.examine().await);
            }
            Ok(findings)
        };
        let findings: Result<Vec<Finding>, Failure> = findings.await;
        findings.map_err(|failure| failure.at(&pool.place))
    })?;
    Ok((store.pool.place.clone(), findings))
}

#[async_trait]
impl SearchIndex for Postgres {
    fn capabilities(&self) -> IndexCapabilities {
        IndexCapabilities::BUILT_IN
    }

    async fn find(&self, grant: &Grant, probe: &Probe) -> Result<Answer, StoreError> {
        let filter = &probe.filter;
        let within = match filter.needs_records() {
            true => Some(Arc::new(self.meant(grant, filter).await?)),
            false => None,
        };
        let now = grant.now();
        let found = read!(self, {
            let (probe, within) = (probe.clone(), within.clone());
            self.indexes.ask(grant, move |index| {
                let found = index.find(&probe, now, within.as_deref());
                found.map_err(|error| wrong_vector(&error))
            })
        })?;
        match found {
            Some(found) => Ok(found),
            None if probe.terms.is_empty()
                && probe.vectors.is_empty()
                && probe.asked.is_empty() =>
            {
                self.newest(grant, probe).await
            }
            None => read!(self, self.database.find(grant, probe, within.clone())),
        }
    }

    async fn speakers(
        &self,
        grant: &Grant,
        audience: &Filter,
        words: &[&str],
    ) -> Result<Vec<String>, StoreError> {
        let now = grant.now();
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let found = read!(self, {
            let (audience, words) = (audience.clone(), words.clone());
            self.indexes.ask(grant, move |index| {
                Ok(index.speakers(&audience, &words, now))
            })
        })?;
        match found {
            Some(found) => Ok(found),
            None => read!(self, |lease| index::speakers(
                &mut lease, grant, audience, &words
            )),
        }
    }
}

#[async_trait]
impl Store for Postgres {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            backend: "postgres",
            keeps_vectors: true,
        }
    }

    async fn apply(&self, grant: &Grant, batch: Batch) -> Result<Receipt, StoreError> {
        self.writer()?.apply(grant, batch).await
    }

    async fn get(&self, grant: &Grant, ids: &[Id]) -> Result<Vec<Option<Record>>, StoreError> {
        read!(self, |lease| reads::get(&mut lease, grant, ids))
    }

    async fn scan(&self, grant: &Grant, scan: &Scan) -> Result<Page, StoreError> {
        read!(self, |lease| reads::scan(&mut lease, grant, scan))
    }

    async fn hidden(&self, grant: &Grant, scan: &HiddenScan) -> Result<Vec<Hidden>, StoreError> {
        read!(self, |lease| hidden::hidden(&mut lease, grant, scan))
    }

    async fn changes(&self, grant: &Grant, changes: &Changes) -> Result<Vec<Change>, StoreError> {
        read!(self, |lease| reads::changes(&mut lease, grant, changes))
    }

    async fn ids_with_prefix(
        &self,
        grant: &Grant,
        prefix: &str,
        limit: usize,
    ) -> Result<Vec<Id>, StoreError> {
        read!(self, |lease| reads::ids_with_prefix(
            &mut lease, grant, prefix, limit
        ))
    }

    async fn newest_change(&self, grant: &Grant) -> Result<u64, StoreError> {
        read!(self, |lease| reads::newest_change(&mut lease, grant))
    }

    async fn tally(&self, grant: &Grant) -> Result<Tally, StoreError> {
        read!(self, |lease| reads::tally(&mut lease, grant))
    }

    async fn sessions(
        &self,
        grant: &Grant,
        filter: &Filter,
    ) -> Result<Vec<SessionCount>, StoreError> {
        let counted = read!(self, |lease| reads::sessions(&mut lease, grant, filter))?;
        match counted {
            Some(sessions) => Ok(sessions),
            None => sessions_by_scan(self, grant, filter).await,
        }
    }

    async fn neighbours(
        &self,
        grant: &Grant,
        ids: &[Id],
        reach: usize,
    ) -> Result<Vec<Option<SessionWindow>>, StoreError> {
        read!(self, |lease| reads::neighbours(
            &mut lease, grant, ids, reach
        ))
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
        read!(self, |lease| embeddings::lacking(
            &mut lease, grant, model, after, limit
        ))
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

    async fn claim(&self, grant: &Grant, claim: &Claim<'_>) -> Result<Claimed, StoreError> {
        read!(self, |lease| claims::claim(&mut lease, grant, claim))
    }

    fn listen(&self, handler: ChangeHandler) {
        self.wake.listen(handler);
    }

    fn hears_others(&self) -> bool {
        self.wake.hears()
    }
}
