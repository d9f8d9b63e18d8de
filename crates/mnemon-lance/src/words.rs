//! The words arm: BM25 over the terms of documents.
//!
//! One scan counts the documents of the audience that have each term, and a second one scores those that
//! the filter means. So the memory does not depend on the number of documents.

use std::collections::HashMap;

use mnemon_adapters::external_index::{Found, QUARTERS};
use mnemon_core::index::hash;
use mnemon_core::rank::SIMILAR_WEIGHT;
use mnemon_core::{Probe, Statistics};

/// BM25's saturation and its correction for length, as in the built-in index.
const K1: f32 = 0.9;
const B: f32 = 0.75;

/// The terms of a document, as a scan reads them: hashes, and occurrences in quarters.
#[derive(Clone, Copy)]
pub(crate) struct Terms<'a> {
    pub(crate) hashes: &'a [u32],
    pub(crate) counts: &'a [u8],
    /// How many words the document has.
    pub(crate) length: f32,
}

/// What an occurrence of a term of a document is for the query.
#[derive(Clone, Copy)]
struct Role {
    /// The position of the query's term.
    term: usize,
    /// How much of an occurrence it is; 1 for the term itself.
    part: f32,
}

/// The terms of a query.
pub(crate) struct Query {
    /// A term may be similar to several ones.
    roles: HashMap<u32, Vec<Role>>,
    weights: Vec<f32>,
}

impl Query {
    pub(crate) fn new(probe: &Probe) -> Self {
        let mut roles: HashMap<u32, Vec<Role>> = HashMap::new();
        for (term, query) in probe.terms.iter().enumerate() {
            let role = Role { term, part: 1.0 };
            roles.entry(hash(&query.text)).or_default().push(role);
            for similar in probe.similar.iter().filter(|it| it.of == query.text) {
                let part = similar.similarity * SIMILAR_WEIGHT;
                let role = Role { term, part };
                roles.entry(hash(&similar.text)).or_default().push(role);
            }
        }
        Self {
            roles,
            weights: probe.terms.iter().map(|it| it.weight.max(0.0)).collect(),
        }
    }

    /// Occurrences in a document, each with its role.
    fn occurrences(&self, terms: Terms<'_>) -> impl Iterator<Item = (Role, f32)> {
        let pairs = terms.hashes.iter().zip(terms.counts);
        pairs.flat_map(|(term, quarters)| {
            let times = f32::from(*quarters) / QUARTERS;
            let roles = self.roles.get(term).into_iter().flatten();
            roles.map(move |role| (*role, times * role.part))
        })
    }
}

/// What is counted of the documents of the audience.
#[derive(Default)]
pub(crate) struct Counts {
    documents: usize,
    lengths: f64,
    documents_with: Vec<usize>,
}

impl Counts {
    pub(crate) fn add(&mut self, query: &Query, terms: Terms<'_>) {
        self.documents += 1;
        self.lengths += f64::from(terms.length);
        self.documents_with.resize(query.weights.len(), 0);
        for (role, _) in query.occurrences(terms).filter(|(it, _)| it.part >= 1.0) {
            if let Some(count) = self.documents_with.get_mut(role.term) {
                *count += 1;
            }
        }
    }

    pub(crate) fn statistics(mut self, query: &Query) -> Statistics {
        self.documents_with.resize(query.weights.len(), 0);
        Statistics {
            documents: self.documents,
            mean_length: (self.lengths / self.documents.max(1) as f64) as f32,
            documents_with: self.documents_with,
        }
    }
}

/// Scores of documents.
pub(crate) struct Scorer<'a> {
    query: &'a Query,
    /// The weight of each term of the query, and how rare it is.
    weights: Vec<f32>,
    mean_length: f32,
}

impl<'a> Scorer<'a> {
    pub(crate) fn new(query: &'a Query, statistics: &Statistics) -> Self {
        let all = statistics.documents as f32;
        let rarity = statistics.documents_with.iter().map(|having| {
            let having = *having as f32;
            (1.0 + (all - having + 0.5).max(0.0) / (having + 0.5)).ln()
        });
        let weights = rarity.zip(&query.weights);
        Self {
            query,
            weights: weights.map(|(rarity, weight)| rarity * weight).collect(),
            mean_length: statistics.mean_length.max(f32::MIN_POSITIVE),
        }
    }

    /// 0 if the document has no term of the query.
    pub(crate) fn score(&self, terms: Terms<'_>) -> f32 {
        let mut occurs: Vec<(usize, f32)> = Vec::new();
        for (role, times) in self.query.occurrences(terms) {
            match occurs.iter_mut().find(|(known, _)| *known == role.term) {
                Some((_, sum)) => *sum += times,
                None => occurs.push((role.term, times)),
            }
        }
        let norm = K1 * (1.0 - B + B * terms.length / self.mean_length);
        let scores = occurs.into_iter().map(|(term, occurs)| {
            let weight = self.weights.get(term).copied().unwrap_or(0.0);
            weight * occurs * (K1 + 1.0) / (occurs + norm)
        });
        scores.sum()
    }
}

