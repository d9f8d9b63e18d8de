//! Keys that were read from the store within the last second.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mnemon_core::{Time, limits};

use super::StoredKey;

/// How long a key counts as it was read. A revocation by another process takes effect after this
/// time at the latest.
const FRESH_MS: i64 = 1000;

/// By prefix: the key, or that there is none, and when that was read.
type Entries = HashMap<String, (Time, Option<Arc<StoredKey>>)>;

#[derive(Debug, Default)]
pub(super) struct Cache {
    entries: Mutex<Entries>,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl Cache {
    /// The key, or that there is none; `None` if the store must be asked.
    pub(super) fn get(&self, prefix: &str, now: Time) -> Option<Option<Arc<StoredKey>>> {
        let entries = self.entries();
        let (read, stored) = entries.get(prefix)?;
        is_fresh(*read, now).then(|| stored.clone())
    }

    /// The same, and counts whether it was here.
    pub(super) fn get_counted(&self, prefix: &str, now: Time) -> Option<Option<Arc<StoredKey>>> {
        let found = self.get(prefix, now);
        let count = match found {
            Some(_) => &self.hits,
            None => &self.misses,
        };
        count.fetch_add(1, Ordering::Relaxed);
        found
    }

    /// How often a key was here, and how often the store had to be asked.
    pub(super) fn hits_and_misses(&self) -> (u64, u64) {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (count(&self.hits), count(&self.misses))
    }

    pub(super) fn put(&self, prefix: &str, now: Time, stored: Option<Arc<StoredKey>>) {
        let mut entries = self.entries();
        if entries.len() >= limits::KEYS && !entries.contains_key(prefix) {
            entries.retain(|_, (read, _)| is_fresh(*read, now));
            if entries.len() >= limits::KEYS {
                // All of them within a second: the store is asked more often.
                entries.clear();
            }
        }
        entries.insert(prefix.to_owned(), (now, stored));
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A time that is ahead of the clock, which was set back, counts as old.
fn is_fresh(read: Time, now: Time) -> bool {
    (0..FRESH_MS).contains(&(now.millis() - read.millis()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_bounded_and_forgets_after_a_second() {
        let (cache, now) = (Cache::default(), Time::EPOCH);
        for number in 0..limits::KEYS + 10 {
            cache.put(&number.to_string(), now, None);
        }
        assert!(cache.entries().len() <= limits::KEYS);
        cache.put("a", now, None);
        assert!(cache.get("a", now.plus_millis(999)).is_some());
        assert!(cache.get("a", now.plus_millis(1000)).is_none());
        assert!(cache.get("a", now.plus_millis(-1)).is_none());
    }
}
