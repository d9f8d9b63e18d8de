use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::error::Invalid;
use crate::model::Time;

/// A day, written `2025-12-31`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(Date);

impl Day {
    /// The day of a moment, in UTC: files are shared between people in many zones.
    pub fn of(time: Time) -> Self {
        let at = Timestamp::from_millisecond(time.millis()).unwrap_or(Timestamp::UNIX_EPOCH);
        Self(at.to_zoned(TimeZone::UTC).date())
    }

    /// Midnight at the beginning of the day, in UTC.
    pub fn start(self) -> Time {
        let at = self.0.to_zoned(TimeZone::UTC);
        let ms = at.map_or(0, |at| at.timestamp().as_millisecond());
        Time::EPOCH.plus_millis(ms)
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl FromStr for Day {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let invalid = || {
            let shown = text.escape_debug();
            Invalid::new(
                "date",
                format!("`{shown}` is not a day; write it like 2025-12-31"),
            )
        };
        let digit = |at: usize| text.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
        let dash = |at: usize| text.as_bytes().get(at) == Some(&b'-');
        let shape = text.len() == 10
            && (0..10).all(|at| {
                if at == 4 || at == 7 {
                    dash(at)
                } else {
                    digit(at)
                }
            });
        if !shape {
            return Err(invalid());
        }
        text.parse().map(Self).map_err(|_| invalid())
    }
}
