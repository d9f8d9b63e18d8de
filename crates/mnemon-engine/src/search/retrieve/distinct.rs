//! Near-copies of a better hit come last.

use mnemon_core::Record;
use mnemon_core::index::hash;

use super::{Enough, Hit};

/// A text that has this share of another's words contains it. Of two texts of the same length, one
/// word in twenty may then be another, which is a Jaccard index of 0.9.
const CONTAINED: f32 = 0.95;
/// The length of a text, as a share of the one that contains it, below which the longer one says
/// more.
const COMPARABLE: f32 = 0.6;
/// Texts of fewer words are copies only if all their words are the same.
const FEW_WORDS: usize = 4;
/// Words by which texts are compared at the most.
const COMPARED_WORDS: usize = 500;

/// Hits, the best first. One that repeats a better one goes to the end; nothing is lost if there
/// is room.
pub(super) struct Distinct {
    limit: usize,
    enough: Option<Enough>,
    /// Whether copies are told from other hits.
    compares: bool,
    kept: Vec<Group>,
    copies: Vec<Hit>,
}

/// A hit whose copies were found, too.
struct Group {
    hit: Hit,
    /// Its words.
    words: Vec<u32>,
    /// The words of the shortest copy. Two copies with other words added are recognised by it.
    shortest: Vec<u32>,
}

impl Group {
    fn has(&self, words: &[u32]) -> bool {
        is_same(words, &self.words) || is_same(words, &self.shortest)
    }

    fn take(&mut self, shortest: Vec<u32>) {
        if shortest.len() < self.shortest.len() {
            self.shortest = shortest;
        }
    }
}

impl Distinct {
    pub(super) fn new(limit: usize, enough: Option<Enough>, compares: bool) -> Self {
        Self {
            limit,
            enough,
            compares,
            kept: Vec::new(),
            copies: Vec::new(),
        }
    }

    /// Where copies were met, hits that come later may show that some of the hits are copies, too.
    pub(super) fn is_full(&self) -> bool {
        self.kept.len() >= self.limit + self.copies.len().min(self.limit)
    }

    pub(super) fn has_enough(&self) -> bool {
        self.enough.is_some_and(|enough| {
            let fit = self
                .kept
                .iter()
                .filter(|kept| (enough.of)(&kept.hit.record));
            fit.count() >= enough.count
        })
    }

    pub(super) fn push(&mut self, hit: Hit) {
        let words = plain_words(&hit.record);
        let mut kept = self.kept.iter();
        let best = kept.position(|group| self.compares && group.has(&words));
        let Some(best) = best else {
            let shortest = words.clone();
            self.kept.push(Group {
                hit,
                words,
                shortest,
            });
            return;
        };
        let later = self.kept.extract_if(best + 1.., |group| group.has(&words));
        let later: Vec<Group> = later.collect();
        if let Some(best) = self.kept.get_mut(best) {
            best.take(words);
            for group in later {
                best.take(group.shortest);
                self.copies.push(group.hit);
            }
        }
        self.copies.push(hit);
    }

    /// How often a record was found on average, copies included; rounded, so that a few copies
    /// among many records count as none.
    pub(super) fn repetition(&self) -> usize {
        let kept = self.kept.len().max(1);
        (kept + self.copies.len() + kept / 2) / kept
    }

    /// The hits, and the copies among what was pushed.
    pub(super) fn into_parts(self) -> (Vec<Hit>, Vec<Hit>) {
        let kept = self.kept.into_iter().map(|group| group.hit);
        (kept.collect(), self.copies)
    }
}

/// The words of a text as they stand there, by their numbers, each once and in order: enough to
/// recognise a copy, and cheaper than an analysis.
fn plain_words(record: &Record) -> Vec<u32> {
    let words = record.content.split(|c: char| !c.is_alphanumeric());
    let words = words.filter(|word| !word.is_empty()).take(COMPARED_WORDS);
    let mut words: Vec<u32> = words.map(|word| hash(&word.to_lowercase())).collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// Whether one of the two texts contains the other and says little more.
fn is_same(one: &[u32], other: &[u32]) -> bool {
    let (short, long) = match one.len() <= other.len() {
        true => (one, other),
        false => (other, one),
    };
    let allowed = missing_words(short.len(), long.len());
    allowed.is_some_and(|allowed| lacks_at_most(allowed, short, long))
}

/// How many words of the shorter text the longer one may lack; `None` if their lengths alone tell
/// them apart.
fn missing_words(short: usize, long: usize) -> Option<usize> {
    if short < FEW_WORDS {
        return (short == long).then_some(0);
    }
    let needed = (short as f32 * CONTAINED).ceil() as usize;
    (short as f32 >= long as f32 * COMPARABLE).then_some(short - needed)
}

/// Whether at most so many of these words are not among the others; both are in order. It stops at
/// the first word too many: unrelated texts are told apart by a few of their words.
fn lacks_at_most(allowed: usize, words: &[u32], others: &[u32]) -> bool {
    let mut others = others.iter().peekable();
    let mut missing = 0;
    for word in words {
        while others.next_if(|other| *other < word).is_some() {}
        if others.next_if_eq(&word).is_none() {
            missing += 1;
            if missing > allowed {
                return false;
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use mnemon_core::{Ctx, Tenant, Time};

    use super::*;

    fn repeats(one: &str, other: &str) -> bool {
        let words = |text: &str| {
            let ctx = Ctx::new(Tenant::default(), "test", Time::EPOCH);
            plain_words(&Record::note("a".parse().unwrap(), &ctx, text))
        };
        let (one, other) = (words(one), words(other));
        let repeats = is_same(&one, &other);
        assert_eq!(is_same(&other, &one), repeats);
        repeats
    }

    #[test]
    fn a_text_with_a_few_words_added_is_a_copy() {
        let text = "Ann moved to a small flat near the river in spring";
        for copy in [
            "ann moved to a small flat near the river, in spring!",
            "By the way: Ann moved to a small flat near the river in spring",
            "Ann moved to a small flat near the river in early spring, she said",
        ] {
            assert!(repeats(text, copy), "{copy}");
        }
        for other in [
            "Ann moved to a small flat near the river in autumn",
            "Ann moved",
            "Ann moved to a small flat near the river in spring, and since then she has been \
             looking for work as a teacher of music",
            "",
        ] {
            assert!(!repeats(text, other), "{other}");
        }
        assert!(repeats("I like tea", "I like tea!"));
        assert!(!repeats("I like tea", "I like green tea"));
        assert!(repeats("", "…"));
    }

    /// Every word is counted.
    fn counted(one: &[u32], other: &[u32]) -> bool {
        let shared = one.iter().filter(|word| other.contains(word)).count() as f32;
        let (one, other) = (one.len() as f32, other.len() as f32);
        let (short, long) = (one.min(other), one.max(other));
        match short < FEW_WORDS as f32 {
            true => shared == long,
            false => short / long >= COMPARABLE && shared / short >= CONTAINED,
        }
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
            let repeats = is_same(&one, &other);
            assert_eq!(repeats, counted(&one, &other), "{one:?} {other:?}");
            same += usize::from(repeats);
        }
        assert!((1000..19_000).contains(&same), "{same}");
    }
}
