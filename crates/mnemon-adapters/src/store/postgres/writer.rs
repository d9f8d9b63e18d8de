//! Writing: the batches of a tenant that wait are committed together.
//!
//! Each tenant with work has one task, so a process writes for a tenant on one connection. Tenants
//! do not wait for each other. Between processes the lock on the tenant's row decides the order.

mod numbers;
mod queues;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use mnemon_core::commit::{Plan, Request, needs, plan};
use mnemon_core::index::StoredVector;
use mnemon_core::{Batch, Clock, ErrorKind, Grant, Receipt, Right, StoreError, Tenant, Upkept};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};

use super::apply::{self, After, GROUPS_KEPT};
use super::errors::Failure;
use super::job::{Done, Job, LARGE, Outcome, Prepared, Work};
use super::pool::{Call, Lease, Pool};
use super::rows::Rows;
use super::view::{self, Locked};
use super::wake::Wake;
use super::{embeddings, upkeep};
use crate::store::{again, unavailable};
use numbers::Numbers;
use queues::Queues;

/// Batches that may wait; a caller beyond that waits to be let in.
const QUEUE: usize = 1024;
/// Batches that share one transaction at the most.
const GROUP: usize = 256;
/// How long a group stays open for the next writer of the previous one, and for all of them.
const LINGER: Duration = Duration::from_micros(200);
const LINGER_MOST: Duration = Duration::from_millis(2);
/// How long a write tries to reach a server that does not answer; a restart takes a few seconds.
pub(super) const RECONNECT: Duration = Duration::from_secs(10);
/// The first pause between two tries.
const PAUSE: Duration = Duration::from_millis(20);

/// The way to the tasks that write.
pub(super) struct Writer {
    shared: Arc<Shared>,
    slots: Arc<Semaphore>,
}

struct Shared {
    pool: Arc<Pool>,
    runtime: Handle,
    wake: Wake,
    queues: Arc<Queues>,
    numbers: Numbers,
}

fn gone() -> StoreError {
    let what = "the task that writes for this tenant ended early, and it cannot be known whether \
                this is stored; check, and send it again with an idempotency key";
    StoreError::Internal(what.to_owned())
}

impl Drop for Writer {
    /// Waits until everything that was accepted is written, or the server does not answer.
    fn drop(&mut self) {
        self.shared.queues.wait_until_empty(2 * RECONNECT);
    }
}

impl Writer {
    pub(super) fn new(pool: Arc<Pool>, runtime: Handle, wake: Wake) -> Self {
        let shared = Shared {
            pool,
            runtime,
            wake,
            queues: Arc::default(),
            numbers: Numbers::default(),
        };
        Self {
            shared: Arc::new(shared),
            slots: Arc::new(Semaphore::new(QUEUE)),
        }
    }

