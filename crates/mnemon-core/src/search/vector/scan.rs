//! Searching a set: which scan, and how.

use super::dense::{VectorError, dot};
use super::rotate::rotate;
use super::set::{Quantised, VectorSet, quantise, rest};
use super::simd;
use super::sketches::{ABREAST, Group};
use super::top::TopK;

/// Slots that a kernel takes at once: enough to pay for the call, few enough to stay in cache.
const BLOCK: usize = 512;
/// Candidates by which the bar for the rest is judged.
const SAMPLE: usize = 4096;
/// About how many of them are taken of those that lie together, which often are about the same:
/// few of many groups tell more than all of a few.
const OF_EACH: usize = 16;
/// How many times as many are judged by where the sample misled.
const MORE: usize = 8;
/// Where only one slot in so many is a candidate, looking at the sketches between them costs more
/// than it spares.
const SPARSE: usize = 32;

/// Which slots a search looks at.
#[derive(Clone, Copy, Debug)]
pub enum Candidates<'a> {
    All,
    /// These slots, each once, in ascending order.
    Slots(&'a [u32]),
    /// The slots whose bit is set: bit `s % 64` of word `s / 64`.
    Mask(&'a [u64]),
}

/// When to let the bits choose first, and how many.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScanConfig {
    /// Up to this many candidates the int8 codes are scanned outright.
    pub exact_up_to: usize,
    /// Share of the candidates that pass the bits.
    pub oversample: f32,
    /// Candidates that pass the bits at the least: of few, a small share would be too few.
    pub pass_at_least: usize,
    /// What passes at least, as a multiple of `k`; also how many the int8 scan passes on.
    pub rescore_factor: usize,
}

impl Default for ScanConfig {
    fn default() -> Self {
        Self {
            exact_up_to: 5_000,
            oversample: 0.02,
            pass_at_least: 1000,
            rescore_factor: 2,
        }
    }
}

/// A slot and its similarity to the query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    pub slot: u32,
    pub score: f32,
}

impl VectorSet {
    /// The `k` candidates most similar to `query` (dot product; the cosine where both are of
    /// unit length), the best first.
    pub fn search(
        &self,
        query: &[f32],
        k: usize,
        candidates: Candidates<'_>,
        config: &ScanConfig,
    ) -> Result<Vec<Scored>, VectorError> {
        self.check(query.len())?;
        let quantised = quantise(query)?;
        let count = candidates.count(self.len());
        let least = k.saturating_mul(config.rescore_factor.max(1));
        let is_exact = !self.is_sketched
            || count <= config.exact_up_to
            || count.saturating_mul(SPARSE) <= self.len();
        let passed = if is_exact {
            self.int8_scan(&quantised, least, candidates)
        } else {
            let share = (count as f64 * f64::from(config.oversample)).ceil() as usize;
            let keep = share.max(config.pass_at_least).max(least).min(count);
            let chosen = self.choose_by_sketch(&quantised, (keep, least.min(count)), candidates);
            self.int8_scan(&quantised, least, Candidates::Slots(&chosen))
        };
        Ok(self.score_again(query, &passed, k))
    }

    /// How similar these slots are to the query, in order; 0 where there is no vector.
    pub fn similarities(&self, query: &[f32], slots: &[u32]) -> Result<Vec<f32>, VectorError> {
        self.check(query.len())?;
        let query = quantise(query)?;
        let kernel = simd::DotI8::new(&query.codes);
        let mut products = vec![0; slots.len()];
        kernel.products(&self.bytes, slots, &mut products);
        let scaled = slots.iter().zip(products).map(|(slot, product)| {
            let scale = self.scales.get(*slot as usize).copied().unwrap_or(0.0);
            product as f32 * scale * query.scale
        });
        Ok(scaled.collect())
    }

    /// The slots of the `keep` greatest int8 products.
    fn int8_scan(&self, query: &Quantised, keep: usize, candidates: Candidates<'_>) -> Vec<u32> {
        let kernel = simd::DotI8::new(&query.codes);
        let mut best = TopK::new(keep);
        let mut products = [0; BLOCK];
        candidates.blocks(self.len(), |slots| {
            kernel.products(&self.bytes, slots, &mut products);
            for (&slot, &product) in slots.iter().zip(&products) {
                let scale = self.scales.get(slot as usize).copied().unwrap_or(f32::NAN);
                best.push(product as f32 * scale, slot);
            }
        });
        best.into_sorted()
            .into_iter()
            .map(|(_, slot)| slot)
            .collect()
    }

    /// Scores slots with the query as it came, against all that is kept of the vectors.
    fn score_again(&self, query: &[f32], slots: &[u32], k: usize) -> Vec<Scored> {
        let mut best = TopK::new(k);
        let mut values = vec![0.0; self.dimension];
        for (at, &slot) in slots.iter().enumerate() {
            if let Some(&ahead) = slots.get(at + simd::AHEAD) {
                simd::fetch_early(&self.bytes, ahead, self.dimension);
                simd::fetch_early(&self.fine, ahead, self.fine_row());
            }
            let Some((codes, fine, scale)) = self.row(slot) else {
                continue;
            };
            let (first, second) = codes.split_at(fine.len());
            let (low, high) = values.split_at_mut(fine.len());
            for ((value, code), nibbles) in low.iter_mut().zip(first).zip(fine) {
                *value = f32::from(*code) + rest(nibbles & 15);
            }
            for ((value, code), nibbles) in high.iter_mut().zip(second).zip(fine) {
                *value = f32::from(*code) + rest(nibbles >> 4);
            }
            best.push(dot(query, &values) * scale, slot);
        }
        best.into_sorted()
            .into_iter()
            .map(|(score, slot)| Scored { slot, score })
            .collect()
    }

