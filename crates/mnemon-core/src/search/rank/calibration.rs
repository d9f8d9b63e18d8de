//! From evidence to a probability: how sure is it that a record answers the query?
//!
//! The order of hits is relative: each arm is divided by its best. The score of a hit is absolute:
//! it rests on the share of the query's information that the record has, and on how far its cosine
//! stands out of the cosines of records that have nothing to do with the query. So a score means
//! the same for every query and store. `docs/ranking.md` tells how the constants were fitted.

use serde::{Deserialize, Serialize};

use super::{Candidate, Question, Ranked, Recipe};
use crate::ports::Background;
use crate::search::text::is_unspaced;

/// Below this score the best hit is not an answer: nothing is known.
pub const MIN_SCORE: f32 = 0.2;
/// A hit beside an answer is shown if it would score this much as the first one.
const RELATED: f32 = 0.1;
/// Hits by which it is decided whether anything is known: the order is not certain.
const DECISIVE: usize = 3;

/// One in so many cosines of a sample is left out of the background.
const ANSWERS: usize = 8;
/// As many measured cosines weigh as much as what is typical.
const TYPICAL_WEIGHT: f32 = 24.0;

impl Background {
    /// What the built-in model gives for texts that have nothing to do with each other.
    pub const TYPICAL: Self = Self {
        mean: 0.08,
        deviation: 0.08,
        sample: 0,
    };

    /// The distribution of these cosines without the highest, which answers may be among; `None`
    /// of too few.
    pub fn of(mut cosines: Vec<f32>) -> Option<Self> {
        cosines.sort_by(f32::total_cmp);
        cosines.truncate(cosines.len() - cosines.len().div_ceil(ANSWERS));
        let count = cosines.len() as f32;
        let mean = cosines.iter().sum::<f32>() / count;
        let squares = cosines.iter().map(|cosine| (cosine - mean).powi(2));
        let deviation = (squares.sum::<f32>() / count).sqrt();
        (!cosines.is_empty()).then_some(Self {
            mean,
            deviation,
            sample: cosines.len(),
        })
    }

    /// What was measured, and what is typical as far as the sample is small.
    #[must_use]
    pub fn with_typical(self) -> Self {
        let sample = self.sample as f32;
        let share = sample / (sample + TYPICAL_WEIGHT);
        Self {
            mean: share * self.mean + (1.0 - share) * Self::TYPICAL.mean,
            deviation: share * self.deviation + (1.0 - share) * Self::TYPICAL.deviation,
            sample: self.sample,
        }
    }
}

/// What evidence is measured against.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// The cosine of records that do not answer the query.
    pub background: Background,
    /// How far the embedder understands the query, from 0 to 1; 0 without an embedder.
    pub fluency: f32,
    /// Whether the query is in a script without spaces.
    pub is_unspaced: bool,
}

impl Scale {
    /// For a query that the embedder understands so far.
    pub fn new(query: &str, fluency: f32, measured: Option<Background>) -> Self {
        Self {
            background: measured.map_or(Background::TYPICAL, Background::with_typical),
            fluency,
            is_unspaced: query.chars().any(is_unspaced),
        }
    }
}

impl Default for Scale {
    fn default() -> Self {
        Self {
            background: Background::TYPICAL,
            fluency: 1.0,
            is_unspaced: false,
        }
    }
}

/// What speaks for a hit, whatever the others are.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// The share of the query's information that it has; `None` if words do not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<f32>,
    /// Standard deviations by which its cosine exceeds the background; `None` if meaning does not
    /// count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearness: Option<f32>,
    /// How far the embedder understands the query.
    pub fluency: f32,
    /// How well its date fits the dates in the query.
    pub date: f32,
}

impl Scale {
    pub(super) fn evidence(
        &self,
        candidate: &Candidate,
        recipe: Recipe,
        question: &Question,
        date: f32,
    ) -> Evidence {
        let features = &candidate.features;
        let Background {
            mean, deviation, ..
        } = self.background;
        let cosine = features.cosine.max(candidate.meaning);
        let coverage = match self.is_unspaced {
            true => features.coverage * UNSPACED,
            false => features.coverage,
        };
        // If days are all that is asked for, they are all there is to cover.
        let coverage = match question.asks_only_for_days() {
            true => coverage.max(date),
            false => coverage,
        };
        let by_meaning = match recipe {
            Recipe::Words => false,
            Recipe::Meaning => true,
            _ => self.fluency > 0.0,
        };
        Evidence {
            coverage: (recipe != Recipe::Meaning).then_some(coverage.clamp(0.0, 1.0)),
            nearness: by_meaning.then_some((cosine - mean) / deviation.max(LEAST_DEVIATION)),
            fluency: self.fluency,
            date,
        }
    }
}

