//! Recall and NDCG of questions, and their means with bootstrap intervals.

use std::collections::{BTreeMap, BTreeSet};

use mnemon_core::rank::Recipe;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use super::dataset::Evidence;

/// The depths at which recall is measured.
pub(super) const DEPTHS: [usize; 3] = [5, 10, 20];
/// Depth of NDCG and of the ideal order.
const NDCG_DEPTH: usize = 10;
/// Resamples of a bootstrap; the ends of a 95 % interval are its 25th and 975th values.
const RESAMPLES: usize = 1000;
/// Recall at each depth, and NDCG.
pub(super) type Values = [f64; 4];
/// The name of the row over all categories.
const ALL: &str = "all";

/// The result of one question with one recipe. Measures are from 0 to 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    pub recipe: Recipe,
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    pub recall_5: f64,
    pub recall_10: f64,
    pub recall_20: f64,
    pub ndcg_10: f64,
    /// The place of the first right hit, from 1; absent if it is not among the first 20.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<usize>,
    /// Whether the answer was judged right, if questions were answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub right: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

impl Measured {
    pub(super) fn values(&self) -> Values {
        [self.recall_5, self.recall_10, self.recall_20, self.ndcg_10]
    }

    /// 1 for a right answer, 0 for a wrong one.
    pub(super) fn is_right(&self) -> Option<f64> {
        self.right.map(|right| f64::from(u8::from(right)))
    }

    pub(super) fn is_in(&self, category: &str) -> bool {
        category == ALL || self.category.as_deref() == Some(category)
    }
}

/// A mean in percent, or a difference of means in points, with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    pub mean: f64,
    pub low: f64,
    pub high: f64,
}

/// Each measure over some questions. In JSON the means, and the intervals in `interval_95`.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimates {
    pub recall_5: Estimate,
    pub recall_10: Estimate,
    pub recall_20: Estimate,
    pub ndcg_10: Estimate,
    /// Share of right answers, if questions were answered.
    pub right: Option<Estimate>,
}

impl Serialize for Estimates {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let named = [
            ("recall_5", Some(self.recall_5)),
            ("recall_10", Some(self.recall_10)),
            ("recall_20", Some(self.recall_20)),
            ("ndcg_10", Some(self.ndcg_10)),
            ("right", self.right),
        ];
        let named = named
            .iter()
            .filter_map(|(name, one)| Some((*name, (*one)?)));
        let mut map = serializer.serialize_map(None)?;
        for (name, estimate) in named.clone() {
            map.serialize_entry(name, &estimate.mean)?;
        }
        let intervals = named.map(|(name, one)| (name, [one.low, one.high]));
        map.serialize_entry("interval_95", &intervals.collect::<BTreeMap<_, _>>())?;
        map.end()
    }
}

impl Estimates {
    /// The means; `right` has a value for each question that was answered.
    pub(super) fn of(values: &[Values], right: &[[f64; 1]]) -> Self {
        let [recall_5, recall_10, recall_20, ndcg_10] = bootstrap(values);
        let [answers] = bootstrap(right);
        Self {
            recall_5,
            recall_10,
            recall_20,
            ndcg_10,
            right: (!right.is_empty()).then_some(answers),
        }
    }
}

/// The measures of a recipe in a category.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    pub recipe: Recipe,
    /// `all` or the name of a category.
    pub category: String,
    pub questions: usize,
    #[serde(flatten)]
    pub measures: Estimates,
}

/// For each recipe all questions, then each category.
pub(super) fn rows(measured: &[Measured]) -> Vec<Row> {
    let recipes = distinct(measured.iter().map(|one| one.recipe));
    let mut rows = Vec::new();
    for recipe in recipes {
        for category in categories(measured) {
            let of_recipe = measured.iter().filter(|one| one.recipe == recipe);
            let some: Vec<&Measured> = of_recipe.filter(|one| one.is_in(&category)).collect();
            let values: Vec<Values> = some.iter().map(|one| one.values()).collect();
            let right = some.iter().filter_map(|one| one.is_right());
            let right: Vec<[f64; 1]> = right.map(|right| [right]).collect();
            rows.push(Row {
                recipe,
                questions: values.len(),
                measures: Estimates::of(&values, &right),
                category,
            });
        }
    }
    rows
}

