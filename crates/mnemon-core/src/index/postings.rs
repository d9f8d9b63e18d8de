//! Which documents a term occurs in, and how often.

use std::collections::HashMap;

use super::Terms;

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
