//! Scores of a record together with its neighbours: the two before and the two after it in its
//! session lend it a share of their words and of their nearness.
//!
//! The arithmetic stands here once. The built-in index uses it while it walks its postings;
//! [`score_in_context`] does the same for the matches of any other index.

use std::collections::HashMap;

use crate::model::{Id, Record};
use crate::ports::{Answer, Features, QueryTerm, SessionWindow, Statistics, TermRole};
use crate::search::Candidate;
use crate::search::index::{Terms, hash};

/// The share of its words that a neighbour lends, by its place: two before, one before, one after,
/// two after. From a sweep by cross-validation; see `docs/ranking.md`.
const LENT_WORDS: [f32; 4] = [0.3, 0.5, 0.2, 0.1];
/// The share of its nearness in meaning that a neighbour lends.
pub(crate) const LENT_MEANING: [f32; 4] = [0.2, 0.3, 0.2, 0.1];
/// A neighbour of more words than this lends proportionally less: a long text speaks for itself.
const LENDING_WORDS: f32 = 40.0;

/// How many records before, and how many after it, lend to a record.
const NEIGHBOURS: usize = 2;
/// So far a window reaches to either side of a match: its neighbours may be better candidates than
/// it is, and need their own neighbours.
pub const CONTEXT_REACH: usize = 2 * NEIGHBOURS;

/// Saturation of a word that is repeated.
const K1: f32 = 0.9;
/// How much a long text is held back.
const B: f32 = 0.75;

/// A question lends so many times its share of words to the record after it, which answers it.
const AFTER_QUESTION: f32 = 2.0;

/// A word that means nearly the same counts so much of its cosine to the word that is asked for.
pub const SIMILAR_WEIGHT: f32 = 0.5;

/// How much of itself a record of this length lends.
pub(crate) fn lends(length: f32) -> f32 {
    (LENDING_WORDS / length.max(1.0)).min(1.0)
}

/// The share of its words that a neighbour lends, two before, one before, one after or two after,
/// if the one before ends with a question or not.
pub(crate) fn lent_words(after_question: bool) -> [f32; 4] {
    let [two_before, one_before, one_after, two_after] = LENT_WORDS;
    let times = if after_question { AFTER_QUESTION } else { 1.0 };
    [two_before, times * one_before, one_after, two_after]
}

/// How many words a neighbour of this length lends that lends this share.
pub(crate) fn lent_length(share: f32, length: f32) -> f32 {
    share * lends(length) * length
}

/// How near a record is together with its neighbours: their mean, weighed by what they lend. A
/// neighbour is given by what it lends and how near it is itself.
pub(crate) fn mean_nearness(own: f32, neighbours: impl Iterator<Item = (f32, f32)>) -> f32 {
    let (mut sum, mut weights) = (own, 1.0);
    for (lent, nearness) in neighbours {
        sum += lent * nearness;
        weights += lent;
    }
    sum / weights
}

/// BM25 over documents of this mean length, their neighbours' lent words included.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bm25 {
    per_length: f32,
}

impl Bm25 {
    pub(crate) fn new(mean_length: f32) -> Self {
        Self {
            per_length: K1 * B / mean_length.max(1e-6),
        }
    }

    /// What a term is worth that so many of the documents have.
    pub(crate) fn worth(weight: f32, documents: usize, having: usize) -> f32 {
        let (documents, having) = (documents as f32, having as f32);
        let idf = (1.0 + (documents - having + 0.5) / (having + 0.5)).ln();
        weight * idf * (K1 + 1.0)
    }

    /// The score of a term of this worth that occurs so often in a document of this length.
    pub(crate) fn score(self, worth: f32, occurs: f32, length: f32) -> f32 {
        let held = K1 * (1.0 - B) + self.per_length * length;
        worth * occurs / (occurs + held)
    }
}

/// What a term is worth.
struct Worth {
    /// Its number.
    term: u32,
    /// For the score of the words arm.
    score: f32,
    /// For the coverage.
    information: f32,
}

/// An analysed record of a window.
struct Passage<'a> {
    record: &'a Record,
    terms: Terms,
    cosine: f32,
}

