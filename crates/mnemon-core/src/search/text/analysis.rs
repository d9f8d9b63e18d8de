//! What an analysis yields, and how much each term weighs.

use std::collections::HashMap;

/// How a term stands to the word it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The word as written, after normalisation and case folding.
    Exact,
    /// The word as written, beside its stem; marked so that it cannot be taken for one.
    Surface,
    /// The stem of the word.
    Stem,
    /// The word without its diacritics (and stemmed as such).
    Folded,
    /// A part of a compound: of an identifier, a path, a date.
    Part,
    /// One or two characters of a run that is written without spaces.
    Gram,
}

impl Kind {
    /// What one occurrence counts in a document. A form that was derived counts less than one
    /// that was written, so that `quyet` finds a page with `quyet` before one with `quyết`.
    pub fn index_weight(self) -> f32 {
        match self {
            Self::Exact | Self::Surface | Self::Stem => 1.0,
            Self::Folded | Self::Part => 0.75,
            Self::Gram => 0.5,
        }
    }

    /// What a match is worth to a query. Loose terms are worth less where a tight one stands
    /// beside them.
    pub(super) fn query_weight(self) -> f32 {
        match self {
            Self::Exact => 1.0,
            Self::Stem => 0.9,
            Self::Part => 0.5,
            Self::Folded | Self::Gram => 0.3,
            Self::Surface => 0.15,
        }
    }
}

/// What a stop word is worth to a query that has other words.
const STOP_WEIGHT: f32 = 0.1;

/// One term of a text, in reading order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Term<'a> {
    pub text: &'a str,
    pub kind: Kind,
    /// Number of the word it came from; the parts of a compound count as words.
    pub position: u32,
    pub stop: bool,
    /// What a match of it is worth to a query, before stop words are weighed down.
    pub weight: f32,
}

/// A distinct term of a document.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexTerm {
    pub text: String,
    /// The tightest kind it occurred as.
    pub kind: Kind,
    /// Sum of [`Kind::index_weight`] over its occurrences.
    pub tf: f32,
}

/// A distinct term of a query.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryTerm {
    pub text: String,
    pub kind: Kind,
    pub weight: f32,
    /// A stop word beside words that are not: it may be left out where it would cost much.
    pub stop: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) start: u32,
    pub(super) len: u8,
    pub(super) kind: Kind,
    pub(super) stop: bool,
    pub(super) position: u32,
    pub(super) weight: f32,
}

/// The terms of one text. They share one buffer: a page of words costs two allocations, not a
/// thousand.
#[derive(Clone, Debug, Default)]
pub struct Analysis {
    pub(super) buf: String,
    pub(super) entries: Vec<Entry>,
    pub(super) words: u32,
}

impl Analysis {
    /// The terms in reading order.
    pub fn terms(&self) -> impl Iterator<Item = Term<'_>> {
        self.entries.iter().map(|e| Term {
            text: self.text_of(e),
            kind: e.kind,
            position: e.position,
            stop: e.stop,
            weight: e.weight,
        })
    }

    /// Number of words: the length that BM25 normalises by.
    pub fn words(&self) -> u32 {
        self.words
    }

    /// True where nothing can be searched for.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn text_of(&self, entry: &Entry) -> &str {
        let start = entry.start as usize;
        self.buf
            .get(start..start + usize::from(entry.len))
            .unwrap_or_default()
    }

    /// Each distinct term once, in order of first occurrence.
    pub fn counts(&self) -> Vec<IndexTerm> {
        let mut seen: HashMap<&str, usize> = HashMap::with_capacity(self.entries.len());
        let mut out: Vec<IndexTerm> = Vec::with_capacity(self.entries.len());
        for term in self.terms() {
            let at = *seen.entry(term.text).or_insert(out.len());
            match out.get_mut(at) {
                Some(known) => {
                    known.tf += term.kind.index_weight();
                    known.kind = known.kind.min(term.kind);
                }
                None => out.push(IndexTerm {
                    text: term.text.to_owned(),
                    kind: term.kind,
                    tf: term.kind.index_weight(),
                }),
            }
        }
        out
    }

    /// Each distinct term once with its weight in a query, in order of first occurrence.
    pub fn wanted(&self) -> Vec<QueryTerm> {
        let only_stop = self.entries.iter().all(|e| e.stop);
        let mut seen: HashMap<&str, usize> = HashMap::with_capacity(self.entries.len());
        let mut out: Vec<QueryTerm> = Vec::new();
        for term in self.terms() {
            let stop = term.stop && !only_stop;
            let at = *seen.entry(term.text).or_insert(out.len());
            match out.get_mut(at) {
                Some(known) => known.merge(&term, stop),
                None => out.push(QueryTerm {
                    text: term.text.to_owned(),
                    kind: term.kind,
                    weight: weigh(&term, stop),
                    stop,
                }),
            }
        }
        keep_best(out)
    }
}

impl QueryTerm {
    /// A repeated term counts once, as the tightest it was.
    fn merge(&mut self, term: &Term<'_>, stop: bool) {
        self.weight = self.weight.max(weigh(term, stop));
        self.kind = self.kind.min(term.kind);
        self.stop &= stop;
    }
}

fn weigh(term: &Term<'_>, stop: bool) -> f32 {
    if stop {
        term.weight * STOP_WEIGHT
    } else {
        term.weight
    }
}

/// The [`super::MAX_QUERY_TERMS`] of greatest weight, still in reading order.
fn keep_best(mut terms: Vec<QueryTerm>) -> Vec<QueryTerm> {
    if terms.len() <= super::MAX_QUERY_TERMS {
        return terms;
    }
    let mut weights: Vec<f32> = terms.iter().map(|t| t.weight).collect();
    weights.sort_unstable_by(|a, b| b.total_cmp(a));
    let bar = weights
        .get(super::MAX_QUERY_TERMS - 1)
        .copied()
        .unwrap_or_default();
    // Terms above the bar are fewer than the maximum; what is left goes to the first at the bar.
    let above = terms.iter().filter(|t| t.weight > bar).count();
    let mut at_bar = super::MAX_QUERY_TERMS.saturating_sub(above);
    terms.retain(|t| {
        let fits = t.weight == bar && at_bar > 0;
        at_bar -= usize::from(fits);
        t.weight > bar || fits
    });
    terms
}
