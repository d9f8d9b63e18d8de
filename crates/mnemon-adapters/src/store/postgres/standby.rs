//! A standby of the database, which takes the reading of searches off the primary.
//!
//! A search asks the primary for the numbers of its tenant, which is one short query, and reads on
//! the standby if that shows at least the same numbers. Otherwise the primary answers. So a search
//! never misses a write that was acknowledged before it began, on whichever server.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::errors::Failure;
use super::pool::{Call, Pool};
use crate::health::Finding;

/// How long a standby that failed is not asked.
const REST: Duration = Duration::from_secs(5);

pub(super) struct Standby {
    pub(super) pool: Arc<Pool>,
    failed: Mutex<Option<Instant>>,
}

impl Standby {
    pub(super) fn new(pool: Arc<Pool>) -> Self {
        Self {
            pool,
            failed: Mutex::default(),
        }
    }

    /// Whether it may be asked; not right after a failure.
    pub(super) fn is_usable(&self) -> bool {
        let failed = *self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.is_none_or(|at| at.elapsed() > REST)
    }

    /// The answer, if it has one. A failure is not the caller's: the primary can answer.
    pub(super) fn accept<T>(&self, outcome: Result<Option<T>, Failure>) -> Option<T> {
        if outcome.is_err() {
            let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
            *failed = Some(Instant::now());
            self.pool.forget_idle();
        }
        outcome.ok().flatten()
    }

    /// How it looks to `mnemon doctor`.
    pub(super) async fn examine(&self) -> Finding {
        let place = &self.pool.place;
        match self.behind().await {
            Ok(Some(seconds)) => Finding::good(
                "standby",
                format!("{place} answers searches; its last change is {seconds:.0} s old"),
            ),
            Ok(None) => Finding::warning(
                "standby",
                format!("{place} is not a standby; name one, or remove `standby` from the URL"),
            ),
            Err(failure) => Finding::warning(
                "standby",
                format!("{}; the primary answers all searches", failure.at(place)),
            ),
        }
    }

    async fn behind(&self) -> Result<Option<f64>, Failure> {
        let sql = "SELECT pg_is_in_recovery(), coalesce(
            extract(epoch FROM now() - pg_last_xact_replay_timestamp())::float8, 0)";
        let row = self.pool.take().await?.one(Call::new(sql)).await?;
        let is_standby: bool = row.try_get(0)?;
        let seconds: f64 = row.try_get(1)?;
        Ok(is_standby.then_some(seconds))
    }
}