/// A passage and its neighbours: two before, one before, one after, two after.
struct InContext<'p, 'a> {
    own: &'p Passage<'a>,
    around: [Option<&'p Passage<'a>>; 4],
}

impl InContext<'_, '_> {
    fn neighbours(&self, shares: [f32; 4]) -> impl Iterator<Item = (f32, &Passage<'_>)> {
        let around = self.around.iter().zip(shares);
        around.filter_map(|(neighbour, share)| Some((share, (*neighbour)?)))
    }

    /// What each neighbour lends of its words.
    fn lent_words(&self) -> [f32; 4] {
        let [_, one_before, ..] = self.around;
        lent_words(one_before.is_some_and(|before| before.terms.traits().asks()))
    }

    fn length(&self) -> f32 {
        let lent = self.neighbours(self.lent_words());
        let lent = lent.map(|(share, neighbour)| lent_length(share, neighbour.terms.length()));
        self.own.terms.length() + lent.sum::<f32>()
    }

    fn occurs(&self, term: u32) -> f32 {
        let lent = self.neighbours(self.lent_words());
        let lent = lent.map(|(share, neighbour)| {
            share * lends(neighbour.terms.length()) * neighbour.terms.occurs(term)
        });
        self.own.terms.occurs(term) + lent.sum::<f32>()
    }

    /// The score of the words arm, and the share of the query's information.
    fn words(&self, bm25: Bm25, worths: &[Worth]) -> (f32, f32) {
        let length = self.length();
        let information: f32 = worths.iter().map(|worth| worth.information).sum();
        let (mut score, mut covered) = (0.0, 0.0);
        for worth in worths {
            let occurs = self.occurs(worth.term);
            score += bm25.score(worth.score, occurs, length);
            covered += worth.information * occurs.min(1.0);
        }
        (score, covered / information.max(f32::MIN_POSITIVE))
    }

    fn meaning(&self) -> f32 {
        let lent = self.neighbours(LENT_MEANING);
        let lent = lent.map(|(share, neighbour)| {
            let share = share * lends(neighbour.terms.length());
            (share, neighbour.cosine)
        });
        mean_nearness(self.own.cosine, lent)
    }
}

/// The matches of an index that knows no neighbours, and the neighbours themselves, scored as the
/// built-in index scores them. `windows` are those of the best matches, of [`CONTEXT_REACH`].
/// `depth` is what the index was asked for: if it found fewer, a record that it did not find is
/// not near at all; otherwise it may be as near as the last match.
pub fn score_in_context(
    answer: &Answer,
    terms: &[QueryTerm],
    windows: &[SessionWindow],
    depth: usize,
) -> Vec<Candidate> {
    let near = answer.matches.iter();
    let near = near.filter_map(|found| Some((&found.id, found.meaning?.max(0.0))));
    let near: HashMap<&Id, f32> = near.collect();
    let farthest = match near.len() < depth {
        true => 0.0,
        false => near.values().copied().fold(1.0, f32::min),
    };
    let mut passages: HashMap<&Id, Passage<'_>> = HashMap::new();
    for record in windows.iter().flat_map(|window| &window.records) {
        passages.entry(&record.id).or_insert_with(|| Passage {
            record,
            terms: Terms::of(record),
            cosine: near.get(&record.id).copied().unwrap_or(farthest),
        });
    }
    let in_context = candidates_of(windows, &passages);
    let (bm25, worths) = scale(&in_context, &passages, terms, answer.statistics.as_ref());
    let scored = in_context.iter().map(|candidate| {
        let Passage { record, terms, .. } = candidate.own;
        let cosine = near.get(&record.id).copied().unwrap_or(0.0);
        let (words, coverage) = candidate.words(bm25, &worths);
        Candidate {
            id: record.id.clone(),
            words,
            meaning: candidate.meaning(),
            features: Features::of(record, terms, cosine, coverage),
        }
    });
    let mut scored: Vec<Candidate> = scored
        .filter(|candidate| candidate.words > 0.0 || candidate.features.cosine > 0.0)
        .collect();
    scored.sort_by_key(|candidate| candidate.features.seq);
    scored
}

