//! Days that a text names: `yesterday`, `the first weekend of May`, `先週の金曜日`, `3 ngày trước`.
//!
//! A record tells of days, read relative to the day it is from; a query asks for days, read
//! relative to today. Both are intervals. English, Vietnamese and Japanese.

mod calendar;
mod english;
mod japanese;
mod tokens;
mod vietnamese;

use std::ops::RangeInclusive;

pub use crate::model::{Asked, Days, Told};
pub use calendar::day_of_millis;
use tokens::Tokens;

use crate::model::Time;
use crate::search::text::is_unspaced;

/// Days that one text tells of, at the most.
const MOST: usize = 6;
/// An asked span of more days than this says little about each.
const LONG: i32 = 100;
/// What it counts then.
const LONG_WEIGHT: f32 = 0.3;
/// Characters of a text without spaces that are read.
const UNSPACED: usize = 20_000;
/// Days before a date that `before` means.
const OPEN: i32 = 365;
/// Days of another year than the nearest one, where no year is given, fit less by this factor.
const OTHER_YEAR: f32 = 0.85;
/// Years in which days without a year are looked for.
const YEARS: RangeInclusive<i32> = 1900..=2100;

/// A date in a text. `end` counts words, in unspaced text bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Found {
    days: Days,
    certainty: f32,
    any_year: bool,
    end: usize,
}

