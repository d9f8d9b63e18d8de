//! The one thread of a handle that writes.
//!
//! Before a commit is acknowledged it is compared whether the files that were written are still
//! those at the store's path. If not, the batches are done again in the file that is there now:
//! see [`Standing`].

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use mnemon_core::commit::{needs, plan};
use mnemon_core::index::StoredVector;
use mnemon_core::{Batch, ErrorKind, Grant, Receipt, Right, StoreError, Upkept};
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::counts::Counts;
use super::errors::{At, patience};
use super::identity::{FileIds, Standing};
use super::pool::Pool;
use super::prepared::Prepared;
use super::schema::{self, OpenFile};
use super::snapshot_file;
use super::tables::{Hot, SqlTables};
use crate::store::{again, unavailable};

/// Batches that may wait for the writer; a caller beyond that waits to be let in.
const QUEUE: usize = 1024;
/// Batches that share one transaction at the most.
const GROUP: usize = 256;
/// How long a commit group stays open for writers of the previous group, which usually come
/// straight back.
const LINGER: Duration = Duration::from_micros(100);
/// Pages that the write-ahead log gathers before they are moved into the file, 16 MB of them. The
/// same few pages change again and again: the longer it waits, the more often they move as one.
const CHECKPOINT: i64 = 4000;
/// How long after the last write an idle process moves the write-ahead log into the file, so that
/// a copy of the file alone has everything.
const IDLE: Duration = Duration::from_secs(1);
/// The longest pause between two tries of that, while a reader of another process prevents it.
const IDLE_MOST: Duration = Duration::from_secs(60);
/// How long a purge waits in all until no reader needs the old pages any more. Other writers do
/// not wait with it.
const PURGE_PATIENCE: Duration = Duration::from_secs(5);
/// How often it looks.
const PURGE_PAUSE: Duration = Duration::from_millis(20);

/// Something to write, and whom to tell. Dropping the receiver does not take the write back.
struct Job {
    grant: Grant,
    work: Work,
    /// Whether something is erased permanently.
    purges: bool,
    /// Whether it gains nothing by sharing a transaction.
    large: bool,
    caller: oneshot::Sender<Result<Done, StoreError>>,
    _slot: OwnedSemaphorePermit,
}

#[allow(
    clippy::large_enum_variant,
    reason = "nearly every job is a batch, and a box would cost each an allocation"
)]
enum Work {
    Apply(Box<Prepared>),
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
    jobs: Option<Sender<Job>>,
    slots: Arc<Semaphore>,
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
    pub(super) fn start(file: OpenFile, path: &Path, pool: Arc<Pool>) -> Result<Self, StoreError> {
        let (jobs, waiting) = mpsc::channel();
        let thread = WriterThread {
            path: path.to_owned(),
            place: path.display().to_string(),
            pool,
            line: Line::new(waiting),
            purges: Vec::new(),
        };
        let thread = std::thread::Builder::new()
            .name("mnemon-sqlite".to_owned())
            .spawn(move || thread.work(file))
            .map_err(|error| {
                let place = path.display().to_string();
                unavailable(place, "the writing thread cannot be started", error)
            })?;
        Ok(Self {
            jobs: Some(jobs),
            slots: Arc::new(Semaphore::new(QUEUE)),
            thread: Some(thread),
        })
    }

    pub(super) async fn apply(&self, grant: &Grant, batch: Batch) -> Result<Receipt, StoreError> {
        let work = Work::Apply(Box::new(Prepared::from(grant, batch)?));
        match self.ask(grant, work).await? {
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
        grant.require(Right::Write)?;
        let (caller, answer) = oneshot::channel();
        let slot = Arc::clone(&self.slots).acquire_owned().await;
        let job = Job {
            grant: grant.clone(),
            purges: work.purges(),
            large: work.is_large(),
            work,
            caller,
            _slot: slot.map_err(|_| gone())?,
        };
        let jobs = self.jobs.as_ref().ok_or_else(gone)?;
        jobs.send(job).map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }
}

fn gone() -> StoreError {
    StoreError::Internal("the writing thread has ended".to_owned())
}

/// What the writing thread has at hand, whichever file is open.
struct WriterThread {
    path: PathBuf,
    place: String,
    pool: Arc<Pool>,
    line: Line,
    /// Purges that are committed, and wait until the write-ahead log holds nothing of them.
    purges: Vec<Purge>,
}

/// A purge that is committed.
struct Purge {
    job: Job,
    done: Done,
    since: Instant,
}

/// Why the thread stopped writing to a file.
enum Left {
    /// Nobody will send jobs any more.
    Ended,
    /// The file is not the one at the store's path: these jobs are for the one that is.
    Replaced(Vec<Job>),
    /// The same of the write-ahead log: all connections have to be closed before it is opened anew.
    LogReplaced(Vec<Job>),
}

/// When the write-ahead log is moved into the file.
struct IdleCheckpoint {
    due: Option<Instant>,
    pause: Duration,
}

impl IdleCheckpoint {
    fn after_a_write() -> Self {
        Self {
            due: Some(Instant::now() + IDLE),
            pause: IDLE,
        }
    }

