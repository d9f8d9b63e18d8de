//! Arithmetic with whole days.

use jiff::civil::{Date, date};
use jiff::tz::TimeZone;

use crate::model::{Days, Time};

/// The day from which days are counted.
const EPOCH: Date = date(1970, 1, 1);

/// The parts of a month, a season or a year.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Early,
    Middle,
    Late,
}

impl Days {
    pub(super) fn one(day: i32) -> Self {
        Self { from: day, to: day }
    }

    pub(super) fn around(day: i32, reach: i32) -> Self {
        Self {
            from: day - reach,
            to: day + reach,
        }
    }

    /// From the first day of the one to the last day of the other.
    pub(super) fn joined(self, other: Self) -> Self {
        Self {
            from: self.from.min(other.from),
            to: self.to.max(other.to),
        }
    }

    pub(super) fn count(self) -> i32 {
        self.to - self.from + 1
    }

    pub(super) fn has(self, day: i32) -> bool {
        (self.from..=self.to).contains(&day)
    }

    /// How many days both have.
    pub(super) fn shared(self, other: Self) -> i32 {
        (self.to.min(other.to) - self.from.max(other.from) + 1).max(0)
    }

    pub(super) fn shifted(self, days: i32) -> Self {
        Self {
            from: self.from + days,
            to: self.to + days,
        }
    }

    /// A third of them; in a month that is early until the 10th.
    pub(super) fn part(self, part: Part) -> Self {
        let third = self.count() / 3;
        match part {
            Part::Early => Self {
                from: self.from,
                to: self.from + third - 1,
            },
            Part::Middle => Self {
                from: self.from + third,
                to: self.to - third,
            },
            Part::Late => Self {
                from: self.to - third + 1,
                to: self.to,
            },
        }
    }

    /// The first, second … of these weekdays, or of these weeks, or the last one (0).
    pub(super) fn nth(self, nth: i32, first: i32, length: i32) -> Option<Self> {
        let ahead = (first - weekday(self.from)).rem_euclid(7);
        let mut from = self.from + ahead;
        if nth == 0 {
            from += (self.to - from) / 7 * 7;
        } else {
            from += 7 * (nth - 1);
        }
        self.has(from).then_some(Self {
            from,
            to: from + length - 1,
        })
    }
}

/// 0 for Monday.
pub(super) fn weekday(day: i32) -> i32 {
    (day + 3).rem_euclid(7)
}

/// The UTC day of a moment.
pub(super) fn day_of(time: Time) -> i32 {
    day_of_millis(time.millis())
}

/// The same for a moment by its milliseconds since 1970.
pub fn day_of_millis(millis: i64) -> i32 {
    i32::try_from(millis.div_euclid(86_400_000)).unwrap_or(0)
}

fn number(date: Date) -> i32 {
    i32::try_from(date.duration_since(EPOCH).as_hours() / 24).unwrap_or(0)
}

/// Year, month and day.
pub(super) fn civil(day: i32) -> (i32, i32, i32) {
    let at = jiff::Timestamp::from_second(i64::from(day) * 86_400).unwrap_or_default();
    let date = at.to_zoned(TimeZone::UTC).date();
    (
        i32::from(date.year()),
        i32::from(date.month()),
        i32::from(date.day()),
    )
}

/// The number of a day; `None` if there is no such day.
pub(super) fn day(year: i32, month: i32, day: i32) -> Option<i32> {
    let year = i16::try_from(year).ok()?;
    let date = Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?);
    date.ok().map(number)
}

/// The days of a month; months before January are those of the year before.
pub(super) fn month(year: i32, month: i32) -> Option<Days> {
    let first = |ahead: i32| {
        let months = year * 12 + month - 1 + ahead;
        day(months.div_euclid(12), months.rem_euclid(12) + 1, 1)
    };
    Some(Days {
        from: first(0)?,
        to: first(1)? - 1,
    })
}

pub(super) fn year(year: i32) -> Option<Days> {
    Some(month(year, 1)?.joined(month(year, 12)?))
}

/// Spring, summer, autumn and winter (0 to 3) of a year. The winter of a year begins in December
/// of the year before.
pub(super) fn season(year: i32, season: i32) -> Option<Days> {
    let first = match season {
        3 => 0,
        season => 3 + 3 * season,
    };
    Some(month(year, first)?.joined(month(year, first + 2)?))
}

/// The week from Monday to Sunday that has this day.
pub(super) fn week(day: i32) -> Days {
    let monday = day - weekday(day);
    Days {
        from: monday,
        to: monday + 6,
    }
}

/// Saturday and Sunday of the week that has this day.
pub(super) fn weekend(day: i32) -> Days {
    let saturday = week(day).from + 5;
    Days {
        from: saturday,
        to: saturday + 1,
    }
}

/// The year of a date without one: the nearest to today, rather before than after it.
pub(super) fn nearest(today: i32, days: impl Fn(i32) -> Option<Days>) -> Option<Days> {
    let (this, ..) = civil(today);
    let years = [this - 1, this, this + 1].into_iter().filter_map(days);
    years.min_by_key(|days| match days.from - today {
        ahead @ 1.. => 2 * ahead,
        _ => (today - days.to).max(0),
    })
}