/// `all`, and the categories by name.
pub(super) fn categories(measured: &[Measured]) -> Vec<String> {
    let named = measured.iter().filter_map(|one| one.category.clone());
    let named: BTreeSet<String> = named.collect();
    std::iter::once(ALL.to_owned()).chain(named).collect()
}

pub(super) fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}

/// Grades the hits of searches for 5, 10 and 20 records. A hit is the index of an entry, or `None`
/// if it is of another conversation. An entry that comes again, as a copy, takes a place and gains
/// nothing.
pub(super) fn grade(
    found: &[Vec<Option<usize>>; 3],
    expected: &[Evidence],
    is_capped: bool,
) -> Grade {
    let [five, ten, twenty] = found.each_ref().map(|hits| gains(hits, expected));
    let recall = |gains: &[f64], depth: usize| {
        let most = if is_capped { depth } else { usize::MAX };
        let found = gains.iter().take(depth).filter(|gain| **gain > 0.0).count();
        found as f64 / expected.len().min(most).max(1) as f64
    };
    let mut ideal: Vec<f64> = expected.iter().map(|one| one.gain).collect();
    ideal.sort_by(|one, other| other.total_cmp(one));
    let ideal = discounted(&ideal);
    Grade {
        recalls: [recall(&five, 5), recall(&ten, 10), recall(&twenty, 20)],
        ndcg_10: if ideal > 0.0 {
            discounted(&ten) / ideal
        } else {
            0.0
        },
        rank: twenty.iter().position(|gain| *gain > 0.0).map(|at| at + 1),
    }
}

/// The measures of one search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Grade {
    pub(super) recalls: [f64; 3],
    pub(super) ndcg_10: f64,
    pub(super) rank: Option<usize>,
}

/// What each hit gains: the first one of each piece of evidence gains, others do not.
fn gains(hits: &[Option<usize>], expected: &[Evidence]) -> Vec<f64> {
    let mut left: Vec<&Evidence> = expected.iter().collect();
    let gain = |hit: &Option<usize>| {
        let is_meant = |one: &&Evidence| hit.is_some_and(|hit| one.entries.contains(&hit));
        let at = left.iter().position(is_meant);
        at.map_or(0.0, |at| left.remove(at).gain)
    };
    hits.iter().map(gain).collect()
}

fn discounted(gains: &[f64]) -> f64 {
    let gains = gains.iter().take(NDCG_DEPTH).enumerate();
    gains.map(|(n, gain)| gain / (n as f64 + 2.0).log2()).sum()
}

/// The mean of each column in percent, and its 95 % percentile interval over resampled rows. The
/// seed is fixed: the same rows have the same interval.
pub(super) fn bootstrap<const N: usize>(rows: &[[f64; N]]) -> [Estimate; N] {
    let mut random = SplitMix(17);
    let mut means: [Vec<f64>; N] = std::array::from_fn(|_| Vec::with_capacity(RESAMPLES));
    for _ in 0..RESAMPLES {
        let drawn = rows
            .iter()
            .filter_map(|_| rows.get(random.below(rows.len())));
        let resampled = mean(drawn, rows.len());
        for (list, mean) in means.iter_mut().zip(resampled) {
            list.push(mean);
        }
    }
    let whole = mean(rows.iter(), rows.len());
    let mut pairs = whole.into_iter().zip(means);
    std::array::from_fn(|_| {
        let (mean, mut list) = pairs.next().unwrap_or_default();
        list.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let at = (share * (RESAMPLES - 1) as f64).round() as usize;
            list.get(at).copied().unwrap_or(mean)
        };
        Estimate {
            mean,
            low: at(0.025),
            high: at(0.975),
        }
    })
}

fn mean<'a, const N: usize>(rows: impl Iterator<Item = &'a [f64; N]>, count: usize) -> [f64; N] {
    let mut sums = [0.0; N];
    for row in rows {
        for (sum, value) in sums.iter_mut().zip(row) {
            *sum += value;
        }
    }
    sums.map(|sum| 100.0 * sum / count.max(1) as f64)
}

