//! The pending list of the inverted index.
//!
//! PostgreSQL puts the words of new records on the pending list of a GIN index, which every search by words
//! reads. It moves them into the index when the list is full, during a write. That takes 40 µs for each
//! record if there are 500, and 8 µs if there are 8,000. So the list may become as long as the server allows
//! (4 MB, about 8,000 records, unless it is set up otherwise), and searches in the database clean it sooner,
//! in the background.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::store::postgres::errors::Failure;
use crate::store::postgres::pool::{Call, Pool};

/// How soon the list is cleaned again, and how soon after a failure.
const AGAIN: Duration = Duration::from_secs(2);
const FAILED_AGAIN: Duration = Duration::from_secs(60);
/// How long a start waits for an index that others use.
const RESET_WAIT: Duration = Duration::from_millis(500);

/// The inverted index of words, or those of partitions, if our user may change them.
const INDEXES: &str = "FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
     JOIN pg_am a ON a.oid = c.relam
     WHERE a.amname = 'gin' AND c.relkind = 'i' AND pg_has_role(c.relowner, 'USAGE')
        AND (i.indrelid = 'mnemon.search'::regclass
            OR i.indrelid IN (SELECT relid FROM pg_partition_tree('mnemon.search')))";

/// When the list may be cleaned next; `None` before the first time.
#[derive(Default)]
pub(super) struct Pending {
    next: Arc<Mutex<Option<Instant>>>,
}

impl Pending {
    /// Cleans the list in the background, unless this process did so just now or is at it.
    pub(super) fn clean_soon(&self, pool: &Arc<Pool>) {
        let now = Instant::now();
        {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            if next.is_some_and(|next| now < next) {
                return;
            }
            *next = Some(now + FAILED_AGAIN);
        }
        let (pool, next) = (Arc::clone(pool), Arc::clone(&self.next));
        pool.runtime().clone().spawn(async move {
            if clean(&pool).await.is_ok_and(|cleaned| cleaned > 0) {
                let again = Instant::now() + AGAIN;
                *next.lock().unwrap_or_else(PoisonError::into_inner) = Some(again);
            }
        });
    }
}

/// Returns how many indexes were cleaned: none if our user does not own them.
async fn clean(pool: &Pool) -> Result<usize, Failure> {
    let sql = format!("SELECT gin_clean_pending_list(c.oid::regclass) {INDEXES}");
    let cleaned = pool.take().await?.all(Call::new(sql)).await?;
    Ok(cleaned.len())
}

/// Resets the limit of 256 kB that the list has at first. Others cannot use the index while this waits for
/// it, so it waits only for a moment; the next start tries again.
pub(in crate::store::postgres) async fn reset_limit(pool: &Pool) -> Result<(), Failure> {
    let limited = format!(
        "SELECT c.oid::regclass::text {INDEXES} AND 'gin_pending_list_limit=256' = ANY(c.reloptions)"
    );
    let mut lease = pool.take().await?;
    for index in lease.all(Call::new(limited)).await? {
        let name: &str = index.try_get(0)?;
        let wait = RESET_WAIT.as_millis();
        // Statements that are sent together are one transaction.
        let reset = format!(
            "SET LOCAL lock_timeout = {wait}; ALTER INDEX {name} RESET (gin_pending_list_limit)"
        );
        match lease.batch(&reset).await {
            Err(failure) if failure.is_lost() => return Err(failure),
            _ => {}
        }
    }
    Ok(())
}
