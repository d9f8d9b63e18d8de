//! What the rules of a syntax say about a text: where it may be cut, and how well.

use std::collections::VecDeque;

use super::{Size, cost_of};

/// How good a place is to cut at; the best last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Strength {
    /// Between two lines of something that is too large to stay whole.
    Line,
    /// Between two items of such a list, or at an empty line in such a block.
    Item,
    /// Between two paragraphs or blocks.
    Paragraph,
    /// Before a top-level definition.
    Definition,
    /// Before a heading.
    Section,
}

/// A place to cut at: always the beginning of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seam {
    pub(super) at: usize,
    pub(super) strength: Strength,
    /// What stands between here and the next seam is one thing, and fits into a chunk.
    pub(super) whole: bool,
}

/// A heading and what stands under it, up to the next heading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) start: usize,
    /// 1 for the highest heading; 0 for what stands before the first.
    pub(super) level: u8,
    /// The headings above it and its own.
    pub(super) path: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Outline {
    pub(super) title: Option<String>,
    /// In order; the first begins at 0.
    pub(super) sections: Vec<Section>,
    /// In order, each at another place, none at 0.
    pub(super) seams: Vec<Seam>,
    /// Lines that open a definition, and what they say. For code.
    pub(super) openers: Vec<(usize, String)>,
    /// Whether a chunk repeats the end of the one before.
    pub(super) overlaps: bool,
}

impl Outline {
    pub(super) fn unsectioned() -> Self {
        let all = Section {
            start: 0,
            level: 0,
            path: Vec::new(),
        };
        Self {
            sections: vec![all],
            ..Self::default()
        }
    }

    pub(super) fn seam(&mut self, at: usize, strength: Strength) {
        if at > self.seams.last().map_or(0, |last| last.at) {
            self.seams.push(Seam {
                at,
                strength,
                whole: false,
            });
        }
    }

    /// Settles what stays whole: between two seams of at least this strength, the seams inside go
    /// if all of it fits into a chunk; otherwise it is not whole.
    pub(super) fn keep_whole(&mut self, text: &str, size: Size, strength: Strength) {
        let outer = |seam: &&Seam| seam.strength >= strength;
        let ends = self.seams.iter().filter(outer).map(|seam| seam.at);
        let mut ends: VecDeque<usize> = ends.chain([text.len()]).collect();
        let mut extent_fits = |start: usize| {
            let end = ends.pop_front().unwrap_or(text.len());
            fits(text.get(start..end).unwrap_or_default(), size)
        };
        let mut whole = extent_fits(0);
        let mut kept = Vec::with_capacity(self.seams.len());
        for mut seam in self.seams.drain(..) {
            if seam.strength >= strength {
                whole = extent_fits(seam.at);
                seam.whole &= whole;
                kept.push(seam);
            } else if !whole {
                kept.push(seam);
            }
        }
        self.seams = kept;
    }
}

/// Whether the text fits into a chunk's own part.
pub(super) fn fits(text: &str, size: Size) -> bool {
    // A character costs one at least and has four bytes at the most.
    if text.len() > size.limit() * 4 {
        return false;
    }
    let mut cost = 0;
    text.chars().all(|c| {
        cost += cost_of(c);
        cost <= size.limit()
    })
}

/// The lines of a text with their places, ends included.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split_inclusive('\n').map(move |line| {
        let start = at;
        at += line.len();
        (start, line)
    })
}

/// The beginning of the line that `at` stands in.
pub(super) fn line_start(text: &str, at: usize) -> usize {
    let before = text.get(..at).unwrap_or_default();
    before.rfind('\n').map_or(0, |end| end + 1)
}

/// The text without white space at its end and without empty lines at its beginning.
pub(super) fn without_blank_ends(text: &str) -> &str {
    let text = text.trim_end();
    let blank = text.len() - text.trim_start().len();
    text.get(line_start(text, blank)..).unwrap_or_default()
}

/// The first words of a line, for a heading.
pub(super) fn short(line: &str) -> String {
    const CHARS: usize = 160;
    let words: Vec<&str> = line.split_whitespace().collect();
    words.join(" ").chars().take(CHARS).collect()
}
