//! Dates, so that "May 2023" finds 2023-05-07 and the other way round.
//!
//! Every way to write a date yields the same terms: `2023ˑ05ˑ07`, `2023ˑ05`, and the name of
//! the month in English.

use super::analysis::Kind;
use super::compound::{DIGIT_JOINT, Run};
use super::sink::{Role, Sink};

/// The months in English, as terms know them.
pub(crate) const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// Words a day may stand from its month, and a year from either ("ngày 7 tháng 5 năm 2023").
const DAY_REACH: u32 = 2;
const YEAR_REACH: u32 = 2;

/// What was read of a date in prose, each with the position of its word.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prose {
    day: Option<(u32, u32)>,
    month: Option<(u32, u32)>,
    /// The word before a number that makes it a month ("tháng 5").
    label: Option<u32>,
}

/// Takes note of a case-folded word that may be part of a date.
pub(super) fn word(word: &str, sink: &mut Sink) {
    let at = sink.position();
    if matches!(word, "tháng" | "thang") {
        sink.prose.label = Some(at);
    }
    let Some((month, name)) = month_named(word) else {
        return;
    };
    sink.prose.month = Some((month, at));
    if name.len() != word.len() {
        sink.begin();
        sink.word(name, Role::Part);
    }
}

fn month_named(word: &str) -> Option<(u32, &'static str)> {
    // Shorter words are no month, and this is asked of every word of every text.
    if word.len() < 3
        || !matches!(
            word.as_bytes().first(),
            Some(b'j' | b'f' | b'm' | b'a' | b's' | b'o' | b'n' | b'd')
        )
    {
        return None;
    }
    let abbreviated = |name: &str| (word.len() == 3 || word == "sept") && name.starts_with(word);
    let (month, name) = (1..)
        .zip(MONTHS)
        .find(|(_, name)| *name == word || abbreviated(name))?;
    Some((month, name))
}

/// Takes note of a number in prose: a day, a month after its label, a year that ends a date.
pub(super) fn number(word: &str, sink: &mut Sink) {
    if word.len() > 4 || !word.bytes().all(|b| b.is_ascii_digit()) {
        return;
    }
    let Ok(n) = word.parse::<u32>() else { return };
    let at = sink.position();
    match n {
        1..=12 if sink.prose.label.is_some_and(|label| label + 1 == at) => {
            sink.prose.month = Some((n, at));
            month_name(n, sink);
        }
        1..=31 if word.len() <= 2 => sink.prose.day = Some((n, at)),
        1000..=2999 => year(n, sink),
        _ => {}
    }
}

/// `7th`: the day, also as a bare number.
pub(super) fn ordinal(word: &str, sink: &mut Sink) {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let ending = word.get(digits.len()..).unwrap_or_default();
    if !digits.is_empty() && matches!(ending, "st" | "nd" | "rd" | "th") {
        sink.push_new(digits, Kind::Part, false);
        number(digits, sink);
    }
}

fn year(year: u32, sink: &mut Sink) {
    let at = sink.position();
    let Prose { day, month, .. } = sink.prose;
    let Some((month, month_at)) = month.filter(|(_, m)| at - m <= YEAR_REACH) else {
        return;
    };
    month_of(year, month, Kind::Part, sink);
    if let Some((day, _)) = day.filter(|(_, d)| d.abs_diff(month_at) <= DAY_REACH) {
        day_of(year, month, day, Kind::Part, sink);
    }
}

/// `2023-05-07`, `2023/5/7`, `2023-05`, `2023-05-07T10:30`. False where it is none of these.
pub(super) fn iso(text: &str, runs: &[Run], sink: &mut Sink) -> bool {
    let mut fields = runs.iter().map(|run| run.of(text));
    let (Some(year), Some(month)) = (fields.next(), fields.next()) else {
        return false;
    };
    let (Some(year), Some(month)) = (field(year, 4, 2999), field(month, 2, 12)) else {
        return false;
    };
    if year < 1000
        || runs
            .iter()
            .skip(1)
            .take(2)
            .any(|r| !matches!(r.joint, Some('-' | '/' | '.')))
    {
        return false;
    }
    let Some(last) = fields.next() else {
        sink.begin();
        month_of(year, month, Kind::Exact, sink);
        terms_of(year, month, None, sink);
        return true;
    };
    let (day, time) = last
        .split_once(['T', 't'])
        .map_or((last, None), |(d, t)| (d, Some(t)));
    let Some(day) = field(day, 2, 31) else {
        return false;
    };
    sink.begin();
    day_of(year, month, day, Kind::Exact, sink);
    month_of(year, month, Kind::Part, sink);
    terms_of(year, month, Some(day), sink);
    if let (Some(hour), Some(minute)) = (time, fields.next()) {
        sink.push_new(&format!("{hour}{DIGIT_JOINT}{minute}"), Kind::Part, false);
    }
    true
}

/// A number of at most `digits` digits, from 1 to `max`; a year has all of its digits.
fn field(s: &str, digits: usize, max: u32) -> Option<u32> {
    let fits = s.len() <= digits && (digits < 4 || s.len() == digits);
    let n = s
        .parse()
        .ok()
        .filter(|_| fits && s.bytes().all(|b| b.is_ascii_digit()))?;
    (1..=max).contains(&n).then_some(n)
}

fn terms_of(year: u32, month: u32, day: Option<u32>, sink: &mut Sink) {
    sink.push_new(&year.to_string(), Kind::Part, false);
    month_name(month, sink);
    if let Some(day) = day {
        sink.push_new(&day.to_string(), Kind::Part, false);
    }
    sink.advance();
}

/// `2023年5月7日`, `5月7日`: adds what a date has beyond its numbers.
pub(super) fn unspaced(text: &str, sink: &mut Sink) {
    let Some(month) = number_before(text, '月').filter(|m| (1..=12).contains(m)) else {
        return;
    };
    sink.begin();
    month_name(month, sink);
    let Some(year) = number_before(text, '年').filter(|y| (1000..=2999).contains(y)) else {
        return;
    };
    month_of(year, month, Kind::Part, sink);
    if let Some(day) = number_before(text, '日').filter(|d| (1..=31).contains(d)) {
        day_of(year, month, day, Kind::Part, sink);
    }
}

fn number_before(text: &str, unit: char) -> Option<u32> {
    let head = text.get(..text.find(unit)?)?;
    let digits = head.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    head.get(digits..)?.parse().ok()
}

fn month_name(month: u32, sink: &mut Sink) {
    let name = usize::try_from(month)
        .ok()
        .and_then(|m| MONTHS.get(m.wrapping_sub(1)));
    if let Some(name) = name {
        sink.word(name, Role::Part);
    }
}

fn month_of(year: u32, month: u32, kind: Kind, sink: &mut Sink) {
    sink.push_new(&format!("{year}{DIGIT_JOINT}{month:02}"), kind, false);
}

fn day_of(year: u32, month: u32, day: u32, kind: Kind, sink: &mut Sink) {
    sink.push_new(
        &format!("{year}{DIGIT_JOINT}{month:02}{DIGIT_JOINT}{day:02}"),
        kind,
        false,
    );
}
