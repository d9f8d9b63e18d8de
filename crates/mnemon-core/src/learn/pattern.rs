//! Which sequences of tools recur: closed sequential patterns with gaps.
//!
//! The algorithm is that of BIDE. A prefix is grown by one tool at a time; for each sequence only
//! the place right after its first occurrence is remembered. A pattern is *closed* if no longer one
//! is found in just as many sequences: no tool can be put behind it (all sequences have it there),
//! and none before or between (all sequences have it in the same gap). A prefix to which a tool
//! could be added in a gap of its *first* occurrences leads to nothing closed and is left alone.
//! Work is counted in symbols that were looked at and ends at [`limits::PATTERN_WORK`].

use std::collections::HashMap;

use super::statistics::binomial_tail;
use super::{Ended, Outcome, Run};
use crate::limits;

/// Arrangements of a run's tools that are tried to see what chance alone would do.
const SHUFFLES: u64 = 200;

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
#[must_use]
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
#[must_use]
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

/// Every closed pattern that at least `least` of the sequences have.
#[must_use]
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
    let coded: Vec<Vec<usize>> = coded.collect();
    let mut search = Search {
        alphabet: names.len(),
        sequences: &coded,
        least: least.max(1),
        work: 0,
        looked_at: 0,
        found: Vec::new(),
    };
    let whole: Vec<Place> = (0..coded.len()).map(|number| (number, 0)).collect();
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
    sequences: &'a [Vec<usize>],
    alphabet: usize,
    least: usize,
    work: usize,
    looked_at: usize,
    found: Vec<(Vec<usize>, usize)>,
}

impl<'a> Search<'a> {
    fn sequence(sequences: &'a [Vec<usize>], number: usize) -> &'a [usize] {
        sequences.get(number).map_or(&[], Vec::as_slice)
    }

    fn grow(&mut self, prefix: &mut Vec<usize>, places: &[Place]) {
        if self.work >= limits::PATTERN_WORK {
            return;
        }
        self.looked_at += 1;
        let sequences = self.sequences;
        let rests = places.iter().map(|(number, from)| {
            Self::sequence(sequences, *number)
                .get(*from..)
                .unwrap_or_default()
        });
        let rests: Vec<&[usize]> = rests.collect();
        self.work += rests.iter().map(|rest| rest.len() + 1).sum::<usize>();
        let counts = sequences_with(&rests, self.alphabet);
        if !prefix.is_empty() {
            if self.has_common(prefix, places, Gaps::Early) {
                return;
            }
            let goes_on = counts.contains(&places.len());
            if !goes_on && !self.has_common(prefix, places, Gaps::Any) {
                self.found.push((prefix.clone(), places.len()));
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
        let places: Vec<&[usize]> = places
            .iter()
            .map(|(number, end)| match gaps {
                Gaps::Early => Self::sequence(sequences, *number)
                    .get(..*end)
                    .unwrap_or_default(),
                Gaps::Any => Self::sequence(sequences, *number),
            })
            .collect();
        self.work += places.iter().map(|place| 2 * place.len()).sum::<usize>();
        let bounds: Vec<Vec<(usize, usize)>> = places
            .iter()
            .map(|sequence| gaps_between(sequence, prefix))
            .collect();
        (0..prefix.len()).any(|gap| {
            let within = places.iter().zip(&bounds).map(|(sequence, bounds)| {
                let (from, to) = bounds.get(gap).copied().unwrap_or_default();
                sequence.get(from..to).unwrap_or_default()
            });
            let within: Vec<&[usize]> = within.collect();
            sequences_with(&within, self.alphabet).contains(&places.len())
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

/// How many of the sequences have each tool.
fn sequences_with(sequences: &[&[usize]], alphabet: usize) -> Vec<usize> {
    // For each tool, how many have it, and the last one that was counted.
    let mut counts: Vec<(usize, usize)> = vec![(0, usize::MAX); alphabet];
    for (number, sequence) in sequences.iter().enumerate() {
        for tool in *sequence {
            if let Some((count, last)) = counts.get_mut(*tool)
                && *last != number
            {
                *count += 1;
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
#[must_use]
pub fn chance(sequences: &[Vec<&str>], tools: &[String]) -> f64 {
    let mut hits = 0;
    let mut expected = 0.0;
    let mut random = Random(0x6d6e_656d_6f6e);
    for sequence in sequences {
        hits += usize::from(contains(sequence, tools));
        // A sequence that lacks one of the tools has the pattern in no order.
        if !tools.iter().all(|tool| sequence.contains(&tool.as_str())) {
            continue;
        }
        let mut order = sequence.clone();
        let mut found = 0;
        for _ in 0..SHUFFLES {
            random.shuffle(&mut order);
            found += u64::from(contains(&order, tools));
        }
        expected += (found + 1) as f64 / (SHUFFLES + 1) as f64;
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