    pub(super) async fn apply(&self, grant: &Grant, batch: Batch) -> Result<Receipt, StoreError> {
        grant.require(Right::Write)?;
        let prepared = match batch.ops.len() >= LARGE {
            false => Prepared::of(grant, batch)?,
            true => {
                let held = grant.clone();
                let analysed = crate::blocking::run(move || Prepared::of(&held, batch)).await;
                analysed.unwrap_or_else(|| Err(gone()))?
            }
        };
        match self.ask(grant, Work::Apply(Box::new(prepared))).await? {
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

    async fn ask(&self, grant: &Grant, work: Work) -> Outcome {
        grant.require(Right::Write)?;
        let slot = Arc::clone(&self.slots).acquire_owned().await;
        let (caller, answer) = oneshot::channel();
        let job = Job {
            grant: grant.clone(),
            work,
            is_doubtful: false,
            caller,
            _slot: slot.map_err(|_| gone())?,
        };
        self.enqueue(job);
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    fn enqueue(&self, job: Job) {
        let Some(mut turn) = self.shared.queues.add(job) else {
            return;
        };
        let shared = Arc::clone(&self.shared);
        self.shared.runtime.spawn(async move {
            while let Some(jobs) = turn.next_group() {
                let answered = jobs.len();
                shared.write(&turn.tenant, jobs).await;
                turn.linger(answered).await;
            }
        });
    }
}

/// How a try to write a group ended.
enum Try {
    /// It is committed, or nothing of it was allowed.
    Done(Vec<Outcome>),
    /// Nothing of it happened.
    Failed(Failure),
    /// The connection was lost during the commit, whose outcomes these would be.
    Unknown {
        outcomes: Vec<Outcome>,
        group: Group,
        failure: Failure,
    },
}

/// A group of batches, as the database knows it.
#[derive(Debug, Clone, Copy)]
struct Group {
    tenant: i64,
    /// The number of its newest change.
    seq: u64,
    /// Tells it from other groups that got the same number after it was lost.
    token: i64,
}

/// Batches that were planned, in an open transaction.
struct Planned {
    outcomes: Vec<Outcome>,
    lease: Lease,
    /// The statements that write them; `None` if there is nothing to write.
    unwritten: Option<(Group, Vec<Call>)>,
}

impl From<Failure> for Try {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Shared {
    /// Writes the jobs and answers their callers.
    async fn write(&self, tenant: &Tenant, mut jobs: Vec<Job>) {
        let since = Instant::now();
        let mut pause = PAUSE;
        loop {
            let failure = match self.attempt(tenant, &mut jobs).await {
                Try::Done(outcomes) => return answer(jobs, outcomes),
                Try::Failed(failure) => failure,
                Try::Unknown {
                    outcomes,
                    group,
                    failure,
                } => match self.was_committed(tenant, group, since).await {
                    Some(true) => {
                        self.wake.committed(tenant);
                        return answer(jobs, outcomes);
                    }
                    Some(false) => failure,
                    None => return self.settle_doubtful(tenant, jobs).await,
                },
            };
            self.numbers.forget(tenant);
            if failure.is_lost() && since.elapsed() < RECONNECT {
                self.pool.forget_idle();
                tokio::time::sleep(pause).await;
                pause *= 2;
                continue;
            }
            let error = failure.at(&self.pool.place);
            if let [_] = jobs.as_slice() {
                return answer(jobs, vec![Err(error)]);
            }
            if !may_be_of_one(&error) {
                let outcomes = jobs.iter().map(|_| Err(again(&error))).collect();
                return answer(jobs, outcomes);
            }
            // One of them may have caused it: the others are written without it.
            for job in jobs {
                Box::pin(self.write(tenant, vec![job])).await;
            }
            return;
        }
    }

    /// It is not known whether these jobs were written. A batch with an idempotency key is sent
    /// again, which stores it at most once; others fail.
    async fn settle_doubtful(&self, tenant: &Tenant, jobs: Vec<Job>) {
        for mut job in jobs {
            let is_batch = matches!(job.work, Work::Apply(_));
            if (job.has_key() || !is_batch) && !job.is_doubtful {
                job.is_doubtful = true;
                Box::pin(self.write(tenant, vec![job])).await;
                continue;
            }
            let what = "the connection was lost while this was committed, and it cannot be known \
                        whether it is stored; check, and send it again with an idempotency key";
            job.answer(Err(unavailable(&self.pool.place, what, "connection lost")));
        }
    }

    /// Whether the group was committed, as the database says on another connection; `None` if it
    /// does not know.
    async fn was_committed(&self, tenant: &Tenant, group: Group, since: Instant) -> Option<bool> {
        self.pool.forget_idle();
        let mut pause = PAUSE;
        loop {
            let sql = "SELECT 1 FROM mnemon.groups WHERE tenant = $1 AND seq = $2 AND token = $3";
            let find = Call::new(sql).with(group.tenant);
            // The lock waits until the server has noticed that the other connection is gone.
            let calls = [
                Locked::call(group.tenant),
                find.with(group.seq.cast_signed()).with(group.token),
            ];
            let answers = match self.pool.take().await {
                Ok(mut lease) => {
                    lease.keep_to(tenant);
                    lease
                        .pipeline(Some("BEGIN"), &calls, Some("ROLLBACK"))
                        .await
                }
                Err(failure) => Err(failure),
            };
            match answers {
                Ok(answers) => {
                    let mut answers = answers.iter();
                    let locked = Locked::of(answers.next()?).ok()?;
                    if !answers.next()?.is_empty() {
                        return Some(true);
                    }
                    let later = locked.last_seq.saturating_sub(group.seq);
                    return (later < GROUPS_KEPT).then_some(false);
                }
                Err(failure) if failure.is_lost() && since.elapsed() < 2 * RECONNECT => {
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
                Err(_) => return None,
            }
        }
    }

    async fn attempt(&self, tenant: &Tenant, jobs: &mut [Job]) -> Try {
        let outcome = match jobs {
            [job] if !matches!(job.work, Work::Apply(_)) => caught(self.tend(tenant, job)).await,
            jobs => self.apply(tenant, jobs).await,
        };
        outcome.unwrap_or_else(Try::Failed)
    }

    /// Applies batches of one tenant: one read of the view, one write of the plan.
    async fn apply(&self, tenant: &Tenant, jobs: &[Job]) -> Result<Try, Failure> {
        // A panic before the commit was sent leaves nothing behind, so the jobs can be tried again.
        let planned = caught(self.plan(tenant, jobs)).await?;
        let Planned {
            outcomes,
            mut lease,
            unwritten,
        } = planned;
        let Some((group, calls)) = unwritten else {
            lease.end("ROLLBACK").await?;
            return Ok(Try::Done(outcomes));
        };
        match lease.pipeline(None, &calls, Some("COMMIT")).await {
            Ok(_) => {
                self.wake.committed(tenant);
                Ok(Try::Done(outcomes))
            }
            Err(failure) if failure.is_lost() => Ok(Try::Unknown {
                outcomes,
                group,
                failure,
            }),
            Err(failure) => Err(failure),
        }
    }

    /// Reads the view of batches of one tenant, and plans them.
    async fn plan(&self, tenant: &Tenant, jobs: &[Job]) -> Result<Planned, Failure> {
        let batches: Vec<&Prepared> = jobs.iter().filter_map(Job::batch).collect();
        let mut lease = self.pool.take().await?;
        lease.keep_to(tenant);
        let number = self.numbers.add_tenant(&mut lease, tenant).await?;
        let models = batches.iter().flat_map(|batch| batch.models());
        let models = self.numbers.models(&mut lease, models).await?;
        let requests: Vec<Request> = batches.iter().map(|it| it.request.clone()).collect();
        let (locked, view) = view::load(&mut lease, number, &needs(&requests)).await?;
        #[cfg(test)]
        tests::panic_if_asked(&requests);
        let Plan {
            outcomes: planned,
            last_seq,
            clock,
        } = plan(view, requests);
        let mut rows = Rows::default();
        let mut outcomes: Vec<Outcome> = Vec::with_capacity(jobs.len());
        let mut removal_log = usize::MAX;
        for ((job, batch), outcome) in jobs.iter().zip(batches).zip(planned) {
            removal_log = removal_log.min(job.grant.limits().removal_log);
            outcomes.push(outcome.map(|planned| {
                rows.play(planned.moves, batch.found_by.iter().cloned());
                Done::Applied(planned.receipt)
            }));
        }
        let is_refused = outcomes.iter().all(Result::is_err);
        if is_refused || is_unchanged(&rows, &locked, last_seq, clock) {
            return Ok(Planned {
                outcomes,
                lease,
                unwritten: None,
            });
        }
        let group = Group {
            tenant: number,
            seq: last_seq,
            token: fastrand::i64(..),
        };
        let after = After {
            last_seq,
            clock,
            removal_log,
            token: Some(group.token),
            with_near: self.pool.has_near(),
        };
        let calls = apply::statements(&locked, rows, &models, &after)?;
        Ok(Planned {
            outcomes,
            lease,
            unwritten: Some((group, calls)),
        })
    }

    async fn embed(
        &self,
        lease: &mut Lease,
        tenant: i64,
        vectors: &[(u64, StoredVector)],
    ) -> Result<usize, Failure> {
        let models = vectors.iter().map(|(_, vector)| &vector.model);
        let models = self.numbers.models(lease, models).await?;
        embeddings::embed(lease, tenant, vectors, &models, self.pool.has_near()).await
    }

    /// Does a job that is not a batch. It can be done again without harm.
    async fn tend(&self, tenant: &Tenant, job: &Job) -> Result<Try, Failure> {
        let mut lease = self.pool.take().await?;
        lease.keep_to(tenant);
        let number = self.numbers.find_tenant(&mut lease, tenant).await?;
        let done = match (&job.work, number) {
            (Work::Upkeep(_), None) => Done::Upkept(Upkept::default()),
            (Work::Upkeep(limit), Some(number)) => {
                let (grant, has_near) = (&job.grant, self.pool.has_near());
                let upkept = upkeep::upkeep(&mut lease, number, grant, *limit, has_near);
                Done::Upkept(upkept.await?)
            }
            (Work::Embed(vectors), Some(number)) => {
                Done::Embedded(self.embed(&mut lease, number, vectors).await?)
            }
            // A tenant that never wrote has no records to embed.
            (Work::Embed(_) | Work::Apply(_), _) => Done::Embedded(0),
        };
        Ok(Try::Done(vec![Ok(done)]))
    }
}

/// Whether there is nothing to write: no row, and the tenant's numbers are those that are stored.
fn is_unchanged(rows: &Rows, locked: &Locked, last_seq: u64, clock: Clock) -> bool {
    rows.is_empty() && clock == locked.clock && last_seq == locked.last_seq
}

/// Whether the error may come from what one job of several reads or writes.
fn may_be_of_one(error: &StoreError) -> bool {
    let kind = error.kind();
    matches!(
        kind,
        ErrorKind::Corrupt | ErrorKind::Invalid | ErrorKind::Internal
    )
}

/// Does work whose panic fails its jobs only: the task goes on with the jobs that wait behind them.
async fn caught<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let outcome = AssertUnwindSafe(work).catch_unwind().await;
    outcome.unwrap_or_else(|panic| {
        let what = format!(
            "a defect ended this write, and nothing of it was stored: {}",
            said(&*panic)
        );
        Err(StoreError::Internal(what).into())
    })
}

/// The message of a panic.
fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without a message")
}

fn answer(jobs: Vec<Job>, outcomes: Vec<Outcome>) {
    for (job, outcome) in jobs.into_iter().zip(outcomes) {
        job.answer(outcome);
    }
}