/// The best of the documents that were offered.
pub(crate) struct Best {
    depth: usize,
    found: Vec<Found>,
    /// Documents below this score are not among the best.
    least: f32,
}

impl Best {
    pub(crate) fn new(depth: usize) -> Self {
        Self {
            depth,
            found: Vec::new(),
            least: 0.0,
        }
    }

    /// Whether a document of this score may be among the best.
    pub(crate) fn wants(&self, score: f32) -> bool {
        score > 0.0 && score >= self.least
    }

    pub(crate) fn add(&mut self, found: Found) {
        self.found.push(found);
        if self.found.len() >= self.depth.saturating_mul(2).max(64) {
            self.cut();
            self.least = self.found.last().map_or(f32::MAX, |last| last.score);
        }
    }

    fn cut(&mut self) {
        let order = |a: &Found, b: &Found| (b.score.total_cmp(&a.score)).then(b.seq.cmp(&a.seq));
        self.found.sort_by(order);
        self.found.truncate(self.depth);
    }

    /// The best first.
    pub(crate) fn finish(mut self) -> Vec<Found> {
        self.cut();
        self.found
    }
}

#[cfg(test)]
mod tests {
    use mnemon_core::{Filter, QueryTerm, SimilarTerm};

    use super::*;

    fn term(word: &str) -> String {
        QueryTerm::words_of(word).remove(0).text
    }

    fn scores(documents: &[(&str, &[&str])], probe: &Probe) -> (Vec<String>, Statistics) {
        let query = Query::new(probe);
        let hashes =
            |words: &[&str]| -> Vec<u32> { words.iter().map(|it| hash(&term(it))).collect() };
        let of = |hashes: &[u32], scan: &mut dyn FnMut(Terms<'_>)| {
            scan(Terms {
                hashes,
                counts: &vec![4; hashes.len()],
                length: hashes.len() as f32,
            });
        };
        let mut counts = Counts::default();
        for (_, words) in documents {
            of(&hashes(words), &mut |terms| counts.add(&query, terms));
        }
        let statistics = counts.statistics(&query);
        let scorer = Scorer::new(&query, &statistics);
        let mut best = Best::new(10);
        for (id, words) in documents {
            of(&hashes(words), &mut |terms| {
                let score = scorer.score(terms);
                if best.wants(score) {
                    let id = id.parse().unwrap();
                    best.add(Found { id, seq: 1, score });
                }
            });
        }
        let found = best.finish().into_iter().map(|it| it.id.to_string());
        (found.collect(), statistics)
    }

    fn probe(query: &str) -> Probe {
        Probe {
            terms: QueryTerm::words_of(query),
            ..Probe::new(Filter::all_of_tenant(), 10)
        }
    }

    #[test]
    fn rare_terms_and_short_documents_are_better() {
        let documents: [(&str, &[&str]); 4] = [
            ("long", &["tea", "cup", "milk", "train"]),
            ("short", &["tea"]),
            ("rare", &["coffee"]),
            ("other", &["train"]),
        ];
        let (found, statistics) = scores(&documents, &probe("tea coffee"));
        assert_eq!(found, ["rare", "short", "long"]);
        // The third term is the pair of both words.
        assert_eq!(statistics.documents_with, [2, 1, 0]);
        assert_eq!((statistics.documents, statistics.mean_length), (4, 1.75));
    }

    #[test]
    fn similar_terms_find_and_do_not_count() {
        let documents: [(&str, &[&str]); 2] = [("a", &["brew"]), ("b", &["tea"])];
        let mut probe = probe("tea");
        probe.similar = vec![SimilarTerm {
            of: term("tea"),
            text: term("brew"),
            similarity: 0.9,
        }];
        let (found, statistics) = scores(&documents, &probe);
        assert_eq!(found, ["b", "a"]);
        assert_eq!(statistics.documents_with, [1]);
    }

    #[test]
    fn only_the_best_are_kept() {
        let mut best = Best::new(3);
        for number in 0..1000_u64 {
            let score = ((number * 7919) % 1000) as f32;
            if best.wants(score) {
                let id = format!("d{number}").parse().unwrap();
                best.add(Found {
                    id,
                    seq: number,
                    score,
                });
            }
            assert!(best.found.len() < 64);
        }
        let scores: Vec<f32> = best.finish().iter().map(|it| it.score).collect();
        assert_eq!(scores, [999.0, 998.0, 997.0]);
    }
}
