//! The one thread of a handle that writes.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use mnemon_core::index::{StoredVector, Terms};
use mnemon_core::ram::stored;
use mnemon_core::{Batch, Grant, Id, Op, Receipt, Record, StoreError, Upkept, commit::commit};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::counts::Counts;
use super::errors::{At, PATIENCE_SECONDS, again};
use super::saved;
use super::tables::{FoundBy, FoundBys, Hot, SqlTables};

/// Batches that may wait for the writer; a caller beyond that waits to be let in.
const QUEUE: usize = 1024;
/// Batches that share one transaction at the most.
const GROUP: usize = 256;
/// Operations of a batch that is analysed while it is written, in handfuls of as many, and that
/// has its transaction to itself.
const LARGE: usize = 64;
/// How long a group waits for those who were in the one before it.
const LINGER: Duration = Duration::from_micros(100);
/// Pages that the write-ahead log gathers before they are moved into the file, 16 MB of them. The
/// same few pages change again and again: the longer it waits, the more often they move as one.
const CHECKPOINT: i64 = 4000;
/// How long a purge waits until no reader needs the old pages any more.
const PURGE_PATIENCE: Duration = Duration::from_secs(10);

/// Something to write, and whom to tell. Dropping the receiver does not take the write back.
struct Job {
    grant: Grant,
    work: Work,
    /// Whether something is erased for good.
    purges: bool,
    /// Whether it gains nothing by sharing a transaction, and should not be done twice.
    large: bool,
    caller: oneshot::Sender<Result<Done, StoreError>>,
}

enum Work {
    Apply(Prepared),
    Upkeep(usize),
    Embed(Vec<(u64, StoredVector)>),
}

/// What became of a job.
enum Done {
    Applied(Receipt),
    Upkept(Upkept),
    Embedded(usize),
}

/// The way to the writing thread. Dropping it waits until everything accepted is written and the
/// file is closed in good order.
pub(super) struct Writer {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // It can only have panicked, and then its callers were told.
            let _ = thread.join();
        }
    }
}

impl Writer {
    pub(super) fn start(connection: Connection, path: &Path) -> Result<Self, StoreError> {
        let (jobs, waiting) = mpsc::channel(QUEUE);
        let place = path.display().to_string();
        connection
            .pragma_update(None, "wal_autocheckpoint", CHECKPOINT)
            .at(&place)?;
        let name = "mnemon-sqlite".to_owned();
        let desk = Desk { connection, place };
        let thread = std::thread::Builder::new()
            .name(name)
            .spawn(move || desk.work(waiting))
            .map_err(|error| StoreError::Unavailable {
                place: path.display().to_string(),
                what: "the writing thread cannot be started".to_owned(),
                source: Box::new(error),
            })?;
        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread),
        })
    }

    pub(super) async fn apply(&self, grant: &Grant, batch: Batch) -> Result<Receipt, StoreError> {
        match self.ask(grant, Work::Apply(Prepared::from(batch)?)).await? {
            Done::Applied(receipt) => Ok(receipt),
            _ => Err(gone()),
        }
    }

    pub(super) async fn upkeep(&self, grant: &Grant, limit: usize) -> Result<Upkept, StoreError> {
        match self.ask(grant, Work::Upkeep(limit)).await? {
            Done::Upkept(upkept) => Ok(upkept),
            _ => Err(gone()),
        }
    }

    pub(super) async fn embed(
        &self,
        grant: &Grant,
        vectors: Vec<(u64, StoredVector)>,
    ) -> Result<usize, StoreError> {
        match self.ask(grant, Work::Embed(vectors)).await? {
            Done::Embedded(taken) => Ok(taken),
            _ => Err(gone()),
        }
    }

    async fn ask(&self, grant: &Grant, work: Work) -> Result<Done, StoreError> {
        let (caller, answer) = oneshot::channel();
        let grant = grant.clone();
        let job = Job {
            grant,
            purges: work.purges(),
            large: work.is_large(),
            work,
            caller,
        };
        let jobs = self.jobs.as_ref().ok_or_else(gone)?;
        jobs.send(job).await.map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }
}