    fn tried(&mut self, complete: bool) {
        self.pause = (self.pause * 2).min(IDLE_MOST);
        self.due = (!complete).then(|| Instant::now() + self.pause);
    }
}

impl WriterThread {
    fn work(mut self, file: OpenFile) {
        let mut opened = Ok(file);
        let mut jobs = Vec::new();
        loop {
            match opened {
                Ok(file) => match self.serve(&file, jobs) {
                    Left::Ended => return,
                    Left::Replaced(again) => {
                        // The file may have been moved: what is in its log moves into it.
                        let _ = checkpoint(&file.connection, &self.place, "PASSIVE");
                        file.ids.remove_orphaned_log(&self.path);
                        drop(file);
                        jobs = again;
                        opened = schema::open_known(&self.path);
                    }
                    Left::LogReplaced(again) => {
                        let pool = Arc::clone(&self.pool);
                        let closed = pool.close();
                        drop(file);
                        jobs = again;
                        opened = schema::open_known(&self.path);
                        drop(closed);
                    }
                },
                Err(error) => {
                    for job in jobs {
                        job.answer(Err(again(&error)));
                    }
                    let Next::Job(job) = self.line.first(None) else {
                        return;
                    };
                    jobs = vec![job];
                    opened = schema::open_known(&self.path);
                }
            }
        }
    }

    /// Writes jobs to this file as long as it is the store's.
    fn serve(&mut self, file: &OpenFile, mut jobs: Vec<Job>) -> Left {
        let mut hot = Hot::default();
        // Another process may have left something in the log when it died.
        let mut idle = IdleCheckpoint::after_a_write();
        // It only decides when pages move; what goes wrong here goes wrong again in a commit.
        let _ = file
            .connection
            .pragma_update(None, "wal_autocheckpoint", CHECKPOINT);
        loop {
            if jobs.is_empty() {
                let patience = self.wait_at_most(&idle);
                let has_ended = match self.line.first(patience) {
                    Next::Job(job) => {
                        jobs.push(job);
                        continue;
                    }
                    next => matches!(next, Next::Ended),
                };
                if file.ids.standing(&FileIds::of(&self.path)) == Standing::OtherLog {
                    let left = self.leave(file, Standing::OtherLog, jobs, Vec::new());
                    return if has_ended { Left::Ended } else { left };
                }
                self.tend(file, &mut idle);
                match has_ended {
                    true => return Left::Ended,
                    false => continue,
                }
            }
            match file.ids.standing(&FileIds::of(&self.path)) {
                Standing::InPlace => {}
                standing => return self.leave(file, standing, jobs, Vec::new()),
            }
            let results = self.group(file, &mut jobs, &mut hot);
            match file.ids.standing(&FileIds::of(&self.path)) {
                Standing::InPlace => {}
                standing => return self.leave(file, standing, jobs, results),
            }
            self.line.before = jobs.len();
            for (job, result) in jobs.drain(..).zip(results) {
                self.finish(job, result);
            }
            self.finish_purges(file);
            idle = IdleCheckpoint::after_a_write();
        }
    }

