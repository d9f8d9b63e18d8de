//! When a procedure is of use, and what users said about it.

use std::collections::{BTreeMap, BTreeSet};

use super::{Sightings, Told};
use crate::learn::Run;
use crate::model::Audience;

/// A word belongs to the occasion if so much of the runs have it …
const SHARED: f64 = 0.6;
/// … and if the others have it that much less.
const LACKED: f64 = 0.3;
/// Words that are told.
const WORDS: usize = 6;
/// Preferences that are told.
const PREFERENCES: usize = 5;
/// Others from which on they are compared with; fewer tell nothing.
const OTHERS: usize = 3;

/// Words that these runs' requests share and the others' lack. The most telling first.
pub(super) fn words(runs: &[&Run], others: &[&Run], audience: &Audience) -> Vec<String> {
    let mut seen: BTreeMap<&str, Sightings<'_>> = BTreeMap::new();
    for run in runs {
        let once: BTreeSet<&str> = run.words().iter().map(String::as_str).collect();
        for word in once {
            seen.entry(word).or_default().by(&run.audience);
        }
    }
    let part = |times: usize, of: usize| times as f64 / of.max(1) as f64;
    let mut telling: Vec<(f64, &str)> = Vec::new();
    for (word, seen) in seen {
        let share = part(seen.times, runs.len());
        let have = others
            .iter()
            .filter(|run| run.words().iter().any(|w| w == word));
        let elsewhere = part(have.count(), others.len());
        let compared = others.len() >= OTHERS;
        let differs = !compared || share - elsewhere >= LACKED;
        if share >= SHARED && differs && seen.may_be_told(audience) {
            telling.push((share - if compared { elsewhere } else { 0.0 }, word));
        }
    }
    telling.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(other.1)));
    let telling = telling.into_iter().take(WORDS);
    telling.map(|(_, word)| word.to_owned()).collect()
}

/// What was the case in every one of these runs.
pub(super) fn context(runs: &[&Run], audience: &Audience) -> Vec<(String, String)> {
    let mut seen: BTreeMap<(&str, &str), Sightings<'_>> = BTreeMap::new();
    for run in runs {
        let known = run.acts.iter().flat_map(|act| &act.context);
        let once: BTreeSet<(&str, &str)> = known.map(|(k, v)| (k.as_str(), v.as_str())).collect();
        for pair in once {
            seen.entry(pair).or_default().by(&run.audience);
        }
    }
    let all = seen
        .into_iter()
        .filter(|(_, seen)| seen.times == runs.len() && seen.may_be_told(audience));
    let all = all.map(|((name, value), _)| (name.to_owned(), value.to_owned()));
    all.take(WORDS).collect()
}

/// What users put right or asked to remember, what was said most often first.
pub(super) fn preferences(told: &[Told<'_>], audience: &Audience) -> Vec<String> {
    // By what it says, whatever the spelling: how often, where first, and in which words.
    let mut said: BTreeMap<String, (Sightings<'_>, usize, &str)> = BTreeMap::new();
    for (at, (run, _)) in told.iter().enumerate() {
        if *audience != Audience::Everyone && run.audience != *audience {
            continue;
        }
        let acts = run.acts.iter();
        let texts = acts
            .flat_map(|act| [&act.correction, &act.remember])
            .flatten();
        for text in texts {
            let words = text.split(|c: char| !c.is_alphanumeric());
            let words: Vec<String> = words
                .filter(|w| !w.is_empty())
                .map(str::to_lowercase)
                .collect();
            let entry = said.entry(words.join(" "));
            let (seen, ..) = entry.or_insert_with(|| (Sightings::default(), at, text.trim()));
            seen.by(&run.audience);
        }
    }
    let mut said: Vec<(Sightings<'_>, usize, &str)> = said.into_values().collect();
    said.retain(|(seen, ..)| seen.may_be_told(audience));
    said.sort_by_key(|(seen, at, _)| (usize::MAX - seen.times, *at));
    let said = said.into_iter().take(PREFERENCES);
    said.map(|(.., text)| text.to_owned()).collect()
}
