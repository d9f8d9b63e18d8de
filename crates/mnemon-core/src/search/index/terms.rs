//! What a record is found by: its analysed words, as numbers.

use crate::model::{Record, Time};
use crate::ports::Traits;
use crate::search::dates::{self, Days, Told};
use crate::search::speakers::Voice;
use crate::search::text::{self, Analysis};

/// What an occurrence in a tag counts.
const TAG_WEIGHT: f32 = 1.5;
/// What an occurrence in a summary counts that says something else than the content.
const SUMMARY_WEIGHT: f32 = 0.5;
/// Occurrences are kept in quarters, in a byte.
const QUARTERS: f32 = 4.0;
/// Words that a title has at the most.
const TITLE_WORDS: u32 = 6;
/// Distinct terms of one record that are indexed at the most.
const MOST: usize = 65_535;

/// The number of a term: index and query agree on it, and nobody has to keep the words.
pub fn hash(term: &str) -> u32 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in term.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    (hash ^ (hash >> 32)) as u32
}

/// What of a record is analysed.
#[derive(Debug, Clone, Copy)]
pub struct Text<'a> {
    pub content: &'a str,
    pub tags: &'a [String],
    pub summary: Option<&'a str>,
    pub created: Time,
    pub voice: Option<Voice>,
}

impl<'a> Text<'a> {
    pub fn of(record: &'a Record) -> Self {
        Self {
            content: &record.content,
            tags: &record.tags,
            summary: record.summary.as_deref(),
            created: record.created,
            voice: record.voice(),
        }
    }
}

impl Traits {
    const TIME: u8 = 1;
    const NAME: u8 = 2;
    const ASKS: u8 = 4;
    const USER: u8 = 8;
    const ASSISTANT: u8 = 16;

    fn of(text: &Text<'_>, told: &[Told]) -> Self {
        let voice = match text.voice {
            Some(Voice::User) => Self::USER,
            Some(Voice::Assistant) => Self::ASSISTANT,
            None => 0,
        };
        let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        let content = text.content;
        let ends = content.trim_end_matches(|c: char| c.is_whitespace() || "\"')]”".contains(c));
        Self(
            voice
                | bit(!told.is_empty() || has_clock(content), Self::TIME)
                | bit(has_name(content), Self::NAME)
                | bit(ends.ends_with(['?', '？']), Self::ASKS),
        )
    }

    /// Whether it tells when something is or was.
    pub fn tells_time(self) -> bool {
        self.0 & Self::TIME != 0
    }

    /// Whether it names somebody, a place or a thing.
    pub fn has_name(self) -> bool {
        self.0 & Self::NAME != 0
    }

    /// Whether it ends with a question, which the next record may answer.
    pub fn asks(self) -> bool {
        self.0 & Self::ASKS != 0
    }

    pub fn voice(self) -> Option<Voice> {
        match self.0 & (Self::USER | Self::ASSISTANT) {
            Self::USER => Some(Voice::User),
            Self::ASSISTANT => Some(Voice::Assistant),
            _ => None,
        }
    }
}

/// Whether a word with a capital stands inside a sentence.
fn has_name(content: &str) -> bool {
    let mut begins = true;
    for word in content.split_whitespace() {
        let letters = word.trim_start_matches(|c: char| !c.is_alphanumeric());
        let mut chars = letters.chars();
        let is_name = chars.next().is_some_and(char::is_uppercase)
            && chars.next().is_some_and(char::is_lowercase);
        if is_name && !begins {
            return true;
        }
        // A mark before the word begins a quotation or an item of a list.
        begins = word.ends_with(['.', '!', '?', ':', '-', '"', '”', '…']) || letters.is_empty();
    }
    false
}

