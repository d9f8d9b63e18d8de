//! Who writes how often.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

use mnemon_core::{Ctx, Scope, Tenant, Time, limits};

use crate::records::Error;

const MINUTE_MS: i64 = 60_000;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Writer {
    tenant: Tenant,
    flow: Option<String>,
    agent: Option<String>,
    scope: Scope,
}

/// What is left of a minute's calls. It fills up evenly, so a burst may use all of it at once.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    /// Thousandths of a call, times the milliseconds of a minute: whole numbers do not drift.
    left: i64,
    at: Time,
}

/// Token buckets, one for each key that was used lately. They live in this process: two processes
/// count separately.
#[derive(Debug)]
pub(crate) struct Buckets<K>(Mutex<HashMap<K, Bucket>>);

impl<K> Default for Buckets<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash> Buckets<K> {
    /// Counts a call, or says when the next one may come.
    pub(crate) fn take(&self, key: K, now: Time, per_minute: u64) -> Result<(), Time> {
        let rate = i64::try_from(per_minute)
            .unwrap_or(i64::MAX)
            .min(1_000_000_000);
        let full = rate.saturating_mul(MINUTE_MS);
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        make_room(&mut buckets, now);
        let bucket = buckets.entry(key).or_insert(Bucket {
            left: full,
            at: now,
        });
        // A clock that was set back gives nothing and takes nothing.
        let passed = (now.millis() - bucket.at.millis()).clamp(0, MINUTE_MS);
        let left = bucket
            .left
            .saturating_add(passed.saturating_mul(rate))
            .min(full);
        *bucket = Bucket {
            left,
            at: now.max(bucket.at),
        };
        if left >= MINUTE_MS {
            bucket.left = left - MINUTE_MS;
            return Ok(());
        }
        let wait = match rate {
            0 => MINUTE_MS,
            rate => (MINUTE_MS - left + rate - 1) / rate,
        };
        Err(bucket.at.plus_millis(wait))
    }
}

/// The buckets of everybody who has written lately.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    buckets: Buckets<Writer>,
}

impl Rates {
    /// Counts a write, or says when the next one may come.
    pub(crate) fn count(
        &self,
        ctx: &Ctx,
        flow: Option<&str>,
        agent: Option<&str>,
        scope: Scope,
        per_minute: u64,
    ) -> Result<(), Error> {
        let writer = Writer {
            tenant: ctx.tenant.clone(),
            flow: flow.map(str::to_owned),
            agent: agent.map(str::to_owned),
            scope,
        };
        let taken = self.buckets.take(writer, ctx.now, per_minute);
        taken.map_err(|retry| Error::TooOften {
            scope,
            per_minute,
            retry,
        })
    }
}

/// A key that was not used for a minute has a full bucket and need not be remembered.
fn make_room<K: Eq + Hash>(buckets: &mut HashMap<K, Bucket>, now: Time) {
    if buckets.len() < limits::RATE_COUNTERS {
        return;
    }
    buckets.retain(|_, bucket| now.millis() - bucket.at.millis() < MINUTE_MS);
    if buckets.len() >= limits::RATE_COUNTERS {
        // All of them within a minute: better to let some write too much than to grow for ever.
        buckets.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(ms: i64) -> Ctx {
        let now = Time::EPOCH.plus_millis(1_700_000_000_000 + ms);
        Ctx::new(Tenant::default(), "test", now)
    }

    fn write(rates: &Rates, ms: i64, agent: &str, per_minute: u64) -> Result<(), Error> {
        rates.count(&at(ms), Some("f"), Some(agent), Scope::Dialog, per_minute)
    }

    #[test]
    fn a_minute_holds_so_many_and_then_says_when() {
        let rates = Rates::default();
        for _ in 0..6 {
            write(&rates, 0, "a", 6).unwrap();
        }
        let Err(Error::TooOften { retry, .. }) = write(&rates, 0, "a", 6) else {
            panic!("the seventh was taken");
        };
        assert_eq!(retry, at(10_000).now);
        assert!(write(&rates, 9_999, "a", 6).is_err());
        write(&rates, 10_000, "a", 6).unwrap();
        assert!(write(&rates, 10_000, "a", 6).is_err());
        write(&rates, 0, "b", 6).unwrap();
    }

    #[test]
    fn a_rate_of_nothing_takes_nothing_and_a_clock_set_back_does_no_harm() {
        let rates = Rates::default();
        assert!(write(&rates, 0, "a", 0).is_err());
        assert!(write(&rates, 600_000, "a", 0).is_err());
        write(&rates, 600_000, "b", 1).unwrap();
        assert!(write(&rates, 0, "b", 1).is_err());
        write(&rates, 660_000, "b", 1).unwrap();
    }

    #[test]
    fn counters_do_not_grow_for_ever() {
        let rates = Rates::default();
        for n in 0..limits::RATE_COUNTERS + 10 {
            write(&rates, 0, &n.to_string(), 5).unwrap();
        }
        assert!(rates.buckets.0.lock().unwrap().len() <= limits::RATE_COUNTERS);
    }

    proptest! {
        /// In no stretch of a minute are there more than twice the rate (a full bucket, and what
        /// flows in), and whoever waits as told is served.
        #[test]
        fn the_rate_is_held(
            rate in 1_u64..20,
            pauses in proptest::collection::vec(0_i64..20_000, 1..80)
        ) {
            let rates = Rates::default();
            let mut now = 0;
            let mut taken: Vec<i64> = Vec::new();
            for pause in pauses {
                now += pause;
                match write(&rates, now, "a", rate) {
                    Ok(()) => taken.push(now),
                    Err(Error::TooOften { retry, .. }) => {
                        let wait = retry.millis() - at(0).now.millis();
                        prop_assert!(wait > now);
                        now = wait;
                        prop_assert!(write(&rates, now, "a", rate).is_ok());
                        taken.push(now);
                    }
                    Err(other) => return Err(TestCaseError::fail(other.to_string())),
                }
            }
            for start in &taken {
                let within = taken.iter().filter(|t| (*start..start + MINUTE_MS).contains(t)).count();
                prop_assert!(within as u64 <= 2 * rate);
            }
        }
    }
}
