//! Which sequences of tools recur: closed sequential patterns with gaps.
//!
//! The algorithm is that of BIDE. A prefix is grown by one tool at a time; for each sequence only
//! the place right after its first occurrence is remembered. A pattern is *closed* if no longer one
//! is found in just as many sequences: no tool can be put behind it (all sequences have it there),
//! and none before or between (all sequences have it in the same gap). A prefix to which a tool
//! could be added in a gap of its *first* occurrences leads to nothing closed and is left alone.
//! Sequences that are the same are looked at once, and weigh as many as they are: agents that do
//! what they did before cost nothing more.
//! Work is counted in symbols that were looked at and ends at [`limits::PATTERN_WORK`].

use std::collections::{BTreeMap, HashMap};

use super::statistics::binomial_tail;
use super::{Ended, Outcome, Run};
use crate::model::limits;

/// Arrangements of a run's tools that are tried to see what chance alone would do. Runs of the same
/// tools share them, and the fewer sorts of runs there are the more are tried of each.
const SHUFFLES: std::ops::RangeInclusive<usize> = 200..=1000;
/// Arrangements that are tried for one pattern, as long as there are no more sorts than runs.
const ALL_SHUFFLES: usize = 200 * limits::LEARN_RUNS;

/// Tools in an order that recurs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    pub tools: Vec<String>,
    /// Sequences that have it.
    pub support: usize,
}

/// What a search for patterns found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mined {
    pub patterns: Vec<Pattern>,
    /// Patterns that were looked at: so often chance had its chance.
    pub looked_at: usize,
    /// Whether there was more to look at than there may be.
    pub cut: bool,
}

/// Whether the sequence has these tools in this order, with anything in between.
pub fn contains(sequence: &[&str], tools: &[String]) -> bool {
    begun(sequence, tools) == tools.len()
}

/// How many of the tools, from the first on, the sequence has in order.
fn begun(sequence: &[&str], tools: &[String]) -> usize {
    let mut wanted = tools.iter().peekable();
    let mut found = 0;
    for tool in sequence {
        if wanted.next_if(|wanted| wanted.as_str() == *tool).is_some() {
            found += 1;
        }
    }
    found
}

/// Whether a run that ended so did follow the procedure: it went all the way, or it failed at the
/// very step of it that was next.
pub fn follows(run: &Run, outcome: Outcome, tools: &[String]) -> bool {
    if contains(&run.done(), tools) {
        return true;
    }
    if outcome != Outcome::Failure {
        return false;
    }
    let last = run.acts.iter().rev().find(|act| act.tool.is_some());
    let Some(last) = last.filter(|act| act.ended == Ended::Failed) else {
        return false;
    };
    let next = tools.get(begun(&run.done(), tools));
    next.map(String::as_str) == last.tool.as_deref()
}

/// Whether the run failed because one of these tools did: it was the last that was called.
pub fn died_at(run: &Run, outcome: Outcome, tools: &[String]) -> bool {
    let last = run.acts.iter().rev().find(|act| act.tool.is_some());
    let failed = last.filter(|act| outcome == Outcome::Failure && act.ended == Ended::Failed);
    let tool = failed.and_then(|act| act.tool.as_ref());
    tool.is_some_and(|tool| tools.contains(tool))
}

/// Every closed pattern that at least `least` of the sequences have.
pub fn patterns(sequences: &[Vec<&str>], least: usize) -> Mined {
    let mut names: Vec<&str> = Vec::new();
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let coded = sequences.iter().map(|sequence| {
        let code = sequence.iter().map(|tool| {
            *numbers.entry(tool).or_insert_with(|| {
                names.push(tool);
                names.len() - 1
            })
        });
        code.collect::<Vec<usize>>()
    });
    let mut alike: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
    for code in coded {
        *alike.entry(code).or_default() += 1;
    }
    let distinct: Vec<(Vec<usize>, usize)> = alike.into_iter().collect();
    let mut search = Search {
        alphabet: names.len(),
        sequences: &distinct,
        least: least.max(1),
        work: 0,
        looked_at: 0,
        found: Vec::new(),
    };
    let whole: Vec<Place> = (0..distinct.len()).map(|number| (number, 0)).collect();
    search.grow(&mut Vec::new(), &whole);
    let named = |code: &[usize]| -> Vec<String> {
        let tools = code.iter().filter_map(|tool| names.get(*tool));
        tools.map(|tool| (*tool).to_owned()).collect()
    };
    let patterns = search.found.iter().map(|(code, support)| Pattern {
        tools: named(code),
        support: *support,
    });
    Mined {
        patterns: patterns.collect(),
        looked_at: search.looked_at,
        cut: search.work >= limits::PATTERN_WORK,
    }
}