/// Every record of the windows whose neighbours are all known, once.
fn candidates_of<'p, 'a>(
    windows: &[SessionWindow],
    passages: &'p HashMap<&Id, Passage<'a>>,
) -> Vec<InContext<'p, 'a>> {
    let mut known: HashMap<&Id, InContext<'p, 'a>> = HashMap::new();
    for SessionWindow { records, at } in windows {
        let passage = |at: Option<usize>| passages.get(&records.get(at?)?.id);
        for place in at.saturating_sub(NEIGHBOURS)..=at + NEIGHBOURS {
            let Some(own) = passage(Some(place)) else {
                continue;
            };
            let around = [
                passage(place.checked_sub(2)),
                passage(place.checked_sub(1)),
                passage(Some(place + 1)),
                passage(Some(place + 2)),
            ];
            known
                .entry(&own.record.id)
                .or_insert(InContext { own, around });
        }
    }
    known.into_values().collect()
}

/// BM25 over all documents, and what each term is worth: by the statistics of the index, or as far
/// as can be told from the passages. How much neighbours add to the mean length is always told by
/// these, as an index without neighbour context cannot know it.
fn scale(
    candidates: &[InContext<'_, '_>],
    passages: &HashMap<&Id, Passage<'_>>,
    terms: &[QueryTerm],
    statistics: Option<&Statistics>,
) -> (Bm25, Vec<Worth>) {
    let count = candidates.len().max(1) as f32;
    let own: f32 = candidates.iter().map(|one| one.own.terms.length()).sum();
    let with_lent: f32 = candidates.iter().map(InContext::length).sum();
    let mean = statistics.map_or(own / count, |known| known.mean_length);
    let mean_with_lent = mean + (with_lent - own) / count;
    let documents = statistics.map_or(passages.len(), |known| known.documents);
    let worths = terms.iter().enumerate().map(|(at, term)| {
        let number = hash(&term.text);
        let counted = || {
            let having = passages.values();
            having.filter(|one| one.terms.occurs(number) > 0.0).count()
        };
        let known = statistics.and_then(|known| known.documents_with.get(at).copied());
        let having = known.unwrap_or_else(counted).max(1);
        Worth {
            term: number,
            score: Bm25::worth(term.weight, documents, having),
            information: Bm25::worth(term.information(), documents, having),
        }
    });
    (Bm25::new(mean_with_lent), worths.collect())
}

/// What the name of a speaker weighs as a word: it tells who, not what.
pub const NAME_WEIGHT: f32 = 0.2;

/// What the words for the days that are asked for weigh: what tells of these days is found by them.
pub const DATE_WEIGHT: f32 = 0.5;

impl QueryTerm {
    /// What the term weighs as a part of what is asked for. A record that does not even have the
    /// name is no better than one without any other word.
    pub(crate) fn information(&self) -> f32 {
        match self.role {
            TermRole::Word => self.weight,
            TermRole::Speaker => self.weight / NAME_WEIGHT,
        }
    }

    /// The terms of a text that are no stop words.
    pub fn words_of(text: &str) -> Vec<Self> {
        let terms = crate::search::text::query_terms(text).into_iter();
        let words = terms.filter(|term| !term.stop).map(|term| Self {
            text: term.text,
            weight: term.weight,
            role: TermRole::Word,
        });
        words.collect()
    }
}

impl Terms {
    /// The share of these terms that the record has, weighed as the query weighs them: the
    /// coverage where nothing is known about how frequent they are.
    pub fn covers(&self, wanted: &[QueryTerm]) -> f32 {
        let all: f32 = wanted.iter().map(QueryTerm::information).sum();
        let had = wanted.iter().map(|term| {
            let occurs = self.occurs(hash(&term.text));
            term.information() * occurs.min(1.0)
        });
        had.sum::<f32>() / all.max(f32::MIN_POSITIVE)
    }
}

impl Features {
    /// What ranking needs to know of this record, which has these terms.
    pub fn of(record: &Record, terms: &Terms, cosine: f32, coverage: f32) -> Self {
        Self {
            seq: record.seq,
            cosine,
            coverage,
            created: record.created,
            importance: record.importance as f32,
            asking: terms.asking(),
            length: terms.length(),
            speaker: record.speaker().map(str::to_owned),
            traits: terms.traits(),
            told: terms.told().to_vec(),
        }
    }
}

#[cfg(test)]
mod tests;
