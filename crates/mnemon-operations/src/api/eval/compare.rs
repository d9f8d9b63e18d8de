//! The difference of two runs over the same questions.

use std::collections::HashMap;
use std::path::Path;

use mnemon_core::rank::Recipe;
use serde::{Deserialize, Serialize};

use super::dataset::{malformed, read_json};
use super::measure::{Estimates, Measured, Values, categories, distinct};
use crate::Error;

/// A run that was written with `--out`.
#[derive(Debug, Deserialize)]
pub struct EarlierRun {
    pub questions: Vec<Measured>,
}

/// This run minus an earlier one, question by question.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    pub rows: Vec<Difference>,
    /// Questions that only one of the runs has.
    pub unpaired: usize,
}

/// The differences of a recipe in a category, in points.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    pub recipe: Recipe,
    /// The recipe of the earlier run.
    pub earlier: Recipe,
    pub category: String,
    pub questions: usize,
    #[serde(flatten)]
    pub measures: Estimates,
    /// Questions whose NDCG@10 rose or fell.
    pub better: usize,
    pub worse: usize,
}

/// Reads the file of an earlier run.
pub fn read(path: &Path) -> Result<EarlierRun, Error> {
    let run: EarlierRun = read_json(path, "the JSON of a run, as --out writes it")?;
    match run.questions.is_empty() {
        true => Err(malformed(path, "has no questions")),
        false => Ok(run),
    }
}

/// Pairs the questions by id and recipe. Where each run has a single recipe, those are compared,
/// whichever they are. `None` if no question is in both.
pub(super) fn compare(now: &[Measured], earlier: &EarlierRun) -> Option<Comparison> {
    let recipes = distinct(now.iter().map(|one| one.recipe));
    let before = distinct(earlier.questions.iter().map(|one| one.recipe));
    let partner = |recipe: Recipe| match (recipes.as_slice(), before.as_slice()) {
        ([_], [only]) => *only,
        _ => recipe,
    };
    let known = earlier.questions.iter();
    let mut known: HashMap<(&str, &str), &Measured> = known
        .map(|one| ((one.recipe.as_str(), one.id.as_str()), one))
        .collect();
    let mut pairs = Vec::new();
    let mut unpaired = 0;
    for one in now {
        match known.remove(&(partner(one.recipe).as_str(), one.id.as_str())) {
            Some(other) => pairs.push((one, other)),
            None => unpaired += 1,
        }
    }
    unpaired += known.len();
    if pairs.is_empty() {
        return None;
    }
    let mut rows = Vec::new();
    for recipe in recipes.iter().copied() {
        for category in categories(now) {
            let some = pairs.iter().filter(|(one, _)| one.recipe == recipe);
            let some: Vec<_> = some.filter(|(one, _)| one.is_in(&category)).collect();
            if !some.is_empty() {
                rows.push(difference(recipe, partner(recipe), category, &some));
            }
        }
    }
    Some(Comparison { rows, unpaired })
}

fn difference(
    recipe: Recipe,
    earlier: Recipe,
    category: String,
    pairs: &[&(&Measured, &Measured)],
) -> Difference {
    let values = pairs.iter().map(|(now, before)| {
        let mut values = now.values();
        for (value, before) in values.iter_mut().zip(before.values()) {
            *value -= before;
        }
        values
    });
    let values: Vec<Values> = values.collect();
    let right = pairs
        .iter()
        .filter_map(|(now, before)| Some([now.is_right()? - before.is_right()?]));
    let right: Vec<[f64; 1]> = right.collect();
    let rose = |(now, before): &&&(&Measured, &Measured)| now.ndcg_10 > before.ndcg_10;
    let fell = |(now, before): &&&(&Measured, &Measured)| now.ndcg_10 < before.ndcg_10;
    Difference {
        recipe,
        earlier,
        category,
        questions: pairs.len(),
        measures: Estimates::of(&values, &right),
        better: pairs.iter().filter(rose).count(),
        worse: pairs.iter().filter(fell).count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(recipe: Recipe, id: usize, recall: f64) -> Measured {
        Measured {
            recipe,
            id: id.to_string(),
            category: Some(if id.is_multiple_of(2) { "even" } else { "odd" }.to_owned()),
            recall_5: recall,
            recall_10: recall,
            recall_20: recall,
            ndcg_10: recall,
            rank: None,
            right: None,
            answer: None,
        }
    }

    fn run(recipe: Recipe, recall: impl Fn(usize) -> f64) -> Vec<Measured> {
        (0..100).map(|n| measured(recipe, n, recall(n))).collect()
    }

    #[test]
    fn a_constant_gain_has_no_spread_though_questions_differ() {
        let noisy = |n: usize| (n % 10) as f64 / 20.0;
        let earlier = EarlierRun {
            questions: run(Recipe::Hybrid, noisy),
        };
        let now = run(Recipe::Hybrid, |n| noisy(n) + 0.1);
        let compared = compare(&now, &earlier).unwrap();
        let names: Vec<&str> = compared.rows.iter().map(|r| r.category.as_str()).collect();
        assert_eq!(names, ["all", "even", "odd"]);
        let all = &compared.rows[0];
        let gain = all.measures.recall_10;
        for value in [gain.mean, gain.low, gain.high] {
            assert!((value - 10.0).abs() < 1e-9, "{gain:?}");
        }
        assert_eq!((all.better, all.worse, compared.unpaired), (100, 0, 0));
        assert_eq!(all.measures.right, None);
    }

    #[test]
    fn recipes_are_paired_by_name_unless_each_run_has_one() {
        let words = EarlierRun {
            questions: run(Recipe::Words, |_| 0.5),
        };
        let now = run(Recipe::Hybrid, |_| 0.5);
        let compared = compare(&now, &words).unwrap();
        assert_eq!(compared.rows[0].earlier, Recipe::Words);
        let mut both = now;
        both.extend(run(Recipe::Words, |_| 1.0));
        let compared = compare(&both, &words).unwrap();
        assert_eq!(compared.unpaired, 100);
        assert!(compared.rows.iter().all(|row| row.recipe == Recipe::Words));
    }

    #[test]
    fn runs_over_other_questions_are_not_compared() {
        let mut other = run(Recipe::Hybrid, |_| 1.0);
        for one in &mut other {
            one.id.push('x');
        }
        let other = EarlierRun { questions: other };
        assert_eq!(compare(&run(Recipe::Hybrid, |_| 1.0), &other), None);
    }
}
