//! Dates in English.

use super::calendar::{self, Part};
use super::{Days, Found, Reader};
use crate::search::text::MONTHS;

const WEEKDAYS: [&str; 7] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];
const COUNTS: [&str; 12] = [
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve",
];
const ORDINALS: [&str; 6] = ["last", "first", "second", "third", "fourth", "fifth"];
/// Words that make a month of `may` or `march`, or a year of a number.
const ANNOUNCING: [&str; 22] = [
    "in", "during", "of", "on", "by", "since", "last", "this", "next", "before", "after", "until",
    "till", "from", "to", "and", "early", "late", "mid", "between", "around", "through",
];

/// A span of time that things are counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Day,
    Week,
    Weekend,
    Month,
    Year,
}

fn unit(word: &str) -> Option<Unit> {
    match word {
        "day" | "days" | "night" | "nights" => Some(Unit::Day),
        "week" | "weeks" => Some(Unit::Week),
        "weekend" | "weekends" => Some(Unit::Weekend),
        "month" | "months" => Some(Unit::Month),
        "year" | "years" => Some(Unit::Year),
        _ => None,
    }
}

fn place(list: &[&str], word: &str) -> Option<i32> {
    let at = list.iter().position(|known| *known == word)?;
    i32::try_from(at).ok()
}

/// From 1, whole or abbreviated.
fn month(word: &str) -> Option<i32> {
    let short = |name: &&str| (word.len() == 3 || word == "sept") && name.starts_with(word);
    let at = MONTHS
        .iter()
        .position(|name| *name == word || short(name))?;
    i32::try_from(at + 1).ok()
}

/// From 0 for Monday.
fn weekday(word: &str) -> Option<i32> {
    place(&WEEKDAYS, word.strip_suffix('s').unwrap_or(word)).or_else(|| place(&WEEKDAYS, word))
}

/// From 0 for spring.
fn season(word: &str) -> Option<i32> {
    match word {
        "spring" => Some(0),
        "summer" => Some(1),
        "autumn" | "fall" => Some(2),
        "winter" => Some(3),
        _ => None,
    }
}

/// The day of a month: `7`, `7th`.
fn day(word: &str) -> Option<i32> {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let ending = word.get(digits.len()..)?;
    let day: i32 = digits.parse().ok()?;
    (matches!(ending, "" | "st" | "nd" | "rd" | "th") && (1..=31).contains(&day)).then_some(day)
}

pub(super) fn year(word: &str) -> Option<i32> {
    let year: i32 = word.parse().ok()?;
    (word.len() == 4 && (1900..2100).contains(&year)).then_some(year)
}

