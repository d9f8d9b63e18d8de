//! Entries of a log: the sections of the second level, most of them with a date.

use std::cmp::Reverse;
use std::ops::Range;

use super::{Day, Document, Section};

/// `## 2025-12-31: Title` and what stands under it; handoffs have a time of day, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub day: Option<Day>,
    /// Minutes since midnight, if the heading says when.
    pub minute: Option<u16>,
    /// The heading without date and time.
    pub title: String,
    pub span: Range<usize>,
    pub body: Range<usize>,
}

impl Entry {
    fn of(section: &Section) -> Self {
        let (day, minute, title) = dated(&section.title);
        Self {
            day,
            minute,
            title: title.to_owned(),
            span: section.span.clone(),
            body: section.body.clone(),
        }
    }
}

/// Date, minute of the day and the rest of a heading.
fn dated(title: &str) -> (Option<Day>, Option<u16>, &str) {
    let day = title.get(..10).and_then(|day| day.parse::<Day>().ok());
    let rest = title.get(10..).unwrap_or_default();
    let goes_on = rest.chars().next().is_some_and(char::is_alphanumeric);
    if day.is_none() || goes_on {
        return (None, None, title);
    }
    let (minute, rest) =
        clock(rest.trim_start()).map_or((None, rest), |(minute, rest)| (Some(minute), rest));
    let rest = rest.trim_start().trim_start_matches([':', '-', '–', '—']);
    (day, minute, rest.trim())
}

/// `HH:MM` at the beginning, and what follows it.
fn clock(text: &str) -> Option<(u16, &str)> {
    let (time, rest) = (text.get(..5)?, text.get(5..)?);
    let (hour, minute) = time.split_once(':')?;
    let two =
        |digits: &str| digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_digit());
    if !two(hour) || !two(minute) || rest.starts_with(|next: char| next.is_ascii_digit()) {
        return None;
    }
    let (hour, minute): (u16, u16) = (hour.parse().ok()?, minute.parse().ok()?);
    (hour < 24 && minute < 60).then_some((hour * 60 + minute, rest))
}

impl Document {
    /// The sections of the second level, in the order of the text.
    pub fn entries(&self) -> Vec<Entry> {
        let sections = self.sections().iter().filter(|section| section.level == 2);
        sections.map(Entry::of).collect()
    }

    /// The most recent entries by date, newest first; then those without a date, as they stand.
    ///
    /// Some logs have the newest entry on top, others at the end, and saving adds at the end to
    /// both: of two entries of one day the later one in the file is newer, unless the file as a
    /// whole runs from new to old.
    pub fn recent(&self, most: usize) -> Vec<Entry> {
        let (mut dated, undated): (Vec<Entry>, Vec<Entry>) = self
            .entries()
            .into_iter()
            .partition(|entry| entry.day.is_some());
        let newest_first = match (dated.first(), dated.last()) {
            (Some(first), Some(last)) => first.day > last.day,
            _ => false,
        };
        if !newest_first {
            dated.reverse();
        }
        dated.sort_by_key(|entry| Reverse((entry.day, entry.minute)));
        dated.into_iter().chain(undated).take(most).collect()
    }

    /// An entry's text without empty lines around it and its closing `---`.
    pub fn entry_text(&self, entry: &Entry) -> &str {
        self.slice(&self.trimmed(entry.span.clone()))
    }
}
