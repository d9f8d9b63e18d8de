//! Where terms are collected: turns a spelled word into its loose and tight terms.

use super::analysis::{Analysis, Entry, Kind};
use super::dates::Prose;
use super::stem::stem;
use super::{MAX_TERM_BYTES, MAX_TERMS, fold, stop};

/// Marks the written form that stands beside a stem. A letter (of Khoisan languages, for
/// clicks), so that no backend's tokenizer splits it off; it has no case and no decomposition.
pub(super) const SURFACE_MARK: char = 'ǀ';

/// Whether a word stands for itself or is a part of a compound that does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Whole,
    Part,
}

pub(super) struct Sink {
    out: Analysis,
    position: u32,
    /// First entry of the compound or run under way, within which terms are kept distinct.
    mark: usize,
    pub(super) prose: Prose,
}

impl Sink {
    pub(super) fn with_capacity(text_bytes: usize) -> Self {
        let out = Analysis {
            buf: String::with_capacity(text_bytes + text_bytes / 2),
            entries: Vec::with_capacity(text_bytes / 4),
            words: 0,
        };
        Self {
            out,
            position: 0,
            mark: 0,
            prose: Prose::default(),
        }
    }

    pub(super) fn finish(mut self) -> Analysis {
        self.out.words = self.position;
        self.out
    }

    pub(super) fn is_full(&self) -> bool {
        self.out.entries.len() >= MAX_TERMS
    }

    pub(super) fn position(&self) -> u32 {
        self.position
    }

    /// Ends a word.
    pub(super) fn advance(&mut self) {
        self.position += 1;
    }

    /// Begins a compound or a run: from here on [`Self::push_new`] keeps terms distinct.
    pub(super) fn begin(&mut self) {
        self.mark = self.out.entries.len();
    }

    /// A case-folded word. Does not [`advance`](Self::advance).
    pub(super) fn word(&mut self, word: &str, role: Role) {
        let stop = stop::is_stop(word);
        if role == Role::Part {
            return self.part(word, stop);
        }
        if stop && word.is_ascii() {
            return self.push(word, Kind::Exact, true);
        }
        match fold::diacritics(word) {
            Some(bare) => {
                self.push(word, Kind::Exact, stop);
                self.push_loose(&bare, Kind::Folded, stop);
            }
            None => self.spell(word, stop),
        }
    }

    /// A word without diacritics: its stem, and its spelling where that differs.
    fn spell(&mut self, word: &str, stop: bool) {
        let stem = stem(word);
        if stem == word {
            return self.push(word, Kind::Exact, stop);
        }
        self.push(&stem, Kind::Stem, stop);
        self.push_marked(word, stop);
    }

    fn part(&mut self, word: &str, stop: bool) {
        match fold::diacritics(word) {
            Some(bare) => {
                self.push_new(word, Kind::Part, stop);
                self.push_loose(&bare, Kind::Folded, stop);
            }
            None => self.push_loose(word, Kind::Part, stop),
        }
    }

    fn push_loose(&mut self, word: &str, kind: Kind, stop: bool) {
        self.push_new(&stem(word), kind, stop);
    }

    /// Like [`Self::push`], unless the compound or run under way has the term already.
    pub(super) fn push_new(&mut self, term: &str, kind: Kind, stop: bool) {
        let term = clip(term, MAX_TERM_BYTES);
        let known = self.out.entries.get(self.mark..).unwrap_or_default();
        if !known.iter().any(|e| self.out.text_of(e) == term) {
            self.push(term, kind, stop);
        }
    }

    pub(super) fn push(&mut self, term: &str, kind: Kind, stop: bool) {
        self.push_weighed(term, kind, stop, kind.query_weight());
    }

    pub(super) fn push_weighed(&mut self, term: &str, kind: Kind, stop: bool, weight: f32) {
        let start = self.out.buf.len();
        self.out.buf.push_str(clip(term, MAX_TERM_BYTES));
        self.entry(start, kind, stop, weight);
    }

    fn push_marked(&mut self, word: &str, stop: bool) {
        let start = self.out.buf.len();
        self.out.buf.push(SURFACE_MARK);
        self.out
            .buf
            .push_str(clip(word, MAX_TERM_BYTES - SURFACE_MARK.len_utf8()));
        self.entry(start, Kind::Surface, stop, Kind::Surface.query_weight());
    }

    /// Records what was appended to the buffer since `start`, unless the text has its maximum.
    fn entry(&mut self, start: usize, kind: Kind, stop: bool, weight: f32) {
        let len = self.out.buf.len() - start;
        let (Ok(start32), Ok(len)) = (u32::try_from(start), u8::try_from(len)) else {
            return self.out.buf.truncate(start);
        };
        if len == 0 || self.is_full() {
            return self.out.buf.truncate(start);
        }
        let position = self.position;
        self.out.entries.push(Entry {
            start: start32,
            len,
            kind,
            stop,
            position,
            weight,
        });
    }
}

pub(super) fn clip(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    text.get(..text.floor_char_boundary(max)).unwrap_or(text)
}