impl Found {
    fn new(days: Days, certainty: f32, end: usize) -> Self {
        Self {
            days,
            certainty,
            any_year: false,
            end,
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    tokens: Tokens,
    today: i32,
    /// Whether the text is a query.
    asks: bool,
}

/// The days that a record of this moment tells of, in the order of its text.
pub fn told(text: &str, created: Time) -> Vec<Told> {
    let mut told: Vec<Told> = Vec::new();
    for (found, _) in Reader::new(text, created, false).all() {
        let is_new = told.iter().all(|known| known.days != found.days);
        if is_new && told.len() < MOST {
            told.push(Told {
                days: found.days,
                certainty: found.certainty,
            });
        }
    }
    told
}

/// The days that a query asks for, the query without the words for them, and these words.
pub fn asked(query: &str, now: Time) -> (Vec<Asked>, String, String) {
    let mut asked = Vec::new();
    let (mut rest, mut words, mut kept) = (String::new(), String::new(), 0);
    let today = calendar::day_of(now);
    for (found, (start, end)) in Reader::new(query, now, true).all() {
        if asked.len() >= MOST {
            break;
        }
        let before = last_words(query.get(..start).unwrap_or_default().trim_end());
        // It says from when the answer should be, not what it is about.
        if before.to_lowercase().ends_with("as of") {
            continue;
        }
        asked.push(open(before, found, today));
        rest.push_str(query.get(kept..start).unwrap_or_default());
        words.push_str(query.get(start..end).unwrap_or_default());
        words.push(' ');
        kept = end;
    }
    rest.push_str(query.get(kept..).unwrap_or_default());
    (asked, rest, words)
}

/// The end of a text, enough for two short words.
fn last_words(text: &str) -> &str {
    let start = text.floor_char_boundary(text.len().saturating_sub(10));
    text.get(start..).unwrap_or_default()
}

/// The days before or after a date, if the words before it say so.
fn open(before: &str, found: Found, today: i32) -> Asked {
    let Days { from, to } = found.days;
    let word = before
        .rsplit(char::is_whitespace)
        .next()
        .unwrap_or_default();
    let (from, to) = match word.to_lowercase().as_str() {
        "since" => (from, today.max(to)),
        "after" => (to + 1, today.max(to + 1)),
        "before" => (from - OPEN, from - 1),
        "until" | "till" => (to - OPEN, to),
        _ => {
            return Asked {
                days: found.days,
                any_year: found.any_year,
            };
        }
    };
    Asked {
        days: Days { from, to },
        any_year: false,
    }
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, now: Time, asks: bool) -> Self {
        Self {
            text,
            tokens: Tokens::of(text),
            today: calendar::day_of(now),
            asks,
        }
    }

    fn word(&self, at: usize) -> &str {
        self.tokens.word(at)
    }

    fn before(&self, at: usize) -> &str {
        self.tokens.before(at)
    }

    fn is_capital(&self, at: usize) -> bool {
        self.tokens.is_capital(at)
    }

    /// Every date with the place of its words, in the order of the text.
    fn all(&self) -> Vec<(Found, (usize, usize))> {
        let mut all = Vec::new();
        let mut at = 0;
        while at < self.tokens.len() {
            let found = match may_begin(self.word(at)) {
                true => self
                    .numeric(at)
                    .or_else(|| self.vietnamese(at).or_else(|| self.english(at))),
                false => None,
            };
            let Some(found) = found.filter(|found| found.end > at) else {
                at += 1;
                continue;
            };
            all.push((found, self.tokens.place(at, found.end)));
            at = found.end;
        }
        if self.text.chars().any(is_unspaced) {
            self.unspaced(&mut all);
            all.sort_by_key(|(_, place)| *place);
            let mut read = 0;
            all.retain(|(_, (start, end))| {
                let is_apart = *start >= read;
                read = if is_apart { *end } else { read };
                is_apart
            });
        }
        all
    }

    fn unspaced(&self, all: &mut Vec<(Found, (usize, usize))>) {
        let mut read = 0;
        for (start, _) in self.text.char_indices().take(UNSPACED) {
            let rest = self.text.get(start..).unwrap_or_default();
            if start < read {
                continue;
            }
            if let Some(found) = self.japanese(rest).filter(|found| found.end > 0) {
                read = start + found.end;
                all.push((found, (start, read)));
            }
        }
    }

    /// `2023-05-07`, `2023/05`, `7/5/2023`.
    fn numeric(&self, at: usize) -> Option<Found> {
        let word = self.word(at);
        if !word.contains(['-', '/', '.']) {
            return None;
        }
        let mut fields = [""; 3];
        let mut count = 0;
        for field in word.split(['-', '/', '.']) {
            *fields.get_mut(count)? = field;
            count += 1;
        }
        let number = |text: &str| text.parse::<i32>().ok();
        let found = |days: Option<Days>| Some(Found::new(days?, 1.0, at + 1));
        match (count, fields) {
            (3, [year, month, day]) if year.len() == 4 => {
                let day = calendar::day(english::year(year)?, number(month)?, number(day)?);
                found(day.map(Days::one))
            }
            (3, [one, other, year]) if year.len() == 4 => {
                let (year, one, other) = (english::year(year)?, number(one)?, number(other)?);
                // Most of the world writes the day first; a few write the month first.
                let day = calendar::day(year, other, one).or(calendar::day(year, one, other));
                found(day.map(Days::one))
            }
            (2, [year, month, _]) if year.len() == 4 && !word.contains('.') => {
                let month = number(month).filter(|month| (1..=12).contains(month))?;
                found(calendar::month(english::year(year)?, month))
            }
            (2, [month, year, _]) if year.len() == 4 && word.contains('/') => {
                let month = number(month).filter(|month| (1..=12).contains(month))?;
                found(calendar::month(english::year(year)?, month))
            }
            _ => None,
        }
    }
}

/// Whether a date may begin with this word. It is asked of every word of every text.
fn may_begin(word: &str) -> bool {
    let Some(first) = word.chars().next() else {
        return false;
    };
    first.is_ascii_digit()
        || matches!(word.len(), 1..=9)
            && matches!(
                word,
                "a" | "an" | "in" | "within" | "few" | "couple" | "several" | "today" | "tonight"
                    | "yesterday" | "tomorrow" | "last" | "past" | "previous" | "this" | "current"
                    | "next" | "coming" | "upcoming" | "day" | "days" | "week" | "weekend"
                    | "between" | "from" | "early" | "mid" | "middle" | "late" | "beginning"
                    | "start" | "end" | "first" | "second" | "third" | "fourth" | "fifth" | "one"
                    | "two" | "three" | "four" | "five" | "six" | "seven" | "eight" | "nine"
                    | "ten" | "eleven" | "twelve" | "spring" | "summer" | "autumn" | "fall"
                    | "winter" | "q1" | "q2" | "q3" | "q4" | "monday" | "tuesday" | "wednesday"
                    | "thursday" | "friday" | "saturday" | "sunday" | "january" | "february"
                    | "march" | "april" | "may" | "june" | "july" | "august" | "september"
                    | "october" | "november" | "december" | "jan" | "feb" | "mar" | "apr" | "jun"
                    | "jul" | "aug" | "sep" | "sept" | "oct" | "nov" | "dec"
            )
        // Vietnamese: hôm, ngày, tuần, tháng, năm, thứ, chủ, mùa, cuối, đầu, giữa, sáng …
        || !word.is_ascii()
        || matches!(word, "hai" | "ba" | "trưa")
}

impl Told {
    /// From 0 to 1: how well it fits what is asked for.
    pub fn fits(&self, asked: &Asked) -> f32 {
        let days = asked.near(self.days.from);
        let shared = days.shared(self.days) as f32 / self.days.count() as f32;
        self.certainty * asked.weight_in(days) * shared.sqrt()
    }
}

impl Asked {
    /// Whether a day or a weekend is asked for.
    pub(crate) fn is_short(&self) -> bool {
        self.days.count() <= 3
    }

