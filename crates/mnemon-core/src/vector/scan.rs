//! Searching a set: which scan, and how.

use super::dense::{VectorError, dot};
use super::set::{Quantised, VectorSet, quantise, rest};
use super::simd::{self, PLANES};
use super::top::TopK;
use super::turn::turn;

/// Slots that a kernel takes at once: enough to pay for the call, few enough to stay in cache.
const BLOCK: usize = 512;
/// Slots that are compared with the bar at once.
const ABREAST: usize = 16;
/// Candidates by which the bar for the rest is judged.
const SAMPLE: usize = 8192;

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
        let passed = if count <= config.exact_up_to {
            self.int8_scan(&quantised, least, candidates)
        } else {
            let share = (count as f64 * f64::from(config.oversample)).ceil() as usize;
            let share = share.max(config.pass_at_least);
            let chosen = self.choose_by_bits(&quantised, (share.max(least), least), candidates);
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
        candidates.blocks(self.len(), 1, |slots| {
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
        for &slot in slots {
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

    /// About `keep` slots that are nearest by their bits, ascending; never fewer than `least`,
    /// where there are that many.
    fn choose_by_bits(
        &self,
        query: &Quantised,
        (keep, least): (usize, usize),
        candidates: Candidates<'_>,
    ) -> Vec<u32> {
        let mut turned: Vec<f32> = query.codes.iter().map(|&code| f32::from(code)).collect();
        turn(&mut turned);
        let kernel = simd::Agreement::new(planes(&turned));
        let every = (candidates.count(self.len()) / SAMPLE).max(1);
        let bar = self.bar(&kernel, keep, candidates, every);
        let chosen = self.at_least(&kernel, bar, candidates, keep);
        if every == 1 || chosen.len() >= least {
            return chosen;
        }
        // The sample misled: ask all of them.
        let bar = self.bar(&kernel, keep, candidates, 1);
        self.at_least(&kernel, bar, candidates, keep)
    }

    /// The nearness by bits that `keep` candidates reach, judged by one in `every` of them.
    fn bar(
        &self,
        kernel: &simd::Agreement,
        keep: usize,
        candidates: Candidates<'_>,
        every: usize,
    ) -> f32 {
        let mut near = Vec::with_capacity(candidates.count(self.len()) / every + 1);
        self.by_bits(kernel, candidates, every, |_, these| {
            near.extend_from_slice(these);
        });
        let keep = (keep / every).min(near.len());
        let Some(last) = keep.checked_sub(1) else {
            return f32::NEG_INFINITY;
        };
        let (_, bar, _) = near.select_nth_unstable_by(last, |a, b| b.total_cmp(a));
        *bar
    }

    /// The slots that are at least as near as `bar`.
    fn at_least(
        &self,
        kernel: &simd::Agreement,
        bar: f32,
        candidates: Candidates<'_>,
        expected: usize,
    ) -> Vec<u32> {
        let mut chosen = Vec::with_capacity(expected + expected / 4);
        self.by_bits(kernel, candidates, 1, |slots, near| {
            for (slots, near) in slots.chunks(ABREAST).zip(near.chunks(ABREAST)) {
                // Most are too far, and that is told of all of them at once.
                if !near.iter().fold(false, |any, near| any | (*near >= bar)) {
                    continue;
                }
                let reach = slots.iter().zip(near).filter(|(_, near)| **near >= bar);
                chosen.extend(reach.map(|(slot, _)| *slot));
            }
        });
        chosen
    }

    /// How near one in `every` candidates is, as far as its bits tell, block by block.
    fn by_bits(
        &self,
        kernel: &simd::Agreement,
        candidates: Candidates<'_>,
        every: usize,
        mut visit: impl FnMut(&[u32], &[f32]),
    ) {
        // What a code agrees that has nothing to do with the query; bits beyond the dimension
        // always agree.
        let most = ((1 << PLANES) - 1) as f32;
        let unused = (self.words * 64 - self.dimension) as f32;
        let nothing = most * (self.dimension as f32 / 2.0 + unused);
        let mut agreement = [0u32; BLOCK];
        let mut near = [0.0f32; BLOCK];
        candidates.blocks(self.len(), every, |slots| {
            kernel.agreements(&self.bits, self.words, slots, &mut agreement);
            // As signed numbers they are converted several at a time.
            let agreement = agreement.iter().map(|a| a.cast_signed() as f32 - nothing);
            let places = near.iter_mut().zip(agreement);
            match in_a_row(slots).and_then(|range| self.strides.get(range)) {
                Some(strides) => places
                    .zip(strides)
                    .for_each(|((near, agreement), stride)| *near = stride * agreement),
                None => places.zip(slots).for_each(|((near, agreement), slot)| {
                    let stride = self.strides.get(*slot as usize);
                    *near = stride.map_or(f32::NEG_INFINITY, |stride| stride * agreement);
                }),
            }
            visit(slots, near.get(..slots.len()).unwrap_or_default());
        });
    }
}

/// The range that ascending slots are, if they leave nothing out.
fn in_a_row(slots: &[u32]) -> Option<std::ops::Range<usize>> {
    let (first, last) = (*slots.first()? as usize, *slots.last()? as usize);
    (last.checked_sub(first)? + 1 == slots.len()).then_some(first..last + 1)
}

/// The query at four bits per dimension, as bit planes in the layout of the sign codes: bit `d`
/// of plane `p` is bit `p` of dimension `d`. Two standard deviations to either side become 0..=15.
fn planes(query: &[f32]) -> [Vec<u64>; PLANES] {
    let square: f32 = query.iter().map(|x| x * x).sum();
    let spread = 2.0 * (square / query.len().max(1) as f32).sqrt();
    let level = |x: f32| ((x / spread + 1.0) * 7.5).round().clamp(0.0, 15.0) as u8;
    std::array::from_fn(|plane| {
        let words = query.chunks(64).map(|chunk| {
            let bits = chunk.iter().enumerate();
            bits.fold(0, |word, (bit, &x)| {
                word | u64::from(level(x) >> plane & 1) << bit
            })
        });
        words.collect()
    })
}

impl Candidates<'_> {
    /// How many slots there are, in a set of `len`.
    #[must_use]
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

    /// Hands out every `stride`th slot below `len` in ascending blocks.
    fn blocks(&self, len: usize, stride: usize, mut visit: impl FnMut(&[u32])) {
        let all = 0..u32::try_from(len).unwrap_or(u32::MAX);
        match self {
            Self::All if stride == 1 => {
                let mut block: Vec<u32> = Vec::with_capacity(BLOCK);
                for start in all.clone().step_by(BLOCK) {
                    block.clear();
                    block.extend(start..start.saturating_add(BLOCK as u32).min(all.end));
                    visit(&block);
                }
            }
            Self::All => in_blocks(all.step_by(stride), &mut visit),
            Self::Slots(slots) if stride == 1 => slots.chunks(BLOCK).for_each(visit),
            Self::Slots(slots) => in_blocks(slots.iter().step_by(stride).copied(), &mut visit),
            Self::Mask(words) => {
                let slots = (0..).zip(*words).flat_map(|(i, &w)| set_bits(i, w));
                in_blocks(slots.step_by(stride), &mut visit);
            }
        }
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
