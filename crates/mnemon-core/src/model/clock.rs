//! Whether the time of a call may erase anything.
//!
//! What has expired is erased permanently, so one call with a clock that runs years ahead must not do
//! it. Each tenant remembers when it was written to last. A call that is much later than that
//! erases nothing, until the same clock has gone on for a day and so has shown that it is right: a
//! store that nobody used for months works again after a day.

use serde::{Deserialize, Serialize};

use crate::model::{Grant, Time, limits};

/// What a tenant knows of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Clock {
    /// When it was last used by a clock that was believed; `None` before the first write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted: Option<Time>,
    /// When a clock that is too far ahead was first seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspect: Option<Time>,
}

impl Clock {
    /// The clock after a call at `now`. A clock that is `accepted` is believed whatever it says.
    #[must_use]
    pub fn observe(self, now: Time, accepted: bool) -> Self {
        let believed = Self {
            trusted: Some(now),
            suspect: None,
        };
        let follows = |before: Time| now <= before.plus_days(limits::CLOCK_STEP_DAYS);
        if accepted || self.trusted.is_none_or(follows) {
            return believed;
        }
        match self.suspect {
            Some(first) if now >= first && follows(first) => {
                match now >= first.plus_days(limits::CLOCK_PROOF_DAYS) {
                    true => believed,
                    false => self,
                }
            }
            // It is another clock than the one that was suspected before.
            _ => Self {
                suspect: Some(now),
                ..self
            },
        }
    }

    /// How many days the caller's clock is ahead of the newest write, if that is too many to erase
    /// anything.
    pub fn days_ahead(self, grant: &Grant) -> Option<i64> {
        let after = self.observe(grant.now(), grant.accepts_clock());
        after.suspect?;
        Some(grant.now().days_since(self.trusted?))
    }

    /// Whether a call that changes nothing else is worth a write to remember this clock: a
    /// suspicion that comes or goes is, and so is each day.
    pub fn is_worth_keeping_after(self, before: Self) -> bool {
        let Some((old, new)) = before.trusted.zip(self.trusted) else {
            return false;
        };
        self.suspect != before.suspect || new.days_since(old) != 0
    }
}

/// What a caller is told whose clock is too far ahead to erase anything.
pub fn notice(days_ahead: i64) -> String {
    format!(
        "the clock is {days_ahead} days ahead of the newest write: nothing was expired. If the \
         clock is right, this ends after a day, or at once with mnemon upkeep --accept-clock"
    )
}

#[cfg(test)]
mod tests;