    /// The jobs are durable in the file that is open, which is not (or not quite) the one at the
    /// path any more: settles what becomes of them, and of purges that are waiting. `results` are
    /// empty if the jobs were not begun.
    fn leave(
        &mut self,
        file: &OpenFile,
        standing: Standing,
        mut jobs: Vec<Job>,
        results: Vec<Result<Done, StoreError>>,
    ) -> Left {
        if standing == Standing::LogRemoved {
            // All that was ever acknowledged moves into the file, while nobody else has begun a
            // log of their own.
            let moved = checkpoint(&file.connection, &self.place, "PASSIVE");
            if !matches!(moved, Ok(true)) && !results.is_empty() {
                for job in jobs.drain(..) {
                    job.answer(Err(self.log_was_removed()));
                }
            } else if !results.is_empty() {
                for (job, result) in jobs.drain(..).zip(results) {
                    self.finish(job, result);
                }
            }
            self.finish_purges(file);
            return Left::LogReplaced(jobs);
        }
        let mut again = Vec::new();
        let waiting = self.purges.drain(..).map(|purge| purge.job);
        for job in waiting.chain(jobs) {
            if job.can_be_done_again() {
                again.push(job);
            } else {
                job.answer(Err(unavailable(
                    &self.place,
                    "the file was replaced while this was written to it; nothing of it is in the \
                     file that is there now, send it again",
                    "the file was replaced",
                )));
            }
        }
        if standing == Standing::OtherFile {
            return Left::Replaced(again);
        }
        // Moving this log into the file would overwrite what others wrote by theirs.
        let _ = file
            .connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        Left::LogReplaced(again)
    }

    fn log_was_removed(&self) -> StoreError {
        unavailable(
            &self.place,
            "its -wal or -shm file was removed while it was in use, and the write may be lost; check \
             whether it is stored, then send it again",
            "the file was removed",
        )
    }

    /// How long the next job may be waited for.
    fn wait_at_most(&self, idle: &IdleCheckpoint) -> Option<Duration> {
        if !self.purges.is_empty() {
            return Some(PURGE_PAUSE);
        }
        let due = idle.due?;
        Some(due.saturating_duration_since(Instant::now()))
    }

    /// What is done while nobody writes.
    fn tend(&mut self, file: &OpenFile, idle: &mut IdleCheckpoint) {
        self.finish_purges(file);
        if idle.due.is_some_and(|due| due <= Instant::now()) {
            // Emptied, not only moved: a log that lies about can be taken for another file's.
            let emptied = empty_log(&file.connection, &self.place);
            idle.tried(emptied.unwrap_or(false));
        }
    }

    /// Tells the caller, unless it waits for the end of a purge.
    fn finish(&mut self, job: Job, result: Result<Done, StoreError>) {
        match result {
            Ok(done) if job.purges => self.purges.push(Purge {
                job,
                done,
                since: Instant::now(),
            }),
            result => job.answer(result),
        }
    }

    /// The write-ahead log still holds the pages as they were before a purge. Moves them into the
    /// file, where the erased rows are zeros, and empties the log. A reader can prevent it; nobody
    /// waits for the reader but the one who purges.
    fn finish_purges(&mut self, file: &OpenFile) {
        if self.purges.is_empty() {
            return;
        }
        let emptied = empty_log(&file.connection, &self.place);
        for purge in std::mem::take(&mut self.purges) {
            let waited = purge.since.elapsed();
            match &emptied {
                Ok(true) => purge.job.answer(Ok(purge.done)),
                Ok(false) if waited < PURGE_PATIENCE => self.purges.push(purge),
                Ok(false) => purge.job.answer(Err(StoreError::Busy {
                    place: format!(
                        "{} (the records are gone, but a reader still holds the old pages; purge \
                         again)",
                        self.place
                    ),
                    seconds: waited.as_secs(),
                })),
                Err(error) => purge.job.answer(Err(again(error))),
            }
        }
    }

    /// Writes the jobs in one transaction, with those that come in the meantime; when this returns,
    /// they are durable. Each succeeds or fails by itself; if the transaction as a whole fails,
    /// nothing of it happened.
    fn group<'c>(
        &mut self,
        file: &'c OpenFile,
        jobs: &mut Vec<Job>,
        hot: &mut Hot<'c>,
    ) -> Vec<Result<Done, StoreError>> {
        let transaction = Transaction {
            connection: &file.connection,
            place: &self.place,
        };
        let line = &mut self.line;
        let outcome = transaction.run(jobs, hot, |jobs, patient| line.join(jobs, patient));
        match outcome {
            Ok(results) => results,
            Err(error) if jobs.len() == 1 => vec![Err(error)],
            // A damaged row fails every batch that needs it: the others are written without it.
            Err(error) if may_be_of_one(&error) => {
                let alone = std::mem::take(jobs).into_iter().flat_map(|job| {
                    let mut one = vec![job];
                    let outcome = transaction.run(&mut one, hot, |_, _| false);
                    jobs.append(&mut one);
                    outcome.unwrap_or_else(|error| vec![Err(error)])
                });
                alone.collect()
            }
            Err(error) => jobs.iter().map(|_| Err(again(&error))).collect(),
        }
    }
}

