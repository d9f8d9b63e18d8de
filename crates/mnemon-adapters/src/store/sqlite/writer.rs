//! The one thread of a handle that writes.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use mnemon_core::index::{StoredVector, Terms};
use mnemon_core::ram::stored;
use mnemon_core::{Batch, Grant, Op, Receipt, Record, StoreError, Upkept, commit::commit};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::counts::Counts;
use super::errors::{At, PATIENCE_SECONDS, again};
use super::tables::{FoundBy, FoundBys, SqlTables};

/// Batches that may wait for the writer; a caller beyond that waits to be let in.
const QUEUE: usize = 1024;
/// Batches that share one transaction at the most.
const GROUP: usize = 256;
/// Records that are worth a thread of their own to be analysed; it hands over as many at once.
const WORTH_A_THREAD: usize = 64;
/// How long a purge waits until no reader needs the old pages any more.
const PURGE_PATIENCE: Duration = Duration::from_secs(10);

/// Something to write, and whom to tell. Dropping the receiver does not take the write back.
struct Job {
    grant: Grant,
    work: Work,
}

enum Work {
    Apply(Prepared, oneshot::Sender<Result<Receipt, StoreError>>),
    Upkeep(usize, oneshot::Sender<Result<Upkept, StoreError>>),
    Embed(
        Vec<(u64, StoredVector)>,
        oneshot::Sender<Result<usize, StoreError>>,
    ),
}

/// An answer that is not sent before the transaction is durable.
enum Answer {
    Applied(
        oneshot::Sender<Result<Receipt, StoreError>>,
        Result<Receipt, StoreError>,
    ),
    Upkept(
        oneshot::Sender<Result<Upkept, StoreError>>,
        Result<Upkept, StoreError>,
    ),
    Embedded(
        oneshot::Sender<Result<usize, StoreError>>,
        Result<usize, StoreError>,
    ),
}

impl Answer {
    /// Tells the caller; one who has gone away is not missed.
    fn send(self) {
        match self {
            Self::Applied(caller, result) => drop(caller.send(result)),
            Self::Upkept(caller, result) => drop(caller.send(result)),
            Self::Embedded(caller, result) => drop(caller.send(result)),
        }
    }

    fn is_ok(&self) -> bool {
        match self {
            Self::Applied(_, result) => result.is_ok(),
            Self::Upkept(_, result) => result.is_ok(),
            Self::Embedded(_, result) => result.is_ok(),
        }
    }