/// Where words are not set apart, some of the grams of a query span two words, which no answer
/// has. Chosen, not measured.
const UNSPACED: f32 = 1.5;
/// Texts in a language that the model does not know are near each other for no reason.
/// Chosen on `office.json`.
const FOREIGN: f32 = 3.0;
/// The texts of a store may all be alike; a hair more is no evidence then.
const LEAST_DEVIATION: f32 = 0.05;

impl Evidence {
    /// The probability that a record with this evidence answers the query, at this place in the
    /// order: 0 is the first.
    pub fn probability(&self, place: usize) -> f32 {
        let words = |coverage: f32| -3.3 + 7.0 * coverage;
        let meaning = |nearness: f32| -4.5 + 0.8 * nearness;
        // The meaning tells less where the words have told it already.
        let both = |coverage: f32, nearness: f32| {
            let added = 0.55 * nearness.max(0.0) * (1.0 - coverage);
            meaning(nearness).max(-4.5 + 6.6 * coverage + added)
        };
        let common = 1.3 * self.date - 2.0 * (1.0 + place as f32).ln();
        let logistic = |logit: f32| 1.0 / (1.0 + (-logit - common).exp());
        match (self.coverage, self.nearness) {
            (None, None) => 0.0,
            (Some(coverage), None) => logistic(words(coverage)),
            (None, Some(nearness)) => {
                let foreign = FOREIGN * (1.0 - self.fluency);
                logistic(meaning(nearness) - foreign)
            }
            (Some(coverage), Some(nearness)) => {
                self.fluency * logistic(both(coverage, nearness))
                    + (1.0 - self.fluency) * logistic(words(coverage))
            }
        }
    }
}

/// The hits that are shown: all that score at least `min_score`; without it nothing unless one of
/// the first hits is an answer, and then those that may have to do with it.
pub fn known(mut ranked: Vec<Ranked>, min_score: Option<f32>) -> Vec<Ranked> {
    let as_first = |hit: &Ranked| hit.parts.evidence.probability(0);
    match min_score {
        Some(least) => ranked.retain(|hit| hit.score >= least),
        None if ranked
            .iter()
            .take(DECISIVE)
            .any(|hit| as_first(hit) >= MIN_SCORE) =>
        {
            ranked.retain(|hit| as_first(hit) >= RELATED);
        }
        None => ranked.clear(),
    }
    ranked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_evidence_never_scores_less() {
        let steps = || (0..=20_u8).map(|step| f32::from(step) / 20.0);
        let evidence = |coverage, nearness, fluency| Evidence {
            coverage,
            nearness,
            fluency,
            date: 0.0,
        };
        for fluency in [0.0, 0.5, 1.0] {
            for fixed in steps() {
                let rising: [Vec<f32>; 2] = [
                    steps()
                        .map(|c| evidence(Some(c), Some(6.0 * fixed), fluency).probability(0))
                        .collect(),
                    steps()
                        .map(|n| evidence(Some(fixed), Some(6.0 * n), fluency).probability(0))
                        .collect(),
                ];
                for scores in rising {
                    assert!(scores.is_sorted(), "{scores:?}");
                    assert!(scores.iter().all(|score| (0.0..=1.0).contains(score)));
                }
            }
        }
        let dated = Evidence {
            date: 1.0,
            ..evidence(Some(0.2), None, 0.0)
        };
        assert!(dated.probability(0) > evidence(Some(0.2), None, 0.0).probability(0));
        assert!(dated.probability(0) > dated.probability(1));
    }

    #[test]
    fn a_small_sample_weighs_little() {
        let typical = Background::TYPICAL;
        let few = Background::of(vec![0.9, 0.9]).unwrap().with_typical();
        assert!(few.mean > typical.mean && few.mean < 0.4, "{few:?}");
        let many = Background::of(vec![0.5; 128]).unwrap().with_typical();
        assert!(many.mean > 0.4, "{many:?}");
        assert_eq!(Background::of(vec![0.9]), None);
    }
}