/// Whether an hour is named: `5 pm`, `7:30`.
fn has_clock(content: &str) -> bool {
    let bytes = content.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let has_colon = content
        .match_indices(':')
        .any(|(at, _)| at > 0 && digit(at - 1) && digit(at + 1) && digit(at + 2) && !digit(at + 3));
    let lower = |at: usize| bytes.get(at).map(u8::to_ascii_lowercase);
    has_colon
        || bytes.iter().enumerate().any(|(at, byte)| {
            let hour = byte.is_ascii_digit();
            let next = at + 1 + usize::from(lower(at + 1) == Some(b' '));
            hour && matches!(lower(next), Some(b'a' | b'p'))
                && lower(next + 1) == Some(b'm')
                && !lower(next + 2).is_some_and(|byte| byte.is_ascii_alphanumeric())
        })
}

/// The words of a record: how often each occurs, how many there are, and how much of it asks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Terms {
    /// Words that carry meaning: stop words do not count.
    pub(super) length: u16,
    /// The share of the words that stand in questions, of 255.
    pub(super) asking: u8,
    pub(super) traits: Traits,
    /// The days that the record tells of.
    pub(super) told: Vec<Told>,
    /// Each term's number and its occurrences in quarters, by number.
    pub(super) counts: Vec<(u32, u8)>,
}

impl Terms {
    /// Analyses a record.
    pub fn of(record: &Record) -> Self {
        Self::of_text(&Text::of(record))
    }

    /// Analyses what of a record has words.
    pub fn of_text(text: &Text<'_>) -> Self {
        let told = dates::told(text.content, text.created);
        let traits = Traits::of(text, &told);
        let Text {
            content,
            tags,
            summary,
            ..
        } = *text;
        let mut counts: Vec<(u32, f32)> = Vec::new();
        let asking = asking(content);
        let says_more = |summary: &&str| !content.starts_with(summary.trim_end_matches('.'));
        let summary = summary.filter(says_more);
        let title = text::analyse(title(content));
        if title.words() <= TITLE_WORDS {
            // A title of nothing but stop words is a name that people look for.
            counts.extend(only_stops(&title));
        }
        let content = text::analyse(content);
        let mut length = count(&content, 1.0, &mut counts);
        for tag in tags {
            count(&text::analyse(tag), TAG_WEIGHT, &mut counts);
        }
        if let Some(summary) = summary {
            count(&text::analyse(summary), SUMMARY_WEIGHT, &mut counts);
        }
        if length == 0 {
            // Nothing but stop words: then they are what it is found by.
            counts.extend(only_stops(&content));
            length = content.words();
        }
        counts.sort_unstable_by_key(|(term, _)| *term);
        let mut counts: Vec<(u32, u8)> = counts
            .chunk_by(|one, other| one.0 == other.0)
            .filter_map(|same| {
                let tf: f32 = same.iter().map(|(_, weight)| weight).sum();
                let (term, _) = same.first()?;
                Some((*term, (tf * QUARTERS).round().clamp(1.0, 255.0) as u8))
            })
            .collect();
        counts.truncate(MOST);
        Self {
            length: u16::try_from(length).unwrap_or(u16::MAX),
            asking: (asking * 255.0).round() as u8,
            traits,
            told,
            counts,
        }
    }

    /// How many words there are, stop words not counted.
    pub fn length(&self) -> f32 {
        f32::from(self.length)
    }

    /// The share of the words that stand in questions.
    pub fn asking(&self) -> f32 {
        f32::from(self.asking) / 255.0
    }

    pub fn traits(&self) -> Traits {
        self.traits
    }

    /// The days that the record tells of.
    pub fn told(&self) -> &[Told] {
        &self.told
    }