/// A sequence, and where in it to go on.
type Place = (usize, usize);

struct Search<'a> {
    /// The sequences that differ, each with how many are like it.
    sequences: &'a [(Vec<usize>, usize)],
    alphabet: usize,
    least: usize,
    work: usize,
    looked_at: usize,
    found: Vec<(Vec<usize>, usize)>,
}

impl<'a> Search<'a> {
    fn sequence(sequences: &'a [(Vec<usize>, usize)], number: usize) -> &'a [usize] {
        sequences.get(number).map_or(&[], |(tools, _)| tools)
    }

    fn weight(&self, number: usize) -> usize {
        self.sequences.get(number).map_or(0, |(_, alike)| *alike)
    }

    /// How many sequences these places are in.
    fn weight_of(&self, places: &[Place]) -> usize {
        places.iter().map(|(number, _)| self.weight(*number)).sum()
    }

    fn grow(&mut self, prefix: &mut Vec<usize>, places: &[Place]) {
        if self.work >= limits::PATTERN_WORK {
            return;
        }
        self.looked_at += 1;
        let sequences = self.sequences;
        let rests = places.iter().map(|(number, from)| {
            let rest = Self::sequence(sequences, *number).get(*from..);
            (rest.unwrap_or_default(), self.weight(*number))
        });
        let rests: Vec<Weighed<'_>> = rests.collect();
        self.work += rests.iter().map(|(rest, _)| rest.len() + 1).sum::<usize>();
        let all = self.weight_of(places);
        let counts = sequences_with(&rests, self.alphabet);
        if !prefix.is_empty() {
            if self.has_common(prefix, places, Gaps::Early) {
                return;
            }
            let goes_on = counts.contains(&all);
            if !goes_on && !self.has_common(prefix, places, Gaps::Any) {
                self.found.push((prefix.clone(), all));
            }
        }
        if prefix.len() == limits::PATTERN_STEPS {
            return;
        }
        let mut next: Vec<(usize, usize)> = counts.into_iter().enumerate().collect();
        next.retain(|(_, count)| *count >= self.least);
        // What most have comes first, should the work come to its end.
        next.sort_by_key(|(tool, count)| (usize::MAX - count, *tool));
        for (tool, _) in next {
            let after = places.iter().filter_map(|(number, from)| {
                let rest = Self::sequence(sequences, *number).get(*from..)?;
                let at = rest.iter().position(|found| *found == tool)?;
                Some((*number, from + at + 1))
            });
            let after: Vec<Place> = after.collect();
            prefix.push(tool);
            self.grow(prefix, &after);
            prefix.pop();
        }
    }

    /// Whether there is a gap in which every sequence has the same tool.
    fn has_common(&mut self, prefix: &[usize], places: &[Place], gaps: Gaps) -> bool {
        let sequences = self.sequences;
        let all = self.weight_of(places);
        let places = places.iter().map(|(number, end)| {
            let whole = Self::sequence(sequences, *number);
            let looked_at = match gaps {
                Gaps::Early => whole.get(..*end).unwrap_or_default(),
                Gaps::Any => whole,
            };
            (looked_at, self.weight(*number))
        });
        let places: Vec<Weighed<'_>> = places.collect();
        self.work += places
            .iter()
            .map(|(place, _)| 2 * place.len())
            .sum::<usize>();
        let bounds: Vec<Vec<(usize, usize)>> = places
            .iter()
            .map(|(sequence, _)| gaps_between(sequence, prefix))
            .collect();
        (0..prefix.len()).any(|gap| {
            let within = places
                .iter()
                .zip(&bounds)
                .map(|((sequence, alike), bounds)| {
                    let (from, to) = bounds.get(gap).copied().unwrap_or_default();
                    (sequence.get(from..to).unwrap_or_default(), *alike)
                });
            let within: Vec<Weighed<'_>> = within.collect();
            sequences_with(&within, self.alphabet).contains(&all)
        })
    }
}

#[derive(Clone, Copy)]
enum Gaps {
    /// Those of the first occurrence alone.
    Early,
    /// All that an occurrence could have.
    Any,
}

/// A part of a sequence, and how many sequences are like it.
type Weighed<'a> = (&'a [usize], usize);

