//! Choosing candidates: records with the rarest words of the query, the nearest vectors, and records
//! of the days that are asked for.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use mnemon_core::dates::Asked;
use mnemon_core::index::{NEIGHBOURS_FOUND, Sampled, Terms, hash, wrong_vector};
use mnemon_core::vector::{Candidates, Quantised, ScanConfig, TopK, VectorSet};
use mnemon_core::{Embedding, Probe};
use tokio_postgres::Row;

use super::candidates::{COMPARED, NEIGHBOURS, REACH, Scope};
use super::find::Model;
use super::keys::{self, Item};
use super::sample::Sample;
use crate::store::postgres::errors::Failure;
use crate::store::postgres::pool::Call;
use crate::store::postgres::view::number;

/// Postings that are read for the words of a query, the rarest first. More frequent words only
/// rescore records that were found, and choose among the sample.
const POSTINGS: usize = 4_000;
/// Postings that a statement reads at the most, if the sample was wrong about a word.
const POSTINGS_MOST: usize = 3 * POSTINGS;
/// Words that a record must have at once, where all words are frequent.
const TOGETHER: usize = 3;
/// As neighbours lift some records, twice the depth are loaded for the words, but no more than this
/// or the depth. Beyond, a record that is lifted much is a neighbour of one of the best.
const LIFTED: usize = 60;
/// The neighbours of so many of the best by words may match, too.
const HEAD: usize = 50;
/// Records that are found by the days that are asked for, at the most.
const OF_DAYS: usize = 150;
/// Days that are asked for: intervals that are looked up at the most.
const INTERVALS: usize = 16;

/// A candidate, and how many records before and after it are loaded.
pub(super) type Chosen = (u64, usize);

/// What candidates are chosen by.
pub(super) struct Choice<'a> {
    pub(super) scope: Scope<'a>,
    pub(super) probe: &'a Probe,
    pub(super) sample: Arc<Sample>,
    pub(super) within: Option<&'a HashSet<u64>>,
}

/// The statements that choose candidates, all sent at once.
pub(super) struct Plan<'a> {
    pub(super) choice: Choice<'a>,
    pub(super) calls: Vec<Call>,
    words: Words,
    /// So many of the statements look up words,
    of_words: usize,
    /// so many look up words and days,
    of_days: usize,
    /// so many look up words, days and the nearest; the others read vectors,
    of_seqs: usize,
    /// which are compared here with these queries.
    queries: Vec<&'a Embedding>,
}

/// Statements for the meaning arm.
#[derive(Default)]
struct Nearest<'a> {
    /// The database chooses the nearest.
    by_database: Vec<Call>,
    /// Vectors that are compared here,
    compared: Vec<Call>,
    /// with these queries.
    queries: Vec<&'a Embedding>,
}

/// How the nearest vectors of a model are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compare {
    /// By the HNSW index of pgvector.
    ByIndex,
    /// All of them, by pgvector.
    InDatabase,
    /// Those of the newest records, on this server.
    Here,
}

/// Words to look up.
#[derive(Default)]
struct Words {
    /// The numbers of all words of the probe, in order.
    wanted: Vec<u32>,
    /// So rare that all records with them are read.
    rare: Vec<Item>,
    rare_terms: Vec<u32>,
    /// Whether there are others.
    has_common: bool,
    /// The rarest, which a record must have all, if the rare ones are none.
    together: Vec<Item>,
}