    /// Whether a day is asked for, if no other year is meant.
    pub(crate) fn has(&self, day: i32) -> bool {
        self.days.has(day)
    }

    /// What these days count, which are those that are asked for in some year.
    fn weight_in(&self, days: Days) -> f32 {
        let weight = match days.count() {
            ..=LONG => 1.0,
            _ => LONG_WEIGHT,
        };
        match self.any_year && days != self.days {
            true => OTHER_YEAR * weight,
            false => weight,
        }
    }

    /// The same for a record of this moment, 0 if it is of another day.
    pub fn has_moment(&self, created: Time) -> f32 {
        let day = calendar::day_of(created);
        let days = self.near(day);
        if days.has(day) {
            self.weight_in(days)
        } else {
            0.0
        }
    }

    /// The days that are asked for; if every year's are, those nearest to the day.
    fn near(&self, day: i32) -> Days {
        if !self.any_year {
            return self.days;
        }
        let (there, ..) = calendar::civil(day);
        let (_, month, first) = calendar::civil(self.days.from);
        let shifted = [there - 1, there, there + 1].into_iter().filter_map(|to| {
            let from = calendar::day(to, month, first)?;
            Some(self.days.shifted(from - self.days.from))
        });
        let nearest = shifted.min_by_key(|days| match days.has(day) {
            true => 0,
            false => (days.from - day).abs().min((days.to - day).abs()),
        });
        nearest.unwrap_or(self.days)
    }

    /// The days that are asked for in the years of these days.
    pub fn in_years(&self, first: i32, last: i32) -> Vec<Asked> {
        if !self.any_year {
            return vec![*self];
        }
        let (first, last) = (calendar::civil(first).0 - 1, calendar::civil(last).0 + 1);
        let years = first.max(*YEARS.start())..=last.min(*YEARS.end());
        let (_, month, day) = calendar::civil(self.days.from);
        let from = years.filter_map(|year| calendar::day(year, month, day));
        let asked = from.map(|from| Asked {
            days: self.days.shifted(from - self.days.from),
            any_year: false,
        });
        asked.collect()
    }

    /// From 0 to 1: how well a record of this moment fits. Within a week of a day that is asked
    /// for, people still talk about it.
    pub fn fits(&self, created: Time) -> f32 {
        let day = calendar::day_of(created);
        let days = self.near(day);
        if days.has(day) {
            return self.weight_in(days);
        }
        if !self.is_short() {
            return 0.0;
        }
        let apart = (days.from - day).max(day - days.to);
        let month = |day: i32| {
            let (year, month, _) = calendar::civil(day);
            (year, month)
        };
        match apart {
            ..=7 => 0.6,
            _ if month(days.from) == month(day) => 0.4,
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests;
