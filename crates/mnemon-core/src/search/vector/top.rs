//! The k best of many.

use std::cmp::Ordering;

/// Keeps the `k` best of what it is shown: greater score first, then smaller id. Memory is
/// bounded by `k`, and the order of showing does not matter.
#[derive(Clone, Debug)]
pub struct TopK<I> {
    k: usize,
    /// Up to twice as many: throwing out the worse half at once is cheaper than keeping order.
    kept: Vec<Kept<I>>,
    /// Once the worse half was thrown out, the worst of the others stands at `k - 1`.
    thinned: bool,
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
    pub fn new(k: usize) -> Self {
        // A caller may ask for usize::MAX to get everything.
        Self {
            k,
            kept: Vec::with_capacity(k.saturating_mul(2).min(1024)),
            thinned: false,
        }
    }

    /// Shows one. A score that is no number is never among the best.
    pub fn push(&mut self, score: f32, id: I) {
        if score.is_nan() || self.k == 0 {
            return;
        }
        let new = Kept { score, id };
        let bar = self.kept.get(self.k - 1).filter(|_| self.thinned);
        if bar.is_some_and(|bar| new > *bar) {
            return;
        }
        self.kept.push(new);
        if self.kept.len() >= self.k.saturating_mul(2) {
            self.thin();
        }
    }

    fn thin(&mut self) {
        if self.kept.len() > self.k {
            self.kept.select_nth_unstable(self.k - 1);
            self.kept.truncate(self.k);
            self.thinned = true;
        }
    }

    /// The best first.
    pub fn into_sorted(mut self) -> Vec<(f32, I)> {
        self.thin();
        self.kept.sort_unstable();
        let kept = self.kept.into_iter();
        kept.map(|kept| (kept.score, kept.id)).collect()
    }
}
