//! Names of records.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Deserializer, Serialize};

use crate::error::Invalid;
use crate::model::{Time, limits};

/// A record's name within its tenant.
///
/// Ours are UUIDs in time order; ids that came with an import are kept as they are, as long as
/// they are printable ASCII without spaces.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Id(String);

impl Id {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Id {
    /// The id that stands for a digest: the same one for the same digest, for records of which
    /// there is one of its sort (a user's profile, a session's summary).
    pub fn from_digest(digest: [u8; 16]) -> Self {
        uuid::Builder::from_custom_bytes(digest).into_uuid().into()
    }
}

impl From<uuid::Uuid> for Id {
    fn from(uuid: uuid::Uuid) -> Self {
        Self(uuid.to_string())
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Id {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        if text.is_empty() {
            return Err(Invalid::new("id", "is empty"));
        }
        if text.len() > limits::ID_CHARS {
            let most = limits::ID_CHARS;
            return Err(Invalid::new(
                "id",
                format!("has {} characters, at most {most} are allowed", text.len()),
            ));
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Invalid::new(
                "id",
                "may hold printable ASCII characters only, without spaces",
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A source of fresh ids: a pure function of a seed, a counter and the time it is told.
///
/// The door seeds it from the operating system; a test seeds it with a constant and gets the same
/// ids every time.
#[derive(Debug)]
pub struct Ids {
    seed: u64,
    count: AtomicU64,
}

impl Ids {
    /// Ids from this seed. Two processes must not share one.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            count: AtomicU64::new(0),
        }
    }

    /// The next id: a version 7 UUID whose 12 bits after the time count upwards, so that ids made
    /// in one millisecond sort in the order they were made.
    pub fn next(&self, now: Time) -> Id {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let millis = u64::try_from(now.millis()).unwrap_or(0);
        let [_, _, _, _, _, _, high, low] = count.to_be_bytes();
        let [a, b, c, d, e, f, g, h] = mix(self.seed ^ mix(count)).to_be_bytes();
        let random = [high & 0x0f, low, a, b, c, d, e, f, g, h];
        let uuid = uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid();
        uuid.into()
    }
}

/// SplitMix64's finaliser: spreads every input bit over the whole word.
fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fresh_ids_sort_in_the_order_they_were_made() {
        let ids = Ids::new(1);
        let now = Time::from_millis(1_700_000_000_000).unwrap();
        let mut made: Vec<Id> = (0..4000).map(|_| ids.next(now)).collect();
        made.push(ids.next(now.plus_millis(1)));
        let mut sorted = made.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!(made, sorted);
        assert_eq!(&made[0].as_str()[14..15], "7", "a version 7 UUID");
    }

    #[test]
    fn two_seeds_never_meet() {
        let now = Time::from_millis(1_700_000_000_000).unwrap();
        let (one, two) = (Ids::new(1), Ids::new(2));
        let ours: std::collections::HashSet<Id> = (0..10_000).map(|_| one.next(now)).collect();
        assert!((0..10_000).all(|_| !ours.contains(&two.next(now))));
    }

    #[test]
    fn a_digest_has_one_id() {
        let id = Id::from_digest([7; 16]);
        assert_eq!(id, Id::from_digest([7; 16]));
        assert_ne!(id, Id::from_digest([8; 16]));
        assert_eq!(&id.as_str()[14..15], "8", "a UUID that no clock made");
    }

    #[test]
    fn refuses_unprintable_ids() {
        for bad in ["", "a b", "naïve", "a\0b", "tab\t", &"x".repeat(129)] {
            assert!(bad.parse::<Id>().is_err(), "{bad:?}");
        }
        assert_eq!("abc123".parse::<Id>().unwrap().as_str(), "abc123");
    }
}
