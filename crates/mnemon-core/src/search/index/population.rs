//! Statistics of documents of which an index holds only some: for an index that loads the candidates
//! of a query from a database.

use std::collections::HashMap;

use super::{Terms, hash};
use crate::ports::{Background, Probe};
use crate::search::rank::{Bm25, lends};

/// What is known of all documents of an audience from a random sample of them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Population {
    /// How many documents there are.
    pub documents: usize,
    /// How many words a document has on average.
    pub mean_length: f32,
    /// How many documents of the sample have each term.
    counts: HashMap<u32, u32>,
    sample: usize,
}

impl Population {
    pub fn new<'a>(documents: usize, sample: impl Iterator<Item = &'a Terms>) -> Self {
        let (mut counts, mut count, mut length) = (HashMap::new(), 0_usize, 0.0);
        for terms in sample {
            count += 1;
            length += terms.length();
            for term in terms.numbers() {
                *counts.entry(term).or_insert(0) += 1;
            }
        }
        Self {
            documents: documents.max(count),
            mean_length: length / count.max(1) as f32,
            counts,
            sample: count,
        }
    }

    /// How many documents are likely to have the term: 0 if none of the sample has it.
    pub fn having(&self, term: u32) -> usize {
        let count = self.counts.get(&term).copied().unwrap_or(0) as usize;
        count * self.documents / self.sample.max(1)
    }
}

/// A population, and what is known of it for one query.
#[derive(Debug, Clone)]
pub struct Sampled<'a> {
    pub population: &'a Population,
    /// Terms whose documents were counted.
    pub counted: HashMap<u32, usize>,
    pub background: Option<Background>,
}

impl Sampled<'_> {
    /// How many documents have the term.
    pub fn having(&self, term: u32) -> usize {
        let counted = self.counted.get(&term).copied();
        counted.unwrap_or_else(|| self.population.having(term))
    }

    /// BM25 of a document's own words, without what its neighbours lend it.
    pub fn own_words(&self, probe: &Probe, terms: &Terms) -> f32 {
        let documents = self.population.documents;
        let bm25 = Bm25::new(self.population.mean_length);
        let mut score = 0.0;
        for term in &probe.terms {
            let number = hash(&term.text);
            let mut occurs = terms.occurs(number);
            let mut having = self.having(number);
            for similar in probe.similar.iter().filter(|it| it.of == term.text) {
                let number = hash(&similar.text);
                occurs += terms.occurs(number) * similar.similarity * lends(terms.length());
                having = having.max(self.having(number));
            }
            let worth = Bm25::worth(term.weight, documents, having.clamp(1, documents.max(1)));
            score += bm25.score(worth, occurs, terms.length());
        }
        score
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Text;
    use crate::model::{Filter, Time};
    use crate::ports::QueryTerm;

    fn terms(content: &str) -> Terms {
        Terms::of_text(&Text {
            content,
            tags: &[],
            summary: None,
            created: Time::EPOCH,
            voice: None,
        })
    }

    #[test]
    fn a_sample_stands_for_all() {
        let sample = ["green tea", "black tea", "coffee", "water"].map(terms);
        let population = Population::new(400, sample.iter());
        assert_eq!(population.having(hash("tea")), 200);
        assert_eq!(population.having(hash("lisbon")), 0);
        assert_eq!(population.mean_length, 1.5);
        let sampled = Sampled {
            population: &population,
            counted: HashMap::from([(hash("coffee"), 3)]),
            background: None,
        };
        assert_eq!(sampled.having(hash("coffee")), 3);
        let probe = Probe {
            terms: QueryTerm::words_of("tea coffee"),
            ..Probe::new(Filter::all_of_tenant(), 5)
        };
        let [tea, .., coffee, water] = &sample.map(|it| sampled.own_words(&probe, &it));
        assert!(
            coffee > tea && *tea > 0.0 && *water == 0.0,
            "the rare word counts more"
        );
    }
}
