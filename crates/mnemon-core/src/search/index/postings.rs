//! Which documents a term occurs in, and how often.

use std::collections::HashMap;
use std::io;

use super::docs::each_bit;
use super::saved::Numbers;
use super::{Terms, bytes_of_list, bytes_of_map};
use crate::search::column_file::{Reading, Writing, wrong};
use crate::search::push;

/// Documents in order, with occurrences in quarters.
#[derive(Debug, Clone, Default)]
struct List {
    docs: Vec<u32>,
    counts: Vec<u8>,
}

/// A part of a list.
type Part<'a> = (&'a [u32], &'a [u8]);

/// The documents of one term, in order: those that were loaded, then those that came since.
#[derive(Debug, Clone, Copy)]
pub(super) struct Posting<'a> {
    parts: [Part<'a>; 2],
}

impl<'a> Posting<'a> {
    pub(super) fn len(&self) -> usize {
        self.parts.iter().map(|(docs, _)| docs.len()).sum()
    }

    /// Visits those of its documents whose bit is set, without walking past all the others.
    pub(super) fn among(&self, mask: &[u64], visit: &mut impl FnMut(u32, f32)) {
        for part in self.parts {
            if !part.0.is_empty() {
                among(part, mask, visit);
            }
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, f32)> + use<'a> {
        self.pairs()
            .map(|(doc, count)| (doc, f32::from(count) * 0.25))
    }

    fn pairs(&self) -> impl Iterator<Item = (u32, u8)> + use<'a> {
        let parts = self.parts.into_iter();
        parts.flat_map(|(docs, counts)| docs.iter().copied().zip(counts.iter().copied()))
    }
}

fn among(part: Part<'_>, mask: &[u64], visit: &mut impl FnMut(u32, f32)) {
    let mut rest = part;
    each_bit(mask, &mut |doc| {
        let (docs, counts) = rest;
        // Strides that double until one goes too far: what is near is found near.
        let mut stride = 1;
        while docs.get(stride).is_some_and(|there| *there < doc) {
            stride *= 2;
        }
        let (from, to) = (stride / 2, (stride + 1).min(docs.len()));
        let within = docs.get(from..to).unwrap_or_default();
        let at = from + within.partition_point(|there| *there < doc);
        rest = (
            docs.get(at..).unwrap_or_default(),
            counts.get(at..).unwrap_or_default(),
        );
        if let ([there, ..], [count, ..]) = rest
            && *there == doc
        {
            visit(doc, f32::from(*count) * 0.25);
        }
    });
}

/// The postings of an index that was loaded, one behind the other: a list for each of a hundred
/// thousand terms would take longer to make than to read.
#[derive(Debug, Clone, Default)]
struct Loaded {
    /// In order.
    terms: Vec<u32>,
    /// Where each term's documents end.
    ends: Vec<u32>,
    all: List,
}

impl Loaded {
    fn of(&self, term: u32) -> Part<'_> {
        let Ok(at) = self.terms.binary_search(&term) else {
            return (&[], &[]);
        };
        let end_of = |at: usize| self.ends.get(at).map_or(0, |end| *end as usize);
        let range = at.checked_sub(1).map_or(0, end_of)..end_of(at);
        (
            self.all.docs.get(range.clone()).unwrap_or_default(),
            self.all.counts.get(range).unwrap_or_default(),
        )
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Postings {
    loaded: Loaded,
    /// What came since.
    of_term: HashMap<u32, List>,
}

impl Postings {
    pub(super) fn push(&mut self, doc: u32, terms: &Terms) {
        for (term, count) in &terms.counts {
            let list = self.of_term.entry(*term).or_default();
            push(&mut list.docs, doc);
            push(&mut list.counts, *count);
        }
    }

    pub(super) fn of(&self, term: u32) -> Option<Posting<'_>> {
        let newer = self.of_term.get(&term);
        let newer = newer.map_or((&[] as &[u32], &[] as &[u8]), |list| {
            (list.docs.as_slice(), list.counts.as_slice())
        });
        let posting = Posting {
            parts: [self.loaded.of(term), newer],
        };
        (posting.len() > 0).then_some(posting)
    }

    pub(super) fn bytes(&self) -> usize {
        let lists = self.of_term.values().chain([&self.loaded.all]);
        let of_list = |list: &List| bytes_of_list(&list.docs) + bytes_of_list(&list.counts);
        bytes_of_list(&self.loaded.terms)
            + bytes_of_list(&self.loaded.ends)
            + bytes_of_map(&self.of_term)
            + lists.map(of_list).sum::<usize>()
    }

    pub(super) fn save(&self, numbers: &Numbers, out: &mut Writing<'_>) -> io::Result<()> {
        let newer = self.of_term.keys().copied();
        let mut terms: Vec<u32> = self.loaded.terms.iter().copied().chain(newer).collect();
        terms.sort_unstable();
        terms.dedup();
        let mut ends = Vec::with_capacity(terms.len());
        let mut all = List::default();
        terms.retain(|term| {
            let before = all.docs.len();
            let pairs = self
                .of(*term)
                .into_iter()
                .flat_map(|posting| posting.pairs());
            for (doc, count) in pairs {
                if let Some(doc) = numbers.of(doc) {
                    all.docs.push(doc);
                    all.counts.push(count);
                }
            }
            let kept = all.docs.len() > before;
            if kept {
                ends.push(all.docs.len() as u32);
            }
            kept
        });
        if u32::try_from(all.docs.len()).is_err() {
            return Err(wrong("there are more words than can be saved"));
        }
        out.column(terms.len(), terms)?;
        out.column(ends.len(), ends)?;
        out.column(all.docs.len(), all.docs)?;
        out.column(all.counts.len(), all.counts)
    }

    pub(super) fn load(from: &mut Reading<'_>) -> io::Result<Self> {
        let terms: Vec<u32> = from.column()?;
        let ends = from.column_of(terms.len())?;
        let docs: Vec<u32> = from.column()?;
        let counts = from.column_of(docs.len())?;
        let all = List { docs, counts };
        let loaded = Loaded { terms, ends, all };
        Ok(Self {
            loaded,
            ..Self::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_up_and_walking_find_the_same() {
        let mut state = 7_u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..300 {
            let size = 1 + random(500) as u32;
            let (in_posting, in_mask) = (1 + random(8), 1 + random(40));
            let mut posting = List::default();
            let mut mask = vec![0_u64; size as usize / 64 + 1];
            for doc in 0..size {
                if random(in_posting) == 0 {
                    posting.docs.push(doc);
                    posting.counts.push(1 + random(9) as u8);
                }
                if random(in_mask) == 0 {
                    mask[doc as usize / 64] |= 1 << (doc % 64);
                }
            }
            let in_mask = |doc: &u32| mask[*doc as usize / 64] & (1 << (doc % 64)) != 0;
            // In one part, and in two.
            let cut = random(posting.docs.len() as u64 + 1) as usize;
            let (docs, counts) = (posting.docs.split_at(cut), posting.counts.split_at(cut));
            let posting = Posting {
                parts: [(docs.0, counts.0), (docs.1, counts.1)],
            };
            let walked: Vec<_> = posting.iter().filter(|(doc, _)| in_mask(doc)).collect();
            let mut found = Vec::new();
            posting.among(&mask, &mut |doc, tf| found.push((doc, tf)));
            assert_eq!(found, walked);
        }
    }
}
