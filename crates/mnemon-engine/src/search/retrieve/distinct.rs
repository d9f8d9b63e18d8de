//! Near-copies of a better hit come last.

use mnemon_core::Record;
use mnemon_core::index::hash;

use super::{Enough, Hit};

/// Two texts that share this much of their words say the same.
const SAME: f32 = 0.9;
/// Words by which texts are compared at the most.
const COMPARED_WORDS: usize = 500;

/// Hits, the best first. One that repeats a better one goes to the end; nothing is lost if there
/// is room.
pub(super) struct Distinct {
    limit: usize,
    enough: Option<Enough>,
    /// With the words that each has.
    kept: Vec<(Vec<u32>, Hit)>,
    copies: Vec<Hit>,
}

impl Distinct {
    pub(super) fn new(limit: usize, enough: Option<Enough>) -> Self {
        Self {
            limit,
            enough,
            kept: Vec::new(),
            copies: Vec::new(),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.kept.len() >= self.limit
    }

    pub(super) fn has_enough(&self) -> bool {
        self.enough.is_some_and(|enough| {
            let fit = self.kept.iter().filter(|(_, hit)| (enough.of)(&hit.record));
            fit.count() >= enough.count
        })
    }

    pub(super) fn push(&mut self, hit: Hit) {
        if self.is_full() {
            return;
        }
        let words = plain_words(&hit.record);
        if self.kept.iter().any(|(others, _)| is_same(&words, others)) {
            self.copies.push(hit);
        } else {
            self.kept.push((words, hit));
        }
    }

    pub(super) fn into_hits(self) -> Vec<Hit> {
        let kept = self.kept.into_iter().map(|(_, hit)| hit);
        kept.chain(self.copies).take(self.limit).collect()
    }
}

/// The words as they stand there, by their numbers, each once and in order: enough to tell a copy,
/// and cheaper than an analysis.
fn plain_words(record: &Record) -> Vec<u32> {
    let words = record.content.split(|c: char| !c.is_alphanumeric());
    let words = words.filter(|word| !word.is_empty()).take(COMPARED_WORDS);
    let mut words: Vec<u32> = words.map(|word| hash(&word.to_lowercase())).collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// Whether both have at least [`SAME`] of all their words. It stops at the first word after which
/// too few are left: unrelated texts are told apart by a twentieth of their words.
fn is_same(one: &[u32], other: &[u32]) -> bool {
    let mut most = one.len().min(other.len());
    if !is_enough(most, one, other) {
        return false;
    }
    let (mut ours, mut theirs) = (one, other);
    let mut shared = 0;
    while let ([our, our_rest @ ..], [their, their_rest @ ..]) = (ours, theirs) {
        match our.cmp(their) {
            std::cmp::Ordering::Equal => {
                shared += 1;
                (ours, theirs) = (our_rest, their_rest);
                continue;
            }
            std::cmp::Ordering::Less => ours = our_rest,
            std::cmp::Ordering::Greater => theirs = their_rest,
        }
        let possible = shared + ours.len().min(theirs.len());
        if possible < most {
            most = possible;
            if !is_enough(most, one, other) {
                return false;
            }
        }
    }
    true
}

fn is_enough(shared: usize, one: &[u32], other: &[u32]) -> bool {
    let all = one.len() + other.len() - shared;
    all == 0 || shared as f32 / all as f32 >= SAME
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Every word is counted.
    fn overlaps(one: &[u32], other: &[u32]) -> bool {
        let shared = one.iter().filter(|word| other.contains(word)).count();
        is_enough(shared, one, other)
    }

    #[test]
    fn texts_are_told_apart_as_if_all_words_were_counted() {
        let mut state = 3_u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        let mut same = 0;
        for _ in 0..20_000 {
            let size = random(60);
            let one: BTreeSet<u32> = (0..size).map(|_| random(70) as u32).collect();
            let mut other = one.clone();
            for _ in 0..random(8) {
                match random(2) {
                    0 => other.insert(random(70) as u32),
                    _ => other.remove(&(random(70) as u32)),
                };
            }
            let one: Vec<u32> = one.into_iter().collect();
            let other: Vec<u32> = other.into_iter().collect();
            assert_eq!(
                is_same(&one, &other),
                overlaps(&one, &other),
                "{one:?} {other:?}"
            );
            same += usize::from(is_same(&one, &other));
        }
        assert!((1000..19_000).contains(&same), "{same}");
    }
}