impl<'a> Choice<'a> {
    /// `compare` says how the vectors of each model are compared.
    pub(super) fn plan(
        self,
        models: &[Model],
        compare: impl Fn(&Model) -> Compare,
    ) -> Result<Plan<'a>, Failure> {
        let sampled = Sampled {
            population: &self.sample.population,
            counted: HashMap::new(),
            background: None,
        };
        let words = self.words(&sampled);
        let mut calls = words.calls(&self)?;
        let of_words = calls.len();
        calls.extend(self.days()?);
        let of_days = calls.len();
        let near = self.nearest(models, compare)?;
        calls.extend(near.by_database);
        let of_seqs = calls.len();
        calls.extend(near.compared);
        Ok(Plan {
            choice: self,
            calls,
            words,
            of_words,
            of_days,
            of_seqs,
            queries: near.queries,
        })
    }

    /// The nearest records by each model of the probe.
    fn nearest(
        &self,
        models: &[Model],
        compare: impl Fn(&Model) -> Compare,
    ) -> Result<Nearest<'a>, Failure> {
        let mut calls = Nearest::default();
        let depth = self.probe.depth;
        for query in &self.probe.vectors {
            let Some(model) = models.iter().find(|model| model.id == query.model) else {
                continue;
            };
            let compare = match self.within {
                Some(_) => Compare::Here,
                None => compare(model),
            };
            if compare == Compare::Here {
                calls.compared.push(match self.newest_within() {
                    Some(seqs) => self.scope.vectors_of(model.number, seqs)?,
                    None => self.scope.vectors(model.number, COMPARED)?,
                });
                calls.queries.push(query);
                continue;
            }
            // A few more: the codes in the index are rounded.
            let most = depth.saturating_add(depth / 8 + 10);
            let by_index = compare == Compare::ByIndex;
            let call = self.scope.nearest(query, model.number, by_index, most)?;
            calls.by_database.push(call);
        }
        Ok(calls)
    }

    fn is_of_audience(&self) -> bool {
        self.within.is_none() && self.probe.filter == self.probe.filter.audience_only()
    }

    fn may_match(&self, seq: u64) -> bool {
        self.within.is_none_or(|within| within.contains(&seq))
    }

    /// The best of what was found and of the sample by their own words. The neighbours of the first
    /// of them may match, too, and so need their own neighbours.
    fn best_by_words(
        &self,
        found: &HashMap<u64, Terms>,
        sampled: &Sampled<'_>,
    ) -> HashMap<u64, usize> {
        let depth = self.probe.depth;
        let mut top = TopK::new(depth.max(depth.saturating_mul(2).min(LIFTED)));
        let is_of_audience = self.is_of_audience();
        let drawn = self.sample.docs.iter().map(|(seq, terms)| (seq, terms));
        let drawn = drawn.filter(|(seq, _)| is_of_audience && !found.contains_key(seq));
        for (seq, terms) in found.iter().chain(drawn) {
            let score = sampled.own_words(self.probe, terms);
            if score > 0.0 && self.may_match(*seq) {
                top.push(score, *seq);
            }
        }
        let reaches = std::iter::repeat_n(REACH, HEAD).chain(std::iter::repeat(NEIGHBOURS));
        let best = top.into_sorted().into_iter().map(|(_, seq)| seq);
        best.zip(reaches).collect()
    }

    /// The newest of the records that whole records were read for.
    fn newest_within(&self) -> Option<Vec<i64>> {
        let mut seqs: Vec<u64> = self.within?.iter().copied().collect();
        seqs.sort_unstable_by_key(|seq| Reverse(*seq));
        seqs.truncate(COMPARED);
        Some(seqs.into_iter().map(u64::cast_signed).collect())
    }

    /// The words of the probe and those of similar meaning, the rarest first.
    fn words(&self, sampled: &Sampled<'_>) -> Words {
        let own = self.probe.terms.iter().map(|term| (&term.text, true));
        let similar = self.probe.similar.iter().map(|term| (&term.text, false));
        let all = own.chain(similar).map(|(text, is_own)| {
            let term = hash(text);
            (sampled.having(term), term, is_own)
        });
        let mut all: Vec<(usize, u32, bool)> = all.collect();
        all.sort_unstable();
        all.dedup_by_key(|(_, term, _)| *term);
        let mut words = Words {
            wanted: wanted(self.probe),
            ..Words::default()
        };
        let mut postings = 0;
        for (having, term, is_own) in all {
            postings += having;
            if postings <= POSTINGS {
                words.rare.push(Item::Term(term));
                words.rare_terms.push(term);
            } else {
                words.has_common = true;
            }
            if is_own && words.together.len() < TOGETHER {
                words.together.push(Item::Term(term));
            }
        }
        words
    }

    /// Records that tell of the days that are asked for, or are of such a day.
    fn days(&self) -> Result<Vec<Call>, Failure> {
        let (first, last) = self.sample.days.unwrap_or_default();
        let asked = self.probe.asked.iter();
        let asked = asked.flat_map(|asked| asked.in_years(first, last));
        let asked: Vec<Asked> = asked.take(INTERVALS).collect();
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        let items: Vec<Item> = asked.iter().flat_map(keys::asked).collect();
        let mut calls = vec![self.scope.with_any(&items, OF_DAYS)?];
        for Asked { days, .. } in asked {
            calls.push(self.scope.of_days(days.from, days.to, OF_DAYS)?);
        }
        Ok(calls)
    }
}

