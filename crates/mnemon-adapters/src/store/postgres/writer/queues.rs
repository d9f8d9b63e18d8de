//! The jobs that wait, by tenant.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mnemon_core::{StoreError, Tenant};

use super::{GROUP, LINGER, LINGER_MOST};
use crate::store::postgres::job::Job;

/// A queue for each tenant that has a task.
#[derive(Default)]
pub(super) struct Queues {
    waiting: Mutex<HashMap<Tenant, VecDeque<Job>>>,
    /// Notified when a task ends.
    ended: Condvar,
}

impl Queues {
    fn lock(&self) -> MutexGuard<'_, HashMap<Tenant, VecDeque<Job>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a job. If its tenant has no task, returns the turn with which the caller starts one.
    pub(super) fn add(self: &Arc<Self>, job: Job) -> Option<Turn> {
        let tenant = job.grant.tenant().clone();
        let mut waiting = self.lock();
        if let Some(queue) = waiting.get_mut(&tenant) {
            queue.push_back(job);
            return None;
        }
        waiting.insert(tenant.clone(), VecDeque::from([job]));
        Some(Turn {
            queues: Arc::clone(self),
            tenant,
            is_over: false,
        })
    }

    /// Waits until no tenant has a task, at most this long.
    pub(super) fn wait_until_empty(&self, most: Duration) {
        let waiting = self.lock();
        let waited = self
            .ended
            .wait_timeout_while(waiting, most, |waiting| !waiting.is_empty());
        drop(waited);
    }
}

/// Held by the one task that writes for a tenant. If the task ends early, by a panic or because its
/// runtime was shut down, dropping the turn fails the jobs that wait, and the next job starts another
/// task.
pub(super) struct Turn {
    queues: Arc<Queues>,
    pub(super) tenant: Tenant,
    is_over: bool,
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let jobs = self.queues.lock().remove(&self.tenant);
        self.queues.ended.notify_all();
        for job in jobs.into_iter().flatten() {
            let what = "the task that writes for this tenant ended early; nothing of this write \
                        was stored: send it again";
            job.answer(Err(StoreError::Internal(what.to_owned())));
        }
    }
}

impl Turn {
    /// Jobs that share a transaction; `None` ends the task, as no job waits.
    pub(super) fn next_group(&mut self) -> Option<Vec<Job>> {
        let mut waiting = self.queues.lock();
        let queue = waiting.get_mut(&self.tenant)?;
        let Some(first) = queue.pop_front() else {
            waiting.remove(&self.tenant);
            self.is_over = true;
            self.queues.ended.notify_all();
            return None;
        };
        let shares = first.is_small_batch();
        let mut jobs = vec![first];
        while shares
            && jobs.len() < GROUP
            && let Some(next) = queue.pop_front_if(|next| next.is_small_batch())
        {
            jobs.push(next);
        }
        Some(jobs)
    }

    /// Waits for the writers that were answered just now, which usually come straight back: without it
    /// they and those that wait would take turns, each group half as large. It waits while they come,
    /// one soon after the other.
    pub(super) async fn linger(&self, answered: usize) {
        let waiting = || {
            self.queues
                .lock()
                .get(&self.tenant)
                .map_or(0, VecDeque::len)
        };
        let mut there = waiting();
        let expected = (there + answered).min(GROUP);
        let (since, mut last) = (Instant::now(), Instant::now());
        while expected > 1
            && there < expected
            && last.elapsed() < LINGER
            && since.elapsed() < LINGER_MOST
        {
            // Where there are more threads than cores, one of these writers may wait for this core.
            std::thread::yield_now();
            tokio::task::yield_now().await;
            let now = waiting();
            if now > there {
                (there, last) = (now, Instant::now());
            }
        }
    }
}