fn gone() -> StoreError {
    StoreError::Internal("the writing thread has ended".to_owned())
}

/// Where the writing is done.
struct Desk {
    connection: Connection,
    place: String,
}

impl Desk {
    fn work(self, mut waiting: mpsc::Receiver<Job>) {
        let mut line = Line::new(&mut waiting);
        let mut hot = Hot::default();
        while let Some(first) = line.first() {
            let mut jobs = vec![first];
            let results = self.group(&mut jobs, &mut line, &mut hot);
            line.before = jobs.len();
            for (job, result) in jobs.into_iter().zip(results) {
                // A caller who has gone away is not missed.
                let _ = job.caller.send(result);
            }
        }
    }

    /// Writes the jobs in one transaction, with those that come in the meantime, and answers each
    /// when it is durable. Each succeeds or fails by itself; if the transaction as a whole fails,
    /// nothing of it happened and everyone is told.
    fn group<'c>(
        &'c self,
        jobs: &mut Vec<Job>,
        line: &mut Line<'_>,
        hot: &mut Hot<'c>,
    ) -> Vec<Result<Done, StoreError>> {
        // Savepoints cost a copy of every page that a job touches. Mostly no job fails: only when
        // one does are they all done again, each under a savepoint.
        let together = self.transact(jobs, &Guard::None, hot, |jobs| line.another(jobs));
        let outcome = match together {
            Ok(results) if jobs.len() > 1 && results.iter().any(Result::is_err) => {
                self.transact(jobs, &Guard::Savepoint, hot, |_| None)
            }
            other => other,
        };
        let outcome = outcome.and_then(|results| {
            if jobs.iter().any(|job| job.purges) {
                self.leave_no_copy()?;
            }
            Ok(results)
        });
        outcome.unwrap_or_else(|error| jobs.iter().map(|_| Err(again(&error))).collect())
    }

    /// What became of each job. Without savepoints nothing is written if one of them failed, and
    /// those after it are not tried. Once the jobs are done, `more` may have another: the first
    /// are written while others are still getting theirs ready.
    fn transact<'c>(
        &'c self,
        jobs: &mut Vec<Job>,
        guard: &Guard,
        hot: &mut Hot<'c>,
        mut more: impl FnMut(&[Job]) -> Option<Job>,
    ) -> Result<Vec<Result<Done, StoreError>>, StoreError> {
        let (connection, place) = (&self.connection, self.place.as_str());
        let mut counts = Counts::default();
        let mut results = Vec::with_capacity(jobs.len());
        run(connection, "BEGIN IMMEDIATE").at(place)?;
        loop {
            let Some(job) = jobs.get_mut(results.len()) else {
                let Some(job) = more(jobs) else { break };
                jobs.push(job);
                continue;
            };
            let last_try = job.large || matches!(guard, Guard::Savepoint);
            let work = |counts: &mut Counts| job.run(connection, place, counts, hot, last_try);
            let result = guard.run(connection, place, &mut counts, work);
            let failed = result.is_err();
            results.push(result);
            // On a full disk SQLite takes the whole transaction back by itself; going on would
            // write outside of it.
            if connection.is_autocommit() {
                return match results.pop() {
                    Some(Err(error)) => Err(error),
                    _ => Err(StoreError::Internal("the transaction has ended".to_owned())),
                };
            }
            if failed && matches!(guard, Guard::None) {
                break;
            }
        }
        // With nothing done there is nothing to sync to disk.
        let outcome = if guard.keeps(&results) {
            let saved = counts.save(connection, place);
            saved.and_then(|()| run(connection, "COMMIT").at(place))
        } else {
            run(connection, "ROLLBACK").at(place)
        };
        if outcome.is_err() && !connection.is_autocommit() {
            // A commit that failed leaves the transaction open.
            run(connection, "ROLLBACK").at(place)?;
        }
        if outcome.is_ok() && guard.keeps(&results) {
            counts.remember(&mut hot.known);
        }
        outcome.map(|()| results)
    }

    /// The write-ahead log still holds the pages as they were. Moves them into the file, where
    /// the erased rows are zeros, and empties the log.
    fn leave_no_copy(&self) -> Result<(), StoreError> {
        let started = Instant::now();
        while started.elapsed() < PURGE_PATIENCE {
            let busy: i64 = self
                .connection
                .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
                .at(&self.place)?;
            if busy == 0 {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(StoreError::Busy {
            place: format!(
                "{} (the records are gone, but a reader still holds the old pages; purge again)",
                self.place
            ),
            seconds: PURGE_PATIENCE.as_secs().min(PATIENCE_SECONDS),
        })
    }
}

/// What is waiting, group by group.
struct Line<'a> {
    waiting: &'a mut mpsc::Receiver<Job>,
    /// One that did not fit into the group before.
    next: Option<Job>,
    /// How many there were in the group before.
    before: usize,
}

