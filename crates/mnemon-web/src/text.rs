//! Stored text as it is shown: escaped by the templates, and free of characters that act on the page
//! instead of being read.

use maud::{Markup, html};
use serde_json::Value;

/// Characters of a text in a list.
pub(crate) const LINE: usize = 160;
/// Characters of a text on its own page; the longest line of a page is then still quick to lay out.
pub(crate) const WHOLE: usize = 20_000;

/// The text with a sign in place of every control character, and the code of every character that
/// changes the direction of text or is not visible.
pub(crate) fn clean(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for one in text.chars() {
        match one {
            '\n' | '\t' => clean.push(one),
            '\r' => {}
            // The block "Control Pictures" has a sign for each.
            '\0'..='\u{1f}' => {
                clean.push(char::from_u32(0x2400 + u32::from(one)).unwrap_or('\u{fffd}'));
            }
            '\u{7f}' => clean.push('\u{2421}'),
            '\u{80}'..='\u{9f}' => clean.push('\u{fffd}'),
            '\u{2028}' | '\u{2029}' => clean.push('\n'),
            _ if is_hidden(one) => clean.push_str(&format!("⟨U+{:04X}⟩", u32::from(one))),
            _ => clean.push(one),
        }
    }
    clean
}

/// Embeddings, overrides and isolates of the direction, invisible characters, and tags.
fn is_hidden(one: char) -> bool {
    matches!(one,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2060}'..='\u{2064}'
        | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0100}'..='\u{e01ef}'
        | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}'
        | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The first so many characters, and whether there are more.
pub(crate) fn cut(text: &str, most: usize) -> (&str, bool) {
    match text.char_indices().nth(most) {
        Some((end, _)) => (text.get(..end).unwrap_or(text), true),
        None => (text, false),
    }
}

/// A text in one line of a list.
pub(crate) fn line(text: &str) -> Markup {
    // Cut first: a line of a megabyte is not cleaned to its end.
    let (start, has_more) = cut(text.trim_start(), LINE);
    let start = clean(start).replace(['\n', '\t'], " ");
    html! { bdi { (start) @if has_more { "…" } } }
}

/// A text with its lines, up to [`WHOLE`] characters.
pub(crate) fn block(text: &str) -> Markup {
    let (start, has_more) = cut(text, WHOLE);
    html! {
        pre.text dir="auto" { (clean(start)) }
        @if has_more {
            p.quiet { "The first " (grouped(WHOLE as u64)) " of " (grouped(text.chars().count() as u64))
                " characters." }
        }
    }
}

/// A short name: a user, a tag, an id.
pub(crate) fn name(text: &str) -> Markup {
    let (start, has_more) = cut(text, 80);
    let start = clean(start).replace(['\n', '\t'], " ");
    html! { bdi { (start) @if has_more { "…" } } }
}

/// An id, shortened from its middle where it is long. Ids of ours begin with the time, and so with
/// the same characters; their ends differ.
pub(crate) fn id(text: &str) -> Markup {
    let shown = match text.is_ascii() && text.len() > 20 {
        true => {
            let start = text.get(..8).unwrap_or_default();
            let end = text.get(text.len().saturating_sub(6)..).unwrap_or_default();
            format!("{start}…{end}")
        }
        false => text.to_owned(),
    };
    html! { code title=(clean(text)) { (clean(&shown)) } }
}

/// The passage around the first word that matched, with all such words marked.
pub(crate) fn snippet(text: &str, matched: &[&str], most: usize) -> Markup {
    let (head, _) = cut(text, WHOLE);
    let matched: Vec<String> = matched.iter().map(|word| word.to_lowercase()).collect();
    let is_match = |word: &str| is_match(word, &matched);
    let first = words(head).find(|(_, word)| is_match(word));
    let at = first.map_or(0, |(at, _)| at);
    // Some words before it stay, so that it can be understood.
    let before = head.get(..at).unwrap_or_default();
    let start = before.char_indices().rev().nth(most / 4);
    let start = start.map_or(0, |(at, _)| at);
    let passage = head.get(start..).unwrap_or_default();
    let (passage, has_more) = cut(passage, most);
    html! {
        bdi {
            @if start > 0 { "…" }
            @for (part, is_marked) in marked(passage, &is_match) {
                @let part = clean(part).replace(['\n', '\t'], " ");
                @if is_marked { mark { (part) } } @else { (part) }
            }
            @if has_more || head.len() < text.len() { "…" }
        }
    }
}