    /// The same answer, unless it was good news: then it failed after all.
    fn or_failed(self, error: &StoreError) -> Self {
        match self {
            Self::Applied(caller, Ok(_)) => Self::Applied(caller, Err(again(error))),
            Self::Upkept(caller, Ok(_)) => Self::Upkept(caller, Err(again(error))),
            Self::Embedded(caller, Ok(_)) => Self::Embedded(caller, Err(again(error))),
            failed => failed,
        }
    }
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
        let (caller, answer) = oneshot::channel();
        let prepared = Prepared::from(batch)?;
        self.send(grant, Work::Apply(prepared, caller)).await?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    pub(super) async fn upkeep(&self, grant: &Grant, limit: usize) -> Result<Upkept, StoreError> {
        let (caller, answer) = oneshot::channel();
        self.send(grant, Work::Upkeep(limit, caller)).await?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    pub(super) async fn embed(
        &self,
        grant: &Grant,
        vectors: Vec<(u64, StoredVector)>,
    ) -> Result<usize, StoreError> {
        let (caller, answer) = oneshot::channel();
        self.send(grant, Work::Embed(vectors, caller)).await?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    async fn send(&self, grant: &Grant, work: Work) -> Result<(), StoreError> {
        let grant = grant.clone();
        let jobs = self.jobs.as_ref().ok_or_else(gone)?;
        let sent = jobs.send(Job { grant, work }).await;
        sent.map_err(|_| gone())
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
    fn work(mut self, mut waiting: mpsc::Receiver<Job>) {
        while let Some(first) = waiting.blocking_recv() {
            let mut jobs = vec![first];
            while jobs.len() < GROUP
                && let Ok(job) = waiting.try_recv()
            {
                jobs.push(job);
            }
            for answer in self.group(jobs) {
                answer.send();
            }
        }
    }

    /// Writes the jobs in one transaction. Each succeeds or fails by itself; if the transaction as
    /// a whole fails, nothing of it happened and everyone is told.
    fn group(&mut self, jobs: Vec<Job>) -> Vec<Answer> {
        let purges = jobs.iter().any(Job::purges);
        let alone = jobs.len() == 1;
        let mut jobs = jobs.into_iter();
        let mut answers = Vec::with_capacity(jobs.len());
        let outcome = match self.transact(&mut jobs, &mut answers, alone) {
            Ok(()) if purges => self.leave_no_copy(),
            other => other,
        };
        if let Err(error) = outcome {
            answers = answers
                .into_iter()
                .map(|answer| answer.or_failed(&error))
                .collect();
            answers.extend(jobs.map(|job| job.failed(&error)));
        }
        answers
    }

    fn transact(
        &mut self,
        jobs: &mut impl Iterator<Item = Job>,
        answers: &mut Vec<Answer>,
        alone: bool,
    ) -> Result<(), StoreError> {
        let (connection, place) = (&self.connection, self.place.as_str());
        let mut counts = Counts::default();
        run(connection, "BEGIN IMMEDIATE").at(place)?;
        for job in jobs {
            answers.push(job.run(connection, place, alone, &mut counts));
            // On a full disk SQLite takes the whole transaction back by itself; going on would
            // write outside of it.
            if connection.is_autocommit() {
                return Err(StoreError::Unavailable {
                    place: place.to_owned(),
                    what: "nothing was written".to_owned(),
                    source: Box::from("another write of the same moment failed"),
                });
            }
        }
        // With nothing done there is nothing to sync to disk.
        let outcome = if answers.iter().any(Answer::is_ok) {
            let saved = counts.save(connection, place);
            saved.and_then(|()| run(connection, "COMMIT").at(place))
        } else {
            run(connection, "ROLLBACK").at(place)
        };
        if outcome.is_err() && !connection.is_autocommit() {
            // A commit that failed leaves the transaction open.
            run(connection, "ROLLBACK").at(place)?;
        }
        outcome
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

impl Job {
    fn purges(&self) -> bool {
        match &self.work {
            Work::Apply(work, _) => work
                .batch
                .ops
                .iter()
                .any(|op| matches!(op, Op::Purge { .. })),
            Work::Upkeep(..) | Work::Embed(..) => false,
        }
    }

    fn failed(self, error: &StoreError) -> Answer {
        match self.work {
            Work::Apply(_, caller) => Answer::Applied(caller, Err(again(error))),
            Work::Upkeep(_, caller) => Answer::Upkept(caller, Err(again(error))),
            Work::Embed(_, caller) => Answer::Embedded(caller, Err(again(error))),
        }
    }

    /// Does the job. An error goes to its own caller, and what it had done is taken back.
    fn run(self, connection: &Connection, place: &str, alone: bool, counts: &mut Counts) -> Answer {
        let grant = &self.grant;
        match self.work {
            Work::Apply(prepared, caller) => {
                let work = || apply(connection, place, grant, prepared, counts);
                Answer::Applied(caller, guarded(connection, place, alone, work))
            }
            Work::Upkeep(limit, caller) => {
                let work = || {
                    let mut tables = SqlTables::open(connection, place, grant, counts)?;
                    let done = tables.upkeep(grant, limit)?;
                    tables.finish(grant, counts);
                    Ok(done)
                };
                Answer::Upkept(caller, guarded(connection, place, alone, work))
            }
            Work::Embed(vectors, caller) => {
                let work = || SqlTables::open(connection, place, grant, counts)?.embed(vectors);
                Answer::Embedded(caller, guarded(connection, place, alone, work))
            }
        }
    }
}

/// Runs one job of several under a savepoint. A job that is alone needs none: when it fails the
/// whole transaction is rolled back.
fn guarded<T>(
    connection: &Connection,
    place: &str,
    alone: bool,
    work: impl FnOnce() -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    if alone {
        return work();
    }
    run(connection, "SAVEPOINT job").at(place)?;
    let result = work();
    if result.is_err() {
        run(connection, "ROLLBACK TO job").at(place)?;
    }
    run(connection, "RELEASE job").at(place)?;
    result
}

/// Runs a statement that is prepared once: these come with every commit.
fn run(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(drop)
}

fn apply(
    connection: &Connection,
    place: &str,
    grant: &Grant,
    prepared: Prepared,
    counts: &mut Counts,
) -> Result<Receipt, StoreError> {
    let mut tables = SqlTables::open(connection, place, grant, counts)?;
    tables.expect(prepared.found_by);
    let receipt = commit(grant, prepared.batch, &mut tables)?;
    tables.finish(grant, counts);
    Ok(receipt)
}

/// A batch whose words the caller analyses: the one thread that writes has enough to do.
struct Prepared {
    batch: Batch,
    found_by: FoundBys,
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
        let mut found_by = move |record: &Record| FoundBy {
            id: record.id.clone(),
            terms: Terms::of(record).to_bytes(),
            vector: vectors.remove(&record.id),
        };
        if puts.clone().count() < WORTH_A_THREAD {
            let ready: Vec<FoundBy> = puts.map(found_by).collect();
            let found_by = Box::new(ready.into_iter());
            return Ok(Self { batch, found_by });
        }
        // A large batch is analysed while it is written: the writer takes each as it comes.
        let copies: Vec<Record> = puts.cloned().collect();
        let (made, coming) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            // In handfuls: waking the writer for each would cost more than the analysis.
            for handful in copies.chunks(WORTH_A_THREAD) {
                let found_by: Vec<FoundBy> = handful.iter().map(&mut found_by).collect();
                // The writer has gone on without the rest of a batch that failed.
                if made.send(found_by).is_err() {
                    break;
                }
            }
        });
        let found_by = Box::new(coming.into_iter().flatten());
        Ok(Self { batch, found_by })
    }
}
