//! A moment, in milliseconds. The engine never asks what time it is: it is told.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::Invalid;

/// Milliseconds since 1970-01-01 UTC, within the years -9999 to 9999.
///
/// Printed and read as RFC 3339 with three decimals, the canonical form in records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

const DAY_MS: i64 = 86_400_000;

impl Time {
    /// The beginning of 1970.
    pub const EPOCH: Self = Self(0);

    /// From milliseconds since 1970.
    pub fn from_millis(ms: i64) -> Result<Self, Invalid> {
        Timestamp::from_millisecond(ms)
            .map(|_| Self(ms))
            .map_err(|_| {
                Invalid::new(
                    "time",
                    format!("{ms} ms is outside the years -9999 to 9999"),
                )
            })
    }

    /// Milliseconds since 1970.
    pub fn millis(self) -> i64 {
        self.0
    }

    /// This many milliseconds later; stays within the calendar.
    #[must_use]
    pub fn plus_millis(self, ms: i64) -> Self {
        let latest = Timestamp::MAX.as_second() * 1000;
        let earliest = Timestamp::MIN.as_second() * 1000;
        Self(self.0.saturating_add(ms).clamp(earliest, latest))
    }

    /// This many days later; stays within the calendar.
    #[must_use]
    pub fn plus_days(self, days: i64) -> Self {
        self.plus_millis(days.saturating_mul(DAY_MS))
    }

    /// How many whole days this is later; negative if it is earlier.
    pub fn days_since(self, before: Self) -> i64 {
        self.0.saturating_sub(before.0) / DAY_MS
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Timestamp::from_millisecond(self.0) {
            Ok(at) => write!(f, "{at:.3}"),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

impl FromStr for Time {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let at: Timestamp = text.parse().map_err(|_| {
            Invalid::new(
                "time",
                format!("`{text}` is not a time; write it like 2026-01-31T12:00:00Z"),
            )
        })?;
        // The last second of the calendar has no milliseconds: none that would print again.
        Self::from_millis(at.as_millisecond())
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_and_reads_three_decimals() {
        let time = Time::from_millis(1_700_000_000_120).unwrap();
        assert_eq!(time.to_string(), "2023-11-14T22:13:20.120Z");
        assert_eq!(time.to_string().parse::<Time>().unwrap(), time);
    }

    #[test]
    fn reads_other_zones() {
        let time: Time = "2023-11-15T05:13:20+07:00".parse().unwrap();
        assert_eq!(time.to_string(), "2023-11-14T22:13:20.000Z");
    }

    #[test]
    fn refuses_what_is_no_time() {
        let error = "yesterday".parse::<Time>().unwrap_err();
        assert!(error.to_string().contains("write it like"), "{error}");
        assert!(Time::from_millis(i64::MAX).is_err());
    }

    #[test]
    fn adding_stays_in_the_calendar() {
        let late = Time::from_millis(1_700_000_000_000)
            .unwrap()
            .plus_days(i64::MAX);
        assert!(Time::from_millis(late.millis()).is_ok());
        assert_eq!(late.to_string().parse::<Time>().unwrap(), late);
        let later = late.to_string().replace(".000Z", ".001Z");
        assert!(later.parse::<Time>().is_err(), "{later}");
    }
}