impl Reader<'_> {
    /// The date that begins at this word.
    pub(super) fn english(&self, at: usize) -> Option<Found> {
        self.between(at).or_else(|| self.single(at))
    }

    fn single(&self, at: usize) -> Option<Found> {
        self.part_of(at)
            .or_else(|| self.nth_of(at))
            .or_else(|| self.beside(at))
            .or_else(|| self.ago(at))
            .or_else(|| self.near_day(at))
            .or_else(|| self.relative(at))
            .or_else(|| self.period(at))
    }

    /// `between 3 May and 10 May`, `from May to July`, `between 3 and 10 May`.
    fn between(&self, at: usize) -> Option<Found> {
        if !matches!(self.word(at), "between" | "from") {
            return None;
        }
        let joins =
            |at: usize| matches!(self.word(at), "and" | "to" | "until" | "till" | "through");
        if let Some(first) = day(self.word(at + 1))
            && joins(at + 2)
        {
            let last = self.period(at + 3)?;
            let from = last.days.from + first - calendar::civil(last.days.from).2;
            let days = Days::one(from).joined(last.days);
            return (last.days.count() == 1 && from <= last.days.from)
                .then_some(Found { days, ..last });
        }
        let first = self.single(at + 1)?;
        let last = self.single(first.end + 1).filter(|_| joins(first.end))?;
        let mut from = first.days;
        if first.any_year && !last.any_year {
            // `from May to July 2022`: the year holds for both.
            let (end_year, ..) = calendar::civil(last.days.from);
            let (_, month, day) = calendar::civil(from.from);
            let years = [end_year, end_year - 1].into_iter();
            let mut there = years.filter_map(|year| calendar::day(year, month, day));
            let there = there.find(|there| *there <= last.days.from)?;
            from = from.shifted(there - from.from);
        }
        Some(Found {
            days: from.joined(last.days),
            certainty: first.certainty.min(last.certainty),
            any_year: first.any_year && last.any_year,
            end: last.end,
        })
    }

    /// `early May`, `the end of last year`, `mid-June`, `late summer`.
    fn part_of(&self, at: usize) -> Option<Found> {
        let (part, next) = match self.word(at) {
            "early" => (Part::Early, at + 1),
            "mid" | "middle" => (Part::Middle, at + 1),
            "late" => (Part::Late, at + 1),
            "beginning" | "start" => (Part::Early, at + 1),
            "end" => (Part::Late, at + 1),
            _ => return None,
        };
        let next = next + usize::from(matches!(self.word(next), "of" | "in"));
        let next = next + usize::from(self.word(next) == "the");
        let whole = self
            .relative(next)
            .or_else(|| self.period(next))
            .or_else(|| self.this(next))?;
        (whole.days.count() > 6).then_some(Found {
            days: whole.days.part(part),
            ..whole
        })
    }

    /// `first weekend of October`, `the second Tuesday in May 2023`, `last week of June`.
    fn nth_of(&self, at: usize) -> Option<Found> {
        let nth = place(&ORDINALS, self.word(at)).or_else(|| {
            let nth = day(self.word(at))?;
            (self.word(at).len() > 2).then_some(nth)
        })?;
        let of = at + 2;
        if !matches!(self.word(of), "of" | "in") {
            return None;
        }
        let next = of + 1 + usize::from(self.word(of + 1) == "the");
        let whole = || {
            let period = self.relative(next).or_else(|| self.period(next));
            period.or_else(|| self.this(next))
        };
        let (first, length) = match (unit(self.word(at + 1)), weekday(self.word(at + 1))) {
            (Some(Unit::Week), _) => {
                let whole = whole()?;
                let days = whole.days;
                let from = match nth {
                    0 => days.to - 6,
                    nth => days.from + 7 * (nth - 1),
                };
                let days = Days { from, to: from + 6 };
                return (whole.days.count() > 7).then_some(Found { days, ..whole });
            }
            (Some(Unit::Day), _) => {
                let whole = whole()?;
                let days = Days::one(match nth {
                    0 => whole.days.to,
                    nth => whole.days.from + nth - 1,
                });
                return Some(Found { days, ..whole });
            }
            (Some(Unit::Weekend), _) => (5, 2),
            (_, Some(weekday)) => (weekday, 1),
            _ => return None,
        };
        let whole = whole()?;
        let days = whole.days.nth(nth, first, length)?;
        (whole.days.count() > 7).then_some(Found { days, ..whole })
    }

    /// `the week before 3 May`, `the day after Christmas` without Christmas, `the week of May 7`.
    fn beside(&self, at: usize) -> Option<Found> {
        let word = self.word(at);
        let (unit, weekday) = (unit(word), weekday(word));
        unit.map(|_| ()).or(weekday.map(|_| ()))?;
        let after = match self.word(at + 1) {
            "before" => false,
            "after" | "following" => true,
            "of" if unit == Some(Unit::Week) || unit == Some(Unit::Weekend) => {
                let found = self.period(at + 2)?;
                let days = match unit {
                    Some(Unit::Week) => calendar::week(found.days.from),
                    _ => calendar::weekend(found.days.from),
                };
                return (found.days.count() == 1).then_some(Found { days, ..found });
            }
            _ => return None,
        };
        let next = at + 2 + usize::from(self.word(at + 2) == "the");
        let found = self.period(next).or_else(|| self.near_day(next))?;
        let anchor = found.days.from;
        if found.days.count() > 1 {
            return None;
        }
        let days = match (unit, weekday, after) {
            (Some(Unit::Day), _, false) => Days::one(anchor - 1),
            (Some(Unit::Day), _, true) => Days::one(anchor + 1),
            (Some(Unit::Week), _, false) => Days {
                from: anchor - 7,
                to: anchor - 1,
            },
            (Some(Unit::Week), _, true) => Days {
                from: anchor + 1,
                to: anchor + 7,
            },
            (Some(Unit::Weekend), _, false) => Days {
                from: before(anchor, 6) - 1,
                to: before(anchor, 6),
            },
            (Some(Unit::Weekend), _, true) => Days {
                from: before(anchor, 5) + 7,
                to: before(anchor, 5) + 8,
            },
            (_, Some(weekday), false) => Days::one(before(anchor, weekday)),
            (_, Some(weekday), true) => Days::one(before(anchor, weekday) + 7),
            _ => return None,
        };
        Some(Found { days, ..found })
    }

    /// A number of things: how many, whether it is vague, and the word after it.
    fn count(&self, at: usize) -> Option<(i32, bool, usize)> {
        let word = self.word(at);
        let of = |at: usize| at + usize::from(self.word(at) == "of");
        match word {
            "a" | "an" => match self.word(at + 1) {
                "couple" => Some((2, true, of(at + 2))),
                "few" => Some((3, true, of(at + 2))),
                _ => Some((1, false, at + 1)),
            },
            "couple" => Some((2, true, of(at + 1))),
            "few" => Some((3, true, of(at + 1))),
            "several" => Some((4, true, at + 1)),
            _ => {
                let number = word
                    .parse()
                    .ok()
                    .filter(|number| (1..=400).contains(number));
                let number = number.or_else(|| Some(place(&COUNTS, word)? + 1))?;
                Some((number, false, at + 1))
            }
        }
    }

    /// `two weeks ago`, `in three days`, `the past two months`.
    fn ago(&self, at: usize) -> Option<Found> {
        if matches!(self.word(at), "last" | "past") {
            let (count, _, next) = self.count(at + 1)?;
            let days = match unit(self.word(next))? {
                Unit::Day => count,
                Unit::Week | Unit::Weekend => 7 * count,
                Unit::Month => 30 * count,
                Unit::Year => 365 * count,
            };
            let days = Days {
                from: self.today - days,
                to: self.today,
            };
            return Some(Found::new(days, 0.5, next + 1));
        }
        let ahead = matches!(self.word(at), "in" | "within");
        let (count, vague, next) = self.count(at + usize::from(ahead))?;
        let unit = unit(self.word(next))?;
        let (sign, end, certainty) = match self.word(next + 1) {
            "ago" | "back" | "earlier" if !ahead => (-1, next + 2, 0.9),
            "later" if !ahead => return None,
            "from" if !ahead && matches!(self.word(next + 2), "now" | "today") => {
                (1, next + 3, 0.9)
            }
            _ if ahead => (1, next + 1, 0.5),
            _ => return None,
        };
        let (days, reach) = match unit {
            Unit::Day => (Days::one(self.today + sign * count), 1),
            Unit::Week => (Days::around(self.today + sign * 7 * count, 3), 4),
            Unit::Weekend => {
                let last = calendar::weekend(self.today).shifted(-7);
                (last.shifted(sign * 7 * (count - 1)), 3)
            }
            Unit::Month => (Days::around(self.month_away(sign * count)?, 15), 15),
            Unit::Year => {
                let (year, ..) = calendar::civil(self.today);
                (calendar::year(year + sign * count)?, 180)
            }
        };
        let reach = if vague { reach } else { 0 };
        let days = Days {
            from: days.from - reach,
            to: days.to + reach,
        };
        let certainty = if vague { 0.7 * certainty } else { certainty };
        Some(Found::new(days, certainty, end))
    }

    fn month_away(&self, months: i32) -> Option<i32> {
        let (year, month, day) = calendar::civil(self.today);
        let there = calendar::month(year, month + months)?;
        Some((there.from + day - 1).min(there.to))
    }

    /// `yesterday`, `last night`, `the day before yesterday`.
    fn near_day(&self, at: usize) -> Option<Found> {
        let today = self.today;
        let (days, certainty, words) = match (self.word(at), self.word(at + 1)) {
            ("today" | "tonight", _) => (today, 0.7, 1),
            ("yesterday", _) => (today - 1, 1.0, 1),
            ("tomorrow", _) => (today + 1, 0.9, 1),
            ("last", "night" | "evening") => (today - 1, 1.0, 2),
            ("this", "morning" | "afternoon" | "evening") => (today, 0.9, 2),
            ("day", "before") if self.word(at + 2) == "yesterday" => (today - 2, 1.0, 3),
            ("day", "after") if self.word(at + 2) == "tomorrow" => (today + 2, 0.9, 3),
            _ => return None,
        };
        Some(Found::new(Days::one(days), certainty, at + words))
    }

    /// `last week`, `this summer`, `next Friday`, `on Sunday`.
    fn relative(&self, at: usize) -> Option<Found> {
        let word = self.word(at);
        let away = match word {
            "last" | "previous" | "past" => -1,
            "this" | "current" => 0,
            "next" | "coming" | "upcoming" => 1,
            _ => {
                let is_announced = matches!(self.before(at), "on" | "by" | "until" | "since");
                let day = weekday(word).filter(|_| is_announced)?;
                return Some(self.weekday_near(day, 0, at + 1));
            }
        };
        let this = self.this(at + 1)?;
        let (year, month_now, _) = calendar::civil(self.today);
        let next = self.word(at + 1);
        let days = match unit(next) {
            Some(Unit::Week) => this.days.shifted(7 * away),
            Some(Unit::Weekend) => {
                let weekend = calendar::weekend(self.today);
                match away {
                    -1 if weekend.to < self.today => weekend,
                    _ => weekend.shifted(7 * away),
                }
            }
            Some(Unit::Month) => calendar::month(year, month_now + away)?,
            Some(Unit::Year) => calendar::year(year + away)?,
            Some(Unit::Day) => return None,
            None => match (weekday(next), season(next), month(next)) {
                (Some(day), ..) => return Some(self.weekday_near(day, away, at + 2)),
                (_, Some(of), _) => self.occasion(away, |year| calendar::season(year, of))?,
                (.., Some(of)) => self.occasion(away, |year| calendar::month(year, of))?,
                _ => return None,
            },
        };
        let certainty = if away > 0 { 0.7 } else { 0.9 };
        Some(Found::new(days, certainty, this.end))
    }

    /// The last, the present or next, or the next but one that comes every year.
    fn occasion(&self, away: i32, days: impl Fn(i32) -> Option<Days>) -> Option<Days> {
        let (year, ..) = calendar::civil(self.today);
        let mut all = (year - 2..=year + 2).filter_map(days);
        match away {
            -1 => all.rfind(|days| days.to < self.today),
            0 => {
                let this = all.find(|days| days.to >= self.today - 180);
                this.filter(|days| days.from <= self.today + 200)
            }
            _ => all.find(|days| days.from > self.today),
        }
    }

    fn weekday_near(&self, day: i32, away: i32, end: usize) -> Found {
        let last = before(self.today, day);
        match away {
            -1 => Found::new(Days::one(last), 0.9, end),
            0 => Found::new(Days::one(last), 0.6, end),
            _ => Found::new(Days::one(last + 7), 0.7, end),
        }
    }

    /// The week, weekend, month or year of today, or a name of a period.
    fn this(&self, at: usize) -> Option<Found> {
        let (year, month_now, _) = calendar::civil(self.today);
        let word = self.word(at);
        let days = match unit(word) {
            Some(Unit::Day) => return None,
            Some(Unit::Week) => calendar::week(self.today),
            Some(Unit::Weekend) => calendar::weekend(self.today),
            Some(Unit::Month) => calendar::month(year, month_now)?,
            Some(Unit::Year) => calendar::year(year)?,
            None => {
                season(word).or(weekday(word)).or(month(word))?;
                Days::one(self.today)
            }
        };
        Some(Found::new(days, 0.7, at + 1))
    }

    /// A date that is named: a day, a month, a season, a year.
    fn period(&self, at: usize) -> Option<Found> {
        let at = at + usize::from(self.word(at) == "the");
        self.days_of_month(at)
            .or_else(|| self.day_first(at))
            .or_else(|| self.month_first(at))
            .or_else(|| self.season_of(at))
            .or_else(|| self.quarter(at))
            .or_else(|| self.bare_year(at))
    }

    /// `3-10 May 2023`, `May 3–10`.
    fn days_of_month(&self, at: usize) -> Option<Found> {
        let (days, name, next) = match month(self.word(at)) {
            Some(_) => (at + 1, at, at + 2),
            None => (at, at + 1, at + 2),
        };
        let (first, last) = self.word(days).split_once(['-', '–'])?;
        let (first, last) = (day(first)?, day(last)?);
        let number = month(self.word(name)).filter(|_| first < last)?;
        let end = self.on(number, last, next)?;
        let days = Days::one(end.days.from - (last - first)).joined(end.days);
        Some(Found { days, ..end })
    }

    /// `7 May 2023`, `the 7th of May`, `7th` after `on the`.
    fn day_first(&self, at: usize) -> Option<Found> {
        let day = day(self.word(at))?;
        let of = at + 1 + usize::from(self.word(at + 1) == "of");
        if let Some(month) = month(self.word(of)) {
            return self.on(month, day, of + 1);
        }
        let is_ordinal = self.word(at).len() > 2 && self.before(at) == "the";
        let on = at.checked_sub(2).map_or("", |at| self.word(at));
        if is_ordinal && matches!(on, "on" | "since" | "until" | "by") {
            let (year, month, _) = calendar::civil(self.today);
            let months = (month - 1..=month + 1).filter_map(|month| {
                let whole = calendar::month(year, month)?;
                let there = whole.from + day - 1;
                whole.has(there).then_some(there)
            });
            let nearest = months.min_by_key(|there| (there - self.today).abs())?;
            return Some(Found::new(Days::one(nearest), 0.6, at + 1));
        }
        None
    }

    /// `May 7th, 2023`, `May 2023`, `in May`.
    fn month_first(&self, at: usize) -> Option<Found> {
        let number = month(self.word(at))?;
        if let Some(day) = day(self.word(at + 1)) {
            return self.on(number, day, at + 2);
        }
        let of = at + 1 + usize::from(self.word(at + 1) == "of");
        if let Some(year) = year(self.word(of)) {
            return Some(Found::new(calendar::month(year, number)?, 1.0, of + 1));
        }
        let is_announced = ANNOUNCING.contains(&self.before(at));
        let is_name = self.is_capital(at) && at > 0;
        let doubtful = matches!(
            self.word(at),
            "may" | "march" | "mar" | "sun" | "sat" | "jan"
        );
        let (certain, likely) = (
            is_announced && (is_name || !doubtful),
            is_announced || is_name,
        );
        if !(certain || (likely && !doubtful) || (is_announced && self.asks)) {
            return None;
        }
        let days = calendar::nearest(self.today, |year| calendar::month(year, number))?;
        Some(Found {
            any_year: true,
            ..Found::new(days, 0.7, at + 1)
        })
    }

    /// This day of this month, with the year that may follow.
    fn on(&self, month: i32, day: i32, next: usize) -> Option<Found> {
        if let Some(year) = year(self.word(next)) {
            let day = calendar::day(year, month, day)?;
            return Some(Found::new(Days::one(day), 1.0, next + 1));
        }
        let there = |year| calendar::day(year, month, day).map(Days::one);
        let days = calendar::nearest(self.today, there)?;
        Some(Found {
            any_year: true,
            ..Found::new(days, 0.9, next)
        })
    }

    /// `summer 2022`, `in the winter of 2021`, `in spring`.
    fn season_of(&self, at: usize) -> Option<Found> {
        let number = season(self.word(at))?;
        let of = at + 1 + usize::from(self.word(at + 1) == "of");
        if let Some(year) = year(self.word(of)) {
            return Some(Found::new(calendar::season(year, number)?, 0.9, of + 1));
        }
        let before = match self.before(at) {
            "the" => at.checked_sub(2).map_or("", |at| self.word(at)),
            before => before,
        };
        let is_announced = ANNOUNCING.contains(&before) || before == "over" || before == "end";
        if !is_announced {
            return None;
        }
        let days = calendar::nearest(self.today, |year| calendar::season(year, number))?;
        Some(Found {
            any_year: true,
            ..Found::new(days, 0.5, at + 1)
        })
    }

    /// `Q3 2023`.
    fn quarter(&self, at: usize) -> Option<Found> {
        let number: i32 = self.word(at).strip_prefix('q')?.parse().ok()?;
        let year = year(self.word(at + 1)).filter(|_| (1..=4).contains(&number))?;
        let first = calendar::month(year, 3 * number - 2)?;
        let days = first.joined(calendar::month(year, 3 * number)?);
        Some(Found::new(days, 1.0, at + 2))
    }

    fn bare_year(&self, at: usize) -> Option<Found> {
        let number = year(self.word(at))?;
        let before = match self.before(at) {
            "year" | "the" => "in",
            before => before,
        };
        let is_announced = ANNOUNCING.contains(&before) && before != "to" && before != "and";
        (is_announced || self.asks)
            .then(|| Some(Found::new(calendar::year(number)?, 0.6, at + 1)))?
    }
}

/// The last such weekday before the day.
fn before(day: i32, weekday: i32) -> i32 {
    day - 1 - (calendar::weekday(day - 1) - weekday).rem_euclid(7)
}
