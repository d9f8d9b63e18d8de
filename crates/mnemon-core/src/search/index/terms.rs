//! What a record is found by: its analysed words, as numbers.

use crate::model::Record;
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

/// The words of a record: how often each occurs, how many there are, and how much of it asks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Terms {
    /// Words that carry meaning: stop words do not count.
    pub(super) length: u16,
    /// The share of the words that stand in questions, of 255.
    pub(super) asking: u8,
    /// Each term's number and its occurrences in quarters, by number.
    pub(super) counts: Vec<(u32, u8)>,
}

impl Terms {
    /// Analyses a record.
    pub fn of(record: &Record) -> Self {
        Self::of_words(&record.content, &record.tags, record.summary.as_deref())
    }

    /// Analyses what of a record has words.
    pub fn of_words(content: &str, tags: &[String], summary: Option<&str>) -> Self {
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

    /// How often the term of this number occurs.
    pub fn occurs(&self, term: u32) -> f32 {
        let at = self.counts.binary_search_by_key(&term, |(term, _)| *term);
        let quarters = at.ok().and_then(|at| self.counts.get(at));
        quarters.map_or(0.0, |(_, quarters)| f32::from(*quarters) / QUARTERS)
    }

    /// As a store keeps them: length, asking, then five bytes a term.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(3 + 5 * self.counts.len());
        bytes.extend(self.length.to_le_bytes());
        bytes.push(self.asking);
        for (term, tf) in &self.counts {
            bytes.extend(term.to_le_bytes());
            bytes.push(*tf);
        }
        bytes
    }

    /// Reads what [`Terms::to_bytes`] wrote; `None` if it is something else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<3>()?;
        let [low, high, asking] = *head;
        let (terms, left) = rest.as_chunks::<5>();
        if !left.is_empty() {
            return None;
        }
        let counts = terms
            .iter()
            .map(|[a, b, c, d, tf]| (u32::from_le_bytes([*a, *b, *c, *d]), *tf));
        Some(Self {
            length: u16::from_le_bytes([low, high]),
            asking,
            counts: counts.collect(),
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