    /// The numbers of the terms, in order.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        self.counts.iter().map(|(term, _)| *term)
    }

    /// How often the term of this number occurs.
    pub fn occurs(&self, term: u32) -> f32 {
        let at = self.counts.binary_search_by_key(&term, |(term, _)| *term);
        let quarters = at.ok().and_then(|at| self.counts.get(at));
        quarters.map_or(0.0, |(_, quarters)| f32::from(*quarters) / QUARTERS)
    }

    /// As a store keeps them: length, asking, traits, the days that are told of, then five bytes a
    /// term.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(5 + 9 * self.told.len() + 5 * self.counts.len());
        bytes.extend(self.length.to_le_bytes());
        bytes.push(self.asking);
        bytes.push(self.traits.0);
        bytes.push(self.told.len() as u8);
        for Told { days, certainty } in &self.told {
            bytes.extend(days.from.to_le_bytes());
            bytes.extend(days.to.to_le_bytes());
            bytes.push((certainty * 255.0).round() as u8);
        }
        for (term, tf) in &self.counts {
            bytes.extend(term.to_le_bytes());
            bytes.push(*tf);
        }
        bytes
    }

    /// Reads what [`Terms::to_bytes`] wrote; `None` if it is something else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Self::read(bytes, |_| true)
    }

    /// The same with the occurrences of these terms only, which are in order: enough to score a
    /// query of these terms, without a copy of all others.
    pub fn of_wanted(bytes: &[u8], wanted: &[u32]) -> Option<Self> {
        Self::read(bytes, |term| wanted.binary_search(&term).is_ok())
    }

    fn read(bytes: &[u8], is_wanted: impl Fn(u32) -> bool) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<5>()?;
        let [low, high, asking, traits, told] = *head;
        let (told, rest) = rest.split_at_checked(9 * usize::from(told))?;
        let (told, _) = told.as_chunks::<9>();
        let told = told.iter().map(|[a, b, c, d, e, f, g, h, certainty]| Told {
            days: Days {
                from: i32::from_le_bytes([*a, *b, *c, *d]),
                to: i32::from_le_bytes([*e, *f, *g, *h]),
            },
            certainty: f32::from(*certainty) / 255.0,
        });
        let (terms, left) = rest.as_chunks::<5>();
        if !left.is_empty() {
            return None;
        }
        let counts = terms
            .iter()
            .map(|[a, b, c, d, tf]| (u32::from_le_bytes([*a, *b, *c, *d]), *tf));
        let told: Vec<Told> = told.collect();
        // Bytes of another form have terms in no order.
        let numbers = counts.clone().map(|(term, _)| term);
        if !numbers.is_sorted_by(|one, other| one < other)
            || told.iter().any(|told| told.days.from > told.days.to)
        {
            return None;
        }
        Some(Self {
            length: u16::from_le_bytes([low, high]),
            asking,
            traits: Traits(traits),
            told,
            counts: counts.filter(|(term, _)| is_wanted(*term)).collect(),
        })
    }
}

/// Adds the terms of a text that are no stop words; says how many words they came from.
fn count(analysis: &Analysis, weight: f32, counts: &mut Vec<(u32, f32)>) -> u32 {
    let (mut words, mut last) = (0, None);
    for term in analysis.terms().filter(|term| !term.stop) {
        counts.push((hash(term.text), weight * term.kind.index_weight()));
        if last != Some(term.position) {
            words += 1;
            last = Some(term.position);
        }
    }
    words
}

/// The terms of a text that has only stop words; none of any other.
fn only_stops(analysis: &Analysis) -> impl Iterator<Item = (u32, f32)> {
    let is_any_other = analysis.terms().any(|term| !term.stop);
    let terms = analysis.terms().filter(move |_| !is_any_other);
    terms.map(|term| (hash(term.text), term.kind.index_weight()))
}

/// The first line without the marks of a heading and without a date: `## 2025-12-30: Same`.
fn title(content: &str) -> &str {
    let line = content.trim_start().lines().next().unwrap_or_default();
    let is_mark = |c: char| !c.is_alphabetic();
    line.trim_matches(is_mark)
}

/// The share of the words that stand in sentences with a question mark.
fn asking(content: &str) -> f32 {
    let (mut all, mut asked) = (0_usize, 0_usize);
    for sentence in content.split_inclusive(['.', '!', '?', '\n', '。', '？', '！']) {
        let words = sentence.split_whitespace().count();
        all += words;
        if sentence.ends_with(['?', '？']) {
            asked += words;
        }
    }
    if all == 0 {
        return 0.0;
    }
    asked as f32 / all as f32
}