/// Words with the place where each begins.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut places = text.char_indices().peekable();
    std::iter::from_fn(move || {
        let (start, _) = places.find(|(_, one)| one.is_alphanumeric())?;
        while places.next_if(|(_, one)| one.is_alphanumeric()).is_some() {}
        let end = places.peek().map_or(text.len(), |(end, _)| *end);
        Some((start, text.get(start..end)?))
    })
}

/// Whether a word of the text is one of the query, or another form of it.
fn is_match(word: &str, matched: &[String]) -> bool {
    let word = word.to_lowercase();
    matched.iter().any(|of_query| {
        let stem = of_query.len().saturating_sub(2).max(3);
        let stem = of_query.get(..stem).unwrap_or(of_query);
        let is_latin = of_query.is_ascii();
        word == *of_query
            || is_latin && of_query.len() > 3 && word.starts_with(stem)
                && word.len() <= of_query.len() + 3
            // Scripts without spaces have no words to compare.
            || !is_latin && word.contains(of_query.as_str())
    })
}

/// The text in parts, each with whether it is marked.
fn marked<'a>(text: &'a str, is_match: &dyn Fn(&str) -> bool) -> Vec<(&'a str, bool)> {
    let (mut parts, mut end) = (Vec::new(), 0);
    for (at, word) in words(text).filter(|(_, word)| is_match(word)) {
        parts.push((text.get(end..at).unwrap_or_default(), false));
        parts.push((word, true));
        end = at + word.len();
    }
    parts.push((text.get(end..).unwrap_or_default(), false));
    parts
}

/// A number with a thin space between thousands.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    grouped
}

/// A time of the API in UTC, to the minute.
pub(crate) fn time(rfc3339: &str) -> Markup {
    let shown = rfc3339.get(..16).unwrap_or(rfc3339).replace('T', " ");
    html! { time datetime=(rfc3339) { (clean(&shown)) } }
}

/// A time of the API in milliseconds since 1970, to compare and to draw it.
pub(crate) fn millis(rfc3339: &str) -> Option<i64> {
    let number = |from: usize, to: usize| rfc3339.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    // Days by the calendar of years that begin in March, so that the leap day is the last one.
    let (year, month) = match month > 2 {
        true => (year, month - 3),
        false => (year - 1, month + 9),
    };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    let seconds = (days - 719_468) * 86_400 + hour * 3600 + minute * 60 + second;
    Some(seconds * 1000 + number(20, 23).unwrap_or(0))
}

/// Labels of the two ends of a time axis: days, or times of the day where both are of one day.
pub(crate) fn axis_ends(first: &str, last: &str) -> (String, String) {
    let part = |at: &str, from: usize, to: usize| at.get(from..to).unwrap_or_default().to_owned();
    let (day, other_day) = (part(first, 0, 10), part(last, 0, 10));
    if day != other_day {
        return (day, other_day);
    }
    let end = match part(first, 0, 16) == part(last, 0, 16) {
        true => 19,
        false => 16,
    };
    let (start, end) = (part(first, 11, end), part(last, 11, end));
    match start == end {
        true => (format!("{day} {start}"), String::new()),
        false => (format!("{day} {start}"), end),
    }
}

/// Fields of an answer.
pub(crate) trait Fields {
    fn text(&self, name: &str) -> &str;
    fn whole(&self, name: &str) -> u64;
    fn number(&self, name: &str) -> f64;
    fn items(&self, name: &str) -> &[Value];
    fn texts(&self, name: &str) -> Vec<&str>;
    fn flag(&self, name: &str) -> bool;
}

impl Fields for Value {
    fn text(&self, name: &str) -> &str {
        self.get(name).and_then(Self::as_str).unwrap_or_default()
    }

    fn whole(&self, name: &str) -> u64 {
        self.get(name).and_then(Self::as_u64).unwrap_or_default()
    }

    fn number(&self, name: &str) -> f64 {
        self.get(name).and_then(Self::as_f64).unwrap_or_default()
    }

    fn items(&self, name: &str) -> &[Value] {
        let items = self.get(name).and_then(Self::as_array);
        items.map(Vec::as_slice).unwrap_or_default()
    }

    fn texts(&self, name: &str) -> Vec<&str> {
        self.items(name).iter().filter_map(Self::as_str).collect()
    }

    fn flag(&self, name: &str) -> bool {
        self.get(name).and_then(Self::as_bool).unwrap_or_default()
    }
}