/// Whether the error may come from what one job of several reads or removes.
fn may_be_of_one(error: &StoreError) -> bool {
    matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unavailable)
}

/// Moves the write-ahead log into the file as far as that is possible without waiting for anybody.
/// Whether all of it was moved.
fn checkpoint(connection: &Connection, place: &str, mode: &str) -> Result<bool, StoreError> {
    let (busy, log, moved): (i64, i64, i64) = connection
        .query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .at(place)?;
    Ok(busy == 0 && log == moved)
}

/// Moves the write-ahead log into the file and cuts it to nothing, if no reader and no writer is in
/// the way at this moment. With a busy handler SQLite would keep all writers out while it waits for
/// a reader.
pub(super) fn empty_log(connection: &Connection, place: &str) -> Result<bool, StoreError> {
    patience::without(|| checkpoint(connection, place, "TRUNCATE"))
}

/// Runs jobs in transactions on one connection.
struct Transaction<'c, 'b> {
    connection: &'c Connection,
    place: &'b str,
}

impl<'c> Transaction<'c, '_> {
    /// What became of each job. If the transaction as a whole fails, nothing of it happened. Once
    /// the jobs are written, `join` may add others that came in the meantime.
    fn run(
        &self,
        jobs: &mut Vec<Job>,
        hot: &mut Hot<'c>,
        join: impl FnMut(&mut Vec<Job>, bool) -> bool,
    ) -> Result<Vec<Result<Done, StoreError>>, StoreError> {
        let (connection, place) = (self.connection, self.place);
        let mut counts = Counts::default();
        execute(connection, "BEGIN IMMEDIATE").at(place)?;
        let written = self.write_all(jobs, &mut counts, hot, join);
        let outcome = written.and_then(|results| {
            // With nothing done there is nothing to sync to disk.
            if results.iter().any(Result::is_ok) {
                counts.save(connection, place)?;
                execute(connection, "COMMIT").at(place)?;
            }
            Ok(results)
        });
        // A commit that failed leaves the transaction open; on a full disk SQLite may have taken
        // it back by itself.
        if !connection.is_autocommit() {
            execute(connection, "ROLLBACK").at(place)?;
        } else if outcome.is_ok() {
            counts.remember(&mut hot.known);
        }
        outcome
    }

    fn write_all(
        &self,
        jobs: &mut Vec<Job>,
        counts: &mut Counts,
        hot: &mut Hot<'c>,
        mut join: impl FnMut(&mut Vec<Job>, bool) -> bool,
    ) -> Result<Vec<Result<Done, StoreError>>, StoreError> {
        join(jobs, false);
        let mut results = Vec::with_capacity(jobs.len());
        // The first are written while others are still getting theirs ready.
        while results.len() < jobs.len() || join(jobs, true) {
            let rest = jobs.get_mut(results.len()..).unwrap_or_default();
            let Some(grant) = rest.first().map(|job| job.grant.clone()) else {
                break;
            };
            let of_tenant = rest
                .iter()
                .take_while(|job| job.grant.tenant() == grant.tenant());
            let group = rest.split_at_mut(of_tenant.count()).0;
            let mut tables = SqlTables::open(self.connection, self.place, &grant, counts, hot)?;
            match group {
                [job] if !job.work.is_batch() => results.push(Ok(job.tend(&mut tables)?)),
                group => results.extend(apply(group, &grant, &mut tables)?),
            }
        }
        Ok(results)
    }
}

/// Applies batches of one tenant: one read of what they need, one write of what was planned.
fn apply(
    jobs: &mut [Job],
    grant: &Grant,
    tables: &mut SqlTables<'_, '_>,
) -> Result<Vec<Result<Done, StoreError>>, StoreError> {
    let requests = jobs.iter_mut().map(|job| match &mut job.work {
        Work::Apply(prepared) => prepared.request(),
        Work::Upkeep(_) | Work::Embed(_) => None,
    });
    let spent = || StoreError::Internal("a batch was given away".to_owned());
    let requests = requests.collect::<Option<Vec<_>>>().ok_or_else(spent)?;
    let view = tables.view(&needs(&requests))?;
    let plan = plan(view, requests);
    tables.settle(grant, &plan)?;
    let mut results = Vec::with_capacity(jobs.len());
    for (job, outcome) in jobs.iter_mut().zip(plan.outcomes) {
        results.push(match outcome {
            Ok(planned) => {
                if job.purges {
                    snapshot_file::forget(tables.connection, tables.place, tables.tenant)?;
                }
                if let Work::Apply(prepared) = &mut job.work {
                    tables.apply(planned.moves, prepared.found_by())?;
                }
                Ok(Done::Applied(planned.receipt))
            }
            Err(error) => Err(error),
        });
    }
    Ok(results)
}

