//! Which documents a term occurs in, and how often.

use std::collections::HashMap;

use super::Terms;
use super::docs::each_bit;

/// The documents of one term, in order, with occurrences in quarters.
#[derive(Debug, Clone, Default)]
pub(super) struct Posting {
    docs: Vec<u32>,
    counts: Vec<u8>,
}

impl Posting {
    pub(super) fn len(&self) -> usize {
        self.docs.len()
    }

    /// Visits those of its documents whose bit is set, without walking past all the others.
    pub(super) fn among(&self, mask: &[u64], visit: &mut impl FnMut(u32, f32)) {
        let mut rest = (self.docs.as_slice(), self.counts.as_slice());
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

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, f32)> {
        let counts = self.counts.iter().map(|count| f32::from(*count) * 0.25);
        self.docs.iter().copied().zip(counts)
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Postings {
    of_term: HashMap<u32, Posting>,
    pairs: usize,
}

impl Postings {
    pub(super) fn push(&mut self, doc: u32, terms: &Terms) {
        for (term, count) in &terms.counts {
            let posting = self.of_term.entry(*term).or_default();
            posting.docs.push(doc);
            posting.counts.push(*count);
        }
        self.pairs += terms.counts.len();
    }

    pub(super) fn of(&self, term: u32) -> Option<&Posting> {
        self.of_term.get(&term)
    }

    pub(super) fn bytes(&self) -> usize {
        // A vector grows by doubling: a quarter of it is air, on average.
        self.pairs * 5 * 4 / 3 + self.of_term.len() * (size_of::<Posting>() + 12)
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
            let mut posting = Posting::default();
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
            let walked: Vec<_> = posting.iter().filter(|(doc, _)| in_mask(doc)).collect();
            let mut found = Vec::new();
            posting.among(&mask, &mut |doc, tf| found.push((doc, tf)));
            assert_eq!(found, walked);
        }
    }
}