/// How many of the sequences have each tool.
fn sequences_with(sequences: &[Weighed<'_>], alphabet: usize) -> Vec<usize> {
    // For each tool, how many have it, and the last one that was counted.
    let mut counts: Vec<(usize, usize)> = vec![(0, usize::MAX); alphabet];
    for (number, (sequence, alike)) in sequences.iter().enumerate() {
        for tool in *sequence {
            if let Some((count, last)) = counts.get_mut(*tool)
                && *last != number
            {
                *count += alike;
                *last = number;
            }
        }
    }
    counts.into_iter().map(|(count, _)| count).collect()
}

/// For each tool of the prefix the gap before it: from right after the first occurrence of what
/// comes before, to the last place where the tool itself can stand.
fn gaps_between(sequence: &[usize], prefix: &[usize]) -> Vec<(usize, usize)> {
    let mut starts = Vec::with_capacity(prefix.len());
    let mut from = 0;
    for tool in prefix {
        starts.push(from);
        let rest = sequence.get(from..).unwrap_or_default();
        from += rest
            .iter()
            .position(|found| found == tool)
            .map_or(0, |at| at + 1);
    }
    let mut to = sequence.len();
    let mut gaps: Vec<(usize, usize)> = Vec::with_capacity(prefix.len());
    for (tool, start) in prefix.iter().zip(starts).rev() {
        let head = sequence.get(..to).unwrap_or_default();
        to = head.iter().rposition(|found| found == tool).unwrap_or(0);
        gaps.push((start, to.max(start)));
    }
    gaps.reverse();
    gaps
}

/// How likely it is, as a logarithm, that so many of these sequences have the tools in this order
/// by chance: if each held the same tools in any order. Chance is tried out with a fixed seed, so
/// the answer is always the same.
pub fn chance(sequences: &[Vec<&str>], tools: &[String]) -> f64 {
    let hits = sequences
        .iter()
        .filter(|sequence| contains(sequence, tools))
        .count();
    // In any order, all that counts is which tools there are.
    let mut alike: BTreeMap<Vec<&str>, usize> = BTreeMap::new();
    for sequence in sequences {
        // A sequence that lacks one of the tools has the pattern in no order.
        if tools.iter().all(|tool| sequence.contains(&tool.as_str())) {
            let mut held = sequence.clone();
            held.sort_unstable();
            *alike.entry(held).or_default() += 1;
        }
    }
    let mut random = Random(0x6d6e_656d_6f6e);
    let mut expected = 0.0;
    let shuffles = ALL_SHUFFLES / alike.len().max(1);
    let shuffles = shuffles.clamp(*SHUFFLES.start(), *SHUFFLES.end());
    for (mut order, count) in alike {
        let found = (0..shuffles)
            .filter(|_| {
                random.shuffle(&mut order);
                contains(&order, tools)
            })
            .count();
        expected += count as f64 * (found + 1) as f64 / (shuffles + 1) as f64;
    }
    let of = sequences.len();
    if of == 0 {
        return 0.0;
    }
    binomial_tail(hits, of, expected / of as f64)
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % sides.max(1) as u64) as usize
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last + 1);
            items.swap(last, other);
        }
    }
}