/// What is waiting, group by group.
struct Line {
    waiting: Receiver<Job>,
    /// One that did not fit into the group before.
    next: Option<Job>,
    /// How many there were in the group before.
    before: usize,
}

/// What comes of waiting for a job.
#[allow(
    clippy::large_enum_variant,
    reason = "it is taken apart at once, and a box would cost every write an allocation"
)]
enum Next {
    Job(Job),
    /// None came in time.
    Nothing,
    /// None will ever come.
    Ended,
}

impl Line {
    fn new(waiting: Receiver<Job>) -> Self {
        Self {
            waiting,
            next: None,
            before: 0,
        }
    }

    /// The job that a group begins with, if one comes within this time.
    fn first(&mut self, patience: Option<Duration>) -> Next {
        if let Some(next) = self.next.take() {
            return Next::Job(next);
        }
        // Where several write at once the next is already on its way: sooner here than a thread
        // that sleeps would wake.
        let several = self.before > 1;
        if let Some(job) = several.then(|| self.soon(true)).flatten() {
            return Next::Job(job);
        }
        let received = match patience {
            Some(patience) => self.waiting.recv_timeout(patience),
            None => self
                .waiting
                .recv()
                .map_err(|_| RecvTimeoutError::Disconnected),
        };
        match received {
            Ok(job) => Next::Job(job),
            Err(RecvTimeoutError::Timeout) => Next::Nothing,
            Err(RecvTimeoutError::Disconnected) => Next::Ended,
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

    /// Adds jobs that may share the transaction of these. Whether there were any.
    fn join(&mut self, jobs: &mut Vec<Job>, patient: bool) -> bool {
        let first = jobs.len();
        let alone = jobs.iter().any(|job| job.large);
        while !alone && self.next.is_none() && jobs.len() < GROUP {
            // Those who were answered just now are about to come back: without a moment's
            // patience the first of them would be synced to disk alone.
            let waits = patient && jobs.len() == first && first < self.before;
            let Some(job) = self.soon(waits) else {
                break;
            };
            match job.large {
                true => self.next = Some(job),
                false => jobs.push(job),
            }
        }
        jobs.len() > first
    }
}

impl Work {
    fn is_batch(&self) -> bool {
        matches!(self, Self::Apply(_))
    }

    fn purges(&self) -> bool {
        matches!(self, Self::Apply(prepared) if prepared.purges)
    }

    fn is_large(&self) -> bool {
        match self {
            Self::Apply(prepared) => prepared.is_large,
            Self::Upkeep(..) | Self::Embed(..) => true,
        }
    }
}

impl Job {
    fn answer(self, result: Result<Done, StoreError>) {
        // A caller who has gone away is not missed.
        let _ = self.caller.send(result);
    }

    /// Whether the job can be done in another file. Vectors are for records of this one.
    fn can_be_done_again(&self) -> bool {
        match &self.work {
            Work::Apply(prepared) => prepared.is_at_hand(),
            Work::Upkeep(_) => true,
            Work::Embed(_) => false,
        }
    }

    /// Does a job that is not a batch.
    fn tend(&self, tables: &mut SqlTables<'_, '_>) -> Result<Done, StoreError> {
        match &self.work {
            Work::Upkeep(limit) => {
                let done = tables.upkeep(&self.grant, *limit)?;
                if done.expired + done.history > 0 {
                    snapshot_file::forget_old(tables.connection, tables.place, tables.tenant)?;
                }
                Ok(Done::Upkept(done))
            }
            Work::Embed(vectors) => Ok(Done::Embedded(tables.embed(vectors)?)),
            Work::Apply(_) => Err(StoreError::Internal("a batch is applied".to_owned())),
        }
    }
}

/// Runs a statement that is prepared once: these come with every commit.
fn execute(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(drop)
}