impl Words {
    /// The first statement reads all records with a rare word, the others some with frequent ones.
    fn calls(&self, choice: &Choice<'_>) -> Result<Vec<Call>, Failure> {
        let scope = &choice.scope;
        let mut calls = Vec::new();
        if !self.rare.is_empty() {
            calls.push(scope.with_any(&self.rare, POSTINGS_MOST)?);
        }
        if self.has_common && self.together.len() > 1 {
            calls.push(scope.with_all(&self.together, POSTINGS)?);
        }
        if self.has_common && !choice.is_of_audience() {
            calls.push(scope.drawn(POSTINGS)?);
        }
        Ok(calls)
    }

    /// How many records have each rare word.
    fn count<'a>(&self, found: impl Iterator<Item = &'a Terms> + Clone) -> HashMap<u32, usize> {
        let terms = self.rare_terms.iter();
        let counted = terms.map(|term| {
            let having = found.clone().filter(|terms| terms.occurs(*term) > 0.0);
            (*term, having.count())
        });
        counted.collect()
    }
}

impl Plan<'_> {
    /// The best candidates of each arm by the answers to the statements; counts the rare words.
    pub(super) fn choose(
        &self,
        answers: &[Vec<Row>],
        sampled: &mut Sampled<'_>,
    ) -> Result<Vec<Chosen>, Failure> {
        let (choice, words) = (&self.choice, &self.words);
        let (rows, vectors) = answers.split_at_checked(self.of_seqs).unwrap_or_default();
        let (rows, near) = rows.split_at_checked(self.of_days).unwrap_or_default();
        let (rows, of_days) = rows.split_at_checked(self.of_words).unwrap_or_default();
        let mut found: HashMap<u64, Terms> = HashMap::new();
        for row in rows.iter().flatten() {
            let terms = Terms::of_wanted(row.try_get(1)?, &words.wanted);
            found.insert(number(row, 0)?, terms.unwrap_or_default());
        }
        let read = rows.first().filter(|_| !words.rare.is_empty());
        let is_complete = read.is_some_and(|rows| rows.len() < POSTINGS_MOST);
        if is_complete && choice.is_of_audience() {
            sampled.counted = words.count(found.values());
        }
        let mut chosen = choice.best_by_words(&found, sampled);
        let mut nearest: Vec<Vec<u64>> = Vec::new();
        for rows in near {
            let seqs = rows.iter().map(|row| number(row, 0));
            nearest.push(seqs.collect::<Result<_, _>>()?);
        }
        for (rows, query) in vectors.iter().zip(&self.queries) {
            nearest.push(nearest_of(rows, query, choice)?);
        }
        // Without words the neighbours of the nearest may match, too.
        let head = match choice.probe.terms.is_empty() {
            true => NEIGHBOURS_FOUND,
            false => 0,
        };
        for (place, seq) in nearest.iter().flat_map(|seqs| seqs.iter().enumerate()) {
            let reach = if place < head { REACH } else { NEIGHBOURS };
            chosen.entry(*seq).or_insert(reach);
        }
        for row in of_days.iter().flatten() {
            chosen.entry(number(row, 0)?).or_insert(NEIGHBOURS);
        }
        Ok(chosen.into_iter().collect())
    }
}

/// The numbers of the words of the probe and of those of similar meaning, in order.
pub(super) fn wanted(probe: &Probe) -> Vec<u32> {
    let own = probe.terms.iter().map(|term| &term.text);
    let similar = probe.similar.iter().map(|term| &term.text);
    let mut wanted: Vec<u32> = own.chain(similar).map(|text| hash(text)).collect();
    wanted.sort_unstable();
    wanted.dedup();
    wanted
}

/// The nearest of these vectors.
fn nearest_of(rows: &[Row], query: &Embedding, choice: &Choice<'_>) -> Result<Vec<u64>, Failure> {
    let wrong = |error| Failure::from(wrong_vector(&error));
    let mut set = VectorSet::without_sketches(query.model.dimension).map_err(wrong)?;
    let mut seqs = Vec::new();
    for row in rows {
        let seq = number(row, 0)?;
        if choice.may_match(seq) {
            let (scale, codes): (f32, &[u8]) = (row.try_get(2)?, row.try_get(3)?);
            let vector = Quantised::from_bytes(codes, query.model.dimension, scale);
            set.push_quantised(&vector).map_err(wrong)?;
            seqs.push(seq);
        }
    }
    let depth = choice.probe.depth;
    let near = set.search(
        &query.vector,
        depth,
        Candidates::All,
        &ScanConfig::default(),
    );
    let near = near.map_err(wrong)?.into_iter();
    Ok(near
        .filter_map(|it| seqs.get(it.slot as usize).copied())
        .collect())
}