/// The generator SplitMix64: small, and the same on every machine.
struct SplitMix(u64);

impl SplitMix {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let z = z ^ (z >> 31);
        ((u128::from(z) * most as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(entries: &[usize]) -> Vec<Evidence> {
        let one = |entry: &usize| Evidence {
            entries: vec![*entry],
            gain: 1.0,
        };
        entries.iter().map(one).collect()
    }

    fn found(hits: &[usize]) -> [Vec<Option<usize>>; 3] {
        let hits: Vec<Option<usize>> = hits.iter().map(|hit| Some(*hit)).collect();
        DEPTHS.map(|depth| hits.iter().take(depth).copied().collect())
    }

    #[test]
    fn measures_are_what_they_are_called() {
        let hits: Vec<usize> = (0..20).collect();
        let grade = grade(&found(&hits), &evidence(&[0, 7]), false);
        assert_eq!(grade.recalls, [0.5, 1.0, 1.0]);
        let ideal = 1.0 + 1.0 / 3_f64.log2();
        assert!((grade.ndcg_10 - (1.0 + 1.0 / 9_f64.log2()) / ideal).abs() < 1e-12);
        assert_eq!(grade.rank, Some(1));
    }

    #[test]
    fn capped_recall_can_be_reached() {
        let wanted: Vec<usize> = (0..8).collect();
        let hits: Vec<usize> = (0..20).collect();
        let recalls = |is_capped| grade(&found(&hits), &evidence(&wanted), is_capped).recalls;
        assert_eq!(recalls(true), [1.0, 1.0, 1.0]);
        assert_eq!(recalls(false), [5.0 / 8.0, 1.0, 1.0]);
    }

    #[test]
    fn a_copy_counts_once_and_takes_a_place() {
        let hits = [3, 3, 3, 9, 4];
        let graded = grade(&found(&hits), &evidence(&[3, 4]), false);
        assert_eq!(graded.recalls, [1.0, 1.0, 1.0]);
        let alone = grade(&found(&[3, 9, 4]), &evidence(&[3, 4]), false);
        assert!(graded.ndcg_10 < alone.ndcg_10);
        let copies = grade(&found(&[3, 3]), &evidence(&[3, 4]), false);
        assert_eq!(copies.recalls, [0.5, 0.5, 0.5]);
    }

    #[test]
    fn any_entry_of_an_ambiguous_id_will_do_once() {
        let both = [Evidence {
            entries: vec![1, 2],
            gain: 1.0,
        }];
        let graded = grade(&found(&[2, 1]), &both, false);
        assert_eq!((graded.recalls[0], graded.ndcg_10), (1.0, 1.0));
    }

    #[test]
    fn more_relevant_documents_belong_first() {
        let mut expected = evidence(&[0, 1]);
        expected[1].gain = 2.0;
        let best = grade(&found(&[1, 0]), &expected, false);
        let worse = grade(&found(&[0, 1]), &expected, false);
        assert_eq!(best.ndcg_10, 1.0);
        assert!(worse.ndcg_10 < 1.0 && worse.recalls == best.recalls);
        let nothing = grade(&found(&[7]), &expected, false);
        assert_eq!((nothing.ndcg_10, nothing.rank), (0.0, None));
    }

    #[test]
    fn intervals_hold_the_mean_and_are_the_same_every_time() {
        let rows: Vec<[f64; 2]> = (0..200).map(|n| [f64::from(n % 2), 1.0]).collect();
        let [half, all] = bootstrap(&rows);
        assert_eq!(
            (half.mean, all.mean, all.low, all.high),
            (50.0, 100.0, 100.0, 100.0)
        );
        // The standard error is 3.5 points.
        assert!(half.low > 40.0 && half.low < 46.0, "{half:?}");
        assert!(half.high > 54.0 && half.high < 60.0, "{half:?}");
        assert_eq!(bootstrap(&rows)[0], half);
        assert_eq!(bootstrap::<1>(&[])[0].mean, 0.0);
    }
}
