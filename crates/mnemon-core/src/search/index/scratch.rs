//! A number for each document while a query is answered.

use std::sync::{Mutex, PoisonError};

/// All zeros between queries. Whoever borrows one leaves it so.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// What the words of each document are worth.
    pub(super) words: Vec<f32>,
    /// How often the word at hand occurs in each document and its neighbours.
    pub(super) occurs: Vec<f32>,
    /// How much of the query's information each document has.
    pub(super) covered: Vec<f32>,
    /// How near each document is.
    pub(super) near: Vec<f32>,
    /// Documents with how often a word occurs in them, word by word. Empty between queries.
    pub(super) occurrences: Vec<(u32, f32)>,
}

/// Those that are not in use: to ask the system for so many zeros costs as much as a search.
#[derive(Debug, Default)]
pub(super) struct Scratches(Mutex<Vec<Scratch>>);

impl Clone for Scratches {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Scratches {
    pub(super) fn borrow(&self, docs: usize) -> Scratch {
        let spare = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut scratch = spare.unwrap_or_default();
        scratch.words.resize(docs, 0.0);
        scratch.occurs.resize(docs, 0.0);
        scratch.covered.resize(docs, 0.0);
        scratch.near.resize(docs, 0.0);
        scratch
    }

    pub(super) fn bytes(&self) -> usize {
        let spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_one = |scratch: &Scratch| {
            let Scratch {
                words,
                occurs,
                covered,
                near,
                occurrences,
            } = scratch;
            let lists = [words, occurs, covered, near];
            let lists = lists.map(super::bytes_of_list).iter().sum::<usize>();
            lists + super::bytes_of_list(occurrences)
        };
        spare.iter().map(of_one).sum()
    }

    pub(super) fn give_back(&self, scratch: Scratch) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(scratch);
    }
}