    /// About `keep` slots that are nearest by their sketches, ascending; never fewer than `least`,
    /// where there are that many.
    fn choose_by_sketch(
        &self,
        query: &Quantised,
        (keep, least): (usize, usize),
        candidates: Candidates<'_>,
    ) -> Vec<u32> {
        let mut rotated: Vec<f32> = query.codes.iter().map(|&code| f32::from(code)).collect();
        rotate(&mut rotated);
        let lookup = simd::Lookup::new(&rotated, self.sketches.row());
        let mask = candidates.mask(self.len());
        let (groups, count) = (
            self.groups(&mask).count(),
            Candidates::Mask(&mask).count(self.len()),
        );
        let mut thin = (count / groups.max(1) / OF_EACH).max(1);
        let mut every = (count / (SAMPLE * thin)).max(1);
        loop {
            let sample = self.sample(&lookup, &mask, (every, thin));
            let bar = bar(sample, keep as f64 / count as f64);
            let chosen = self.at_least(&lookup, bar, &mask, keep);
            // Where the sample held too much of what is near, the bar was too high.
            if (every, thin) == (1, 1) || chosen.len() >= least.max(keep / 2) {
                return chosen;
            }
            (every, thin) = ((every / MORE).max(1), 1);
        }
    }

    /// How near by their sketches one in `thin` candidates is of one in `every` groups of those
    /// that lie together.
    fn sample(
        &self,
        lookup: &simd::Lookup,
        mask: &[u64],
        (every, thin): (usize, usize),
    ) -> Vec<f32> {
        let some = (0..ABREAST)
            .step_by(thin)
            .fold(0, |some, bit| some | 1 << bit);
        let mut sample = Vec::new();
        // Others each time: candidates may stand in a pattern, too.
        for ((_, word, group), turn) in self
            .groups(mask)
            .step_by(every)
            .zip((0..thin as u32).cycle())
        {
            let near = lookup.near(group);
            let taken = set_bits(0, word & u64::rotate_left(some, turn));
            sample.extend(taken.filter_map(|at| near.get(at as usize)));
        }
        sample
    }

    /// The slots that are at least as near as `bar`.
    fn at_least(&self, lookup: &simd::Lookup, bar: f32, mask: &[u64], expected: usize) -> Vec<u32> {
        let mut chosen = Vec::with_capacity(expected + expected / 4);
        for (number, word, group) in self.groups(mask) {
            chosen.extend(set_bits(number, lookup.reach(group, bar) & word));
        }
        chosen
    }

    /// The groups of sketches that have candidates: their numbers, and which of them are.
    fn groups(&self, mask: &[u64]) -> impl Iterator<Item = (u32, u64, Group<'_>)> {
        let words = (0..).zip(mask).filter(|(_, word)| **word != 0);
        words.filter_map(|(number, word)| {
            let group = self.sketches.group(number as usize)?;
            Some((number, *word, group))
        })
    }
}

/// What this share of a sample reaches.
fn bar(mut sample: Vec<f32>, share: f64) -> f32 {
    let keep = (share * sample.len() as f64) as usize;
    let Some(last) = keep.min(sample.len()).checked_sub(1) else {
        return f32::NEG_INFINITY;
    };
    let (_, bar, _) = sample.select_nth_unstable_by(last, |a, b| b.total_cmp(a));
    *bar
}

impl Candidates<'_> {
    /// How many slots there are, in a set of `len`.
    pub fn count(&self, len: usize) -> usize {
        match self {
            Self::All => len,
            Self::Slots(slots) => slots.len(),
            Self::Mask(words) => words
                .iter()
                .map(|w| w.count_ones() as usize)
                .sum::<usize>()
                .min(len),
        }
    }

    /// Hands out the slots in ascending blocks; those of all end before `len`.
    fn blocks(&self, len: usize, mut visit: impl FnMut(&[u32])) {
        match self {
            Self::All => in_blocks(0..u32::try_from(len).unwrap_or(u32::MAX), &mut visit),
            Self::Slots(slots) => slots.chunks(BLOCK).for_each(visit),
            Self::Mask(words) => {
                let slots = (0..).zip(*words).flat_map(|(at, word)| set_bits(at, *word));
                in_blocks(slots, &mut visit);
            }
        }
    }

    /// A bit for each slot below `len`, set for the candidates.
    fn mask(&self, len: usize) -> Vec<u64> {
        let mut mask = match self {
            Self::All => vec![u64::MAX; len.div_ceil(ABREAST)],
            Self::Mask(words) => words.iter().copied().take(len.div_ceil(ABREAST)).collect(),
            Self::Slots(slots) => {
                let mut mask = vec![0; len.div_ceil(ABREAST)];
                for slot in *slots {
                    if let Some(word) = mask.get_mut(*slot as usize / ABREAST) {
                        *word |= 1 << (*slot as usize % ABREAST);
                    }
                }
                mask
            }
        };
        if let Some(last) = mask.get_mut(len / ABREAST) {
            *last &= (1 << (len % ABREAST)) - 1;
        }
        mask
    }
}

fn in_blocks(slots: impl Iterator<Item = u32>, visit: &mut impl FnMut(&[u32])) {
    let mut block = Vec::with_capacity(BLOCK);
    for slot in slots {
        block.push(slot);
        if block.len() == BLOCK {
            visit(&block);
            block.clear();
        }
    }
    if !block.is_empty() {
        visit(&block);
    }
}

fn set_bits(index: u32, mut word: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros())?;
        word &= word - 1;
        Some(index * 64 + bit)
    })
}