impl<'a> Line<'a> {
    fn new(waiting: &'a mut mpsc::Receiver<Job>) -> Self {
        Self {
            waiting,
            next: None,
            before: 0,
        }
    }

    /// The job that a group begins with; `None` when there will be no more.
    fn first(&mut self) -> Option<Job> {
        if let Some(next) = self.next.take() {
            return Some(next);
        }
        // Where several write at once the next is already on its way: sooner here than a thread
        // that sleeps would wake.
        let several = self.before > 1;
        match several.then(|| self.soon(true)).flatten() {
            Some(job) => Some(job),
            None => self.waiting.blocking_recv(),
        }
    }

    /// A job that waits, or with some patience one that comes within a moment.
    fn soon(&mut self, patient: bool) -> Option<Job> {
        let since = Instant::now();
        loop {
            match self.waiting.try_recv() {
                Ok(job) => return Some(job),
                Err(_) if patient && since.elapsed() < LINGER => std::thread::yield_now(),
                Err(_) => return None,
            }
        }
    }

    /// One more that may share the transaction of these.
    fn another(&mut self, jobs: &[Job]) -> Option<Job> {
        if jobs.len() >= GROUP || jobs.iter().any(|job| job.large) {
            return None;
        }
        // Those who were answered just now are about to come back: without a moment's patience
        // the first of them would be synced to disk alone.
        let fewer = jobs.len() < self.before;
        let job = self.soon(fewer)?;
        if job.large {
            self.next = Some(job);
            return None;
        }
        Some(job)
    }
}

impl Work {
    fn purges(&self) -> bool {
        match self {
            Self::Apply(work) => {
                let mut ops = work.batch.ops.iter();
                ops.any(|op| matches!(op, Op::Purge { .. }))
            }
            Self::Upkeep(..) | Self::Embed(..) => false,
        }
    }

    fn is_large(&self) -> bool {
        match self {
            Self::Apply(work) => work.batch.ops.len() >= LARGE,
            Self::Upkeep(..) | Self::Embed(..) => true,
        }
    }
}

impl Job {
    /// Does the job. What is needed to do it again is kept unless this is the last try.
    fn run<'c>(
        &mut self,
        connection: &'c Connection,
        place: &str,
        counts: &mut Counts,
        hot: &mut Hot<'c>,
        last_try: bool,
    ) -> Result<Done, StoreError> {
        let grant = &self.grant;
        let mut tables = SqlTables::open(connection, place, grant, counts, hot)?;
        let done = match &mut self.work {
            Work::Apply(prepared) => {
                let (batch, found_by) = if last_try {
                    std::mem::take(prepared).into_parts()
                } else {
                    prepared.copy().into_parts()
                };
                tables.expect(found_by);
                if self.purges {
                    saved::forget(connection, place, tables.tenant)?;
                }
                Done::Applied(commit(grant, batch, &mut tables)?)
            }
            Work::Upkeep(limit) => {
                let done = tables.upkeep(grant, *limit)?;
                if done.expired + done.history > 0 {
                    saved::forget_old(connection, place, tables.tenant)?;
                }
                Done::Upkept(done)
            }
            Work::Embed(vectors) => Done::Embedded(tables.embed(vectors)?),
        };
        Ok(done)
    }
}

