//! Jobs that one of several servers on a store does. A server keeps a job until it stops, and other
//! servers take it over when the claim of a dead one ends.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mnemon_core::{Claim, Claimed, Ctx, Tenant};
use mnemon_engine::Records;

use mnemon_operations::{Error, wiring};

/// A job of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Job {
    pub(super) tenant: Tenant,
    pub(super) name: &'static str,
}

/// An answer of the store, how long the claim lasts, and since when.
type Known = (Claimed, Duration, Instant);

/// The claims of this process.
pub(super) struct Claims {
    records: Records,
    holder: String,
    known: Mutex<HashMap<Job, Known>>,
}

impl Claims {
    pub(super) fn new(records: &Records) -> Self {
        Self {
            records: records.clone(),
            holder: uuid::Uuid::new_v4().to_string(),
            known: Mutex::default(),
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Job, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does the work if no other server has the job, and extends the claim meanwhile. The work is
    /// given up if the claim is lost. `None` if it was not done.
    pub(super) async fn hold<T>(
        &self,
        job: &Job,
        lasts: Duration,
        work: impl AsyncFnOnce(Claimed) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let claimed = self.claim(job, lasts).await?;
        if claimed == Claimed::Others {
            return Ok(None);
        }
        tokio::select! {
            done = work(claimed) => done.map(Some),
            () = self.extend(job, lasts) => {
                tracing::warn!(job = job.name, "another server has taken over a job");
                Ok(None)
            }
        }
    }

    /// Claims the job. The store is asked again when a third of the time has passed.
    async fn claim(&self, job: &Job, lasts: Duration) -> Result<Claimed, Error> {
        let known = self.known().get(job).copied();
        match known {
            Some((claimed, _, since)) if since.elapsed() < lasts / 3 => Ok(claimed),
            _ => self.ask(job, lasts).await,
        }
    }

    async fn ask(&self, job: &Job, lasts: Duration) -> Result<Claimed, Error> {
        let ctx = Ctx::new(job.tenant.clone(), "server", wiring::now()?);
        let claim = Claim {
            job: job.name,
            holder: &self.holder,
            lasts,
        };
        // Counted from before the store counts, so that it ends here first.
        let since = Instant::now();
        let claimed = self.records.claim(&ctx, &claim).await?;
        self.known().insert(job.clone(), (claimed, lasts, since));
        Ok(claimed)
    }

    /// Extends the claim; returns when it is lost.
    async fn extend(&self, job: &Job, lasts: Duration) {
        let mut since = Instant::now();
        loop {
            tokio::time::sleep(lasts / 3).await;
            match self.claim(job, lasts).await {
                Ok(Claimed::Others) => return,
                Ok(_) => since = Instant::now(),
                // The store cannot be reached, so nobody else can claim it either for now.
                Err(_) if since.elapsed() < lasts => {}
                Err(_) => return,
            }
        }
    }

    /// Leaves all jobs to other servers.
    pub(super) async fn release(&self) {
        let known = std::mem::take(&mut *self.known());
        for (job, (claimed, ..)) in known {
            if claimed == Claimed::Ours {
                // Otherwise the claim ends by itself.
                let _ = self.ask(&job, Duration::ZERO).await;
            }
        }
    }
}
