//! The k best of many.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Keeps the `k` best of what it is shown: greater score first, then smaller id. Memory is
/// bounded by `k`, and the order of showing does not matter.
#[derive(Clone, Debug)]
pub struct TopK<I> {
    k: usize,
    /// The worst of the kept on top.
    heap: BinaryHeap<Kept<I>>,
}

#[derive(Clone, Copy, Debug)]
struct Kept<I> {
    score: f32,
    id: I,
}

impl<I: Ord> Ord for Kept<I> {
    /// The greater is the worse.
    fn cmp(&self, other: &Self) -> Ordering {
        other
            .score
            .total_cmp(&self.score)
            .then_with(|| self.id.cmp(&other.id))
    }
}

impl<I: Ord> PartialOrd for Kept<I> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<I: Ord> PartialEq for Kept<I> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<I: Ord> Eq for Kept<I> {}

impl<I: Ord> TopK<I> {
    #[must_use]
    pub fn new(k: usize) -> Self {
        // A caller may ask for usize::MAX to get everything.
        Self {
            k,
            heap: BinaryHeap::with_capacity(k.min(1024)),
        }
    }

    /// Shows one. A score that is no number is never among the best.
    pub fn push(&mut self, score: f32, id: I) {
        if score.is_nan() {
            return;
        }
        let new = Kept { score, id };
        if self.heap.len() < self.k {
            self.heap.push(new);
        } else if let Some(mut worst) = self.heap.peek_mut()
            && new < *worst
        {
            *worst = new;
        }
    }

    /// The best first.
    #[must_use]
    pub fn into_sorted(self) -> Vec<(f32, I)> {
        self.heap
            .into_sorted_vec()
            .into_iter()
            .map(|kept| (kept.score, kept.id))
            .collect()
    }
}