/// How the jobs of a transaction are kept from each other.
enum Guard {
    /// All of them or none.
    None,
    /// One that fails is taken back alone.
    Savepoint,
}

impl Guard {
    fn run<T>(
        &self,
        connection: &Connection,
        place: &str,
        counts: &mut Counts,
        work: impl FnOnce(&mut Counts) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if matches!(self, Self::None) {
            return work(counts);
        }
        let before = counts.clone();
        run(connection, "SAVEPOINT job").at(place)?;
        let result = work(counts);
        if result.is_err() && !connection.is_autocommit() {
            *counts = before;
            run(connection, "ROLLBACK TO job").at(place)?;
        }
        if !connection.is_autocommit() {
            run(connection, "RELEASE job").at(place)?;
        }
        result
    }

    /// Whether the transaction is worth keeping.
    fn keeps<T, E>(&self, results: &[Result<T, E>]) -> bool {
        match self {
            Self::None => results.iter().all(Result::is_ok),
            Self::Savepoint => results.iter().any(Result::is_ok),
        }
    }
}

/// Runs a statement that is prepared once: these come with every commit.
fn run(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(drop)
}

/// A batch whose words the caller analyses: the one thread that writes has enough to do.
#[derive(Default)]
struct Prepared {
    batch: Batch,
    /// What its records are found by.
    ready: Vec<FoundBy>,
    /// The same of a large batch: in the making, while the first are written.
    coming: Option<Receiver<Vec<FoundBy>>>,
}

impl Prepared {
    fn from(mut batch: Batch) -> Result<Self, StoreError> {
        let mut vectors = HashMap::new();
        for (id, embedding) in std::mem::take(&mut batch.vectors) {
            vectors.insert(id, stored(&embedding)?);
        }
        let puts = batch.ops.iter().filter_map(|op| match op {
            Op::Put { record, .. } => Some(record.as_ref()),
            _ => None,
        });
        let words = puts.map(Words::of);
        let mut found_by = move |words: Words| FoundBy {
            terms: words.terms().to_bytes(),
            vector: vectors.remove(&words.id),
            id: words.id,
        };
        if batch.ops.len() < LARGE {
            let ready = words.map(found_by).collect();
            return Ok(Self {
                batch,
                ready,
                coming: None,
            });
        }
        let mut words: VecDeque<Words> = words.collect();
        let (made, coming) = std::sync::mpsc::channel();
        let analyse = move || {
            // In handfuls: waking the writer for each would cost more than the analysis.
            while !words.is_empty() {
                let handful = words.drain(..LARGE.min(words.len()));
                let handful: Vec<FoundBy> = handful.map(&mut found_by).collect();
                // The writer has gone on without the rest of a batch that failed.
                if made.send(handful).is_err() {
                    break;
                }
            }
        };
        match tokio::runtime::Handle::try_current() {
            // A thread that is used again: the analysis remembers words.
            Ok(runtime) => drop(runtime.spawn_blocking(analyse)),
            Err(_) => drop(std::thread::spawn(analyse)),
        }
        Ok(Self {
            batch,
            ready: Vec::new(),
            coming: Some(coming),
        })
    }

    /// A copy of a small one.
    fn copy(&self) -> Self {
        Self {
            batch: self.batch.clone(),
            ready: self.ready.clone(),
            coming: None,
        }
    }

    fn into_parts(self) -> (Batch, FoundBys) {
        let coming = self.coming.into_iter().flatten().flatten();
        (self.batch, Box::new(self.ready.into_iter().chain(coming)))
    }
}

/// What of a record has words, apart from it, so that both can be worked on at once.
struct Words {
    id: Id,
    content: String,
    tags: Vec<String>,
    summary: Option<String>,
}

impl Words {
    fn of(record: &Record) -> Self {
        Self {
            id: record.id.clone(),
            content: record.content.clone(),
            tags: record.tags.clone(),
            summary: record.summary.clone(),
        }
    }

    fn terms(&self) -> Terms {
        Terms::of_words(&self.content, &self.tags, self.summary.as_deref())
    }
}
