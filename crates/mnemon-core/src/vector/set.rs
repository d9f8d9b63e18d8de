//! Vectors as they are kept: int8 with a scale, and sign bits.

use super::dense::VectorError;

/// Dimensions a vector may have. Sums of as many int8 products stay far inside 32 bits.
pub const MAX_DIMENSION: usize = 8192;
/// Vectors in one set.
const MAX_VECTORS: usize = u32::MAX as usize;

/// Vectors by which the centre of a set is judged.
const CENTRE_SAMPLE: usize = 4096;

/// A vector as int8 times a scale.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantised {
    pub codes: Vec<i8>,
    pub scale: f32,
}

/// Rounds a vector to int8; the largest magnitude becomes 127.
pub fn quantise(vector: &[f32]) -> Result<Quantised, VectorError> {
    if let Some(index) = vector.iter().position(|x| !x.is_finite()) {
        return Err(VectorError::NotFinite { index });
    }
    let largest = vector.iter().fold(0.0f32, |m, x| m.max(x.abs()));
    let scale = largest / 127.0;
    // A scale that is not normal would round everything to nothing, or divide by it.
    if !scale.is_normal() {
        return Err(VectorError::Zero);
    }
    let codes = vector.iter().map(|x| (x / scale).round() as i8).collect();
    Ok(Quantised { codes, scale })
}

/// Vectors of one dimension, addressed by slot.
#[derive(Clone, Debug)]
pub struct VectorSet {
    pub(super) dimension: usize,
    /// u64 words per sign code.
    pub(super) words: usize,
    pub(super) bytes: Vec<i8>,
    pub(super) scales: Vec<f32>,
    pub(super) bits: Vec<u64>,
    /// What a bit compares its dimension with.
    pub(super) centre: Vec<f32>,
}

impl VectorSet {
    pub fn new(dimension: usize) -> Result<Self, VectorError> {
        if !(1..=MAX_DIMENSION).contains(&dimension) {
            return Err(VectorError::ImpossibleDimension {
                got: dimension,
                max: MAX_DIMENSION,
            });
        }
        let words = dimension.div_ceil(64);
        Ok(Self {
            dimension,
            words,
            bytes: Vec::new(),
            scales: Vec::new(),
            bits: Vec::new(),
            centre: vec![0.0; dimension],
        })
    }

    #[must_use]
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.scales.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.scales.is_empty()
    }

    /// Bytes that one vector takes here.
    #[must_use]
    pub fn bytes_per_vector(&self) -> usize {
        self.dimension + size_of::<f32>() + self.words * size_of::<u64>()
    }

    /// Makes room, so that a load of known size does not copy.
    pub fn reserve(&mut self, vectors: usize) {
        self.bytes.reserve(vectors * self.dimension);
        self.scales.reserve(vectors);
        self.bits.reserve(vectors * self.words);
    }

    /// Adds a vector at the next slot, which it returns.
    pub fn push(&mut self, vector: &[f32]) -> Result<u32, VectorError> {
        self.check(vector.len())?;
        let Quantised { codes, scale } = quantise(vector)?;
        self.push_codes(&codes, scale)
    }

    /// Adds a vector as a store keeps it.
    pub fn push_codes(&mut self, codes: &[i8], scale: f32) -> Result<u32, VectorError> {
        self.check(codes.len())?;
        if !scale.is_finite() {
            return Err(VectorError::NotFinite { index: 0 });
        }
        let slot = self.scales.len();
        let slot = u32::try_from(slot).ok().filter(|_| slot < MAX_VECTORS);
        let slot = slot.ok_or(VectorError::Full { max: MAX_VECTORS })?;
        self.bytes.extend_from_slice(codes);
        self.scales.push(scale);
        self.bits.extend(signs(codes, scale, &self.centre));
        Ok(slot)
    }

    /// Puts another vector at a slot. False where there is no such slot.
    pub fn replace(&mut self, slot: u32, vector: &[f32]) -> Result<bool, VectorError> {
        self.check(vector.len())?;
        let new = quantise(vector)?;
        let at = slot as usize;
        let (dimension, words) = (self.dimension, self.words);
        let Some(scale) = self.scales.get_mut(at) else {
            return Ok(false);
        };
        *scale = new.scale;
        if let Some(row) = self.bytes.get_mut(at * dimension..(at + 1) * dimension) {
            row.copy_from_slice(&new.codes);
        }
        let row = self.bits.iter_mut().skip(at * words).take(words);
        row.zip(signs(&new.codes, new.scale, &self.centre))
            .for_each(|(word, sign)| *word = sign);
        Ok(true)
    }

    /// Takes a vector out. The last vector moves into its slot; what was its slot is returned.
    pub fn swap_remove(&mut self, slot: u32) -> Option<u32> {
        let (at, last) = (slot as usize, self.len().checked_sub(1)?);
        if at > last {
            return None;
        }
        let (dimension, words) = (self.dimension, self.words);
        self.bytes.copy_within(last * dimension.., at * dimension);
        self.bits.copy_within(last * words.., at * words);
        self.scales.swap_remove(at);
        self.bytes.truncate(last * dimension);
        self.bits.truncate(last * words);
        u32::try_from(last).ok()
    }

    /// Makes the bits tell vectors apart by what they do not share. Texts of one kind have much
    /// in common (here: two thirds of a vector's length), and a bit that is the same for all of
    /// them says nothing. Worth its linear pass after a load and when a set has doubled; a
    /// search is right without it, and needs more oversampling.
    pub fn recentre(&mut self) {
        let stride = (self.len() / CENTRE_SAMPLE).max(1);
        let mut sums = vec![0.0f64; self.dimension];
        let mut count = 0.0;
        for (codes, &scale) in self
            .bytes
            .chunks_exact(self.dimension)
            .zip(&self.scales)
            .step_by(stride)
        {
            let values = codes.iter().map(|&x| f64::from(x) * f64::from(scale));
            sums.iter_mut().zip(values).for_each(|(sum, x)| *sum += x);
            count += 1.0;
        }
        if count > 0.0 {
            self.centre = sums.into_iter().map(|sum| (sum / count) as f32).collect();
        }
        let rows = self.bytes.chunks_exact(self.dimension).zip(&self.scales);
        for ((codes, &scale), row) in rows.zip(self.bits.chunks_exact_mut(self.words)) {
            row.iter_mut()
                .zip(signs(codes, scale, &self.centre))
                .for_each(|(word, new)| *word = new);
        }
    }

    /// The int8 codes and the scale of a slot.
    #[must_use]
    pub fn get(&self, slot: u32) -> Option<(&[i8], f32)> {
        let at = slot as usize;
        let scale = self.scales.get(at)?;
        Some((
            self.bytes
                .get(at * self.dimension..(at + 1) * self.dimension)?,
            *scale,
        ))
    }

    pub(super) fn check(&self, got: usize) -> Result<(), VectorError> {
        if got == self.dimension {
            return Ok(());
        }
        Err(VectorError::WrongDimension {
            expected: self.dimension,
            got,
        })
    }
}

/// One bit per dimension: set where the value is above the centre. Taken from the int8 codes, so that
/// bits made on writing and bits made on loading are the same.
pub(super) fn signs(codes: &[i8], scale: f32, centre: &[f32]) -> impl Iterator<Item = u64> {
    codes
        .chunks(64)
        .zip(centre.chunks(64))
        .map(move |(codes, centre)| {
            let above = codes
                .iter()
                .zip(centre)
                .map(|(&x, c)| f32::from(x) * scale > *c);
            above
                .enumerate()
                .fold(0, |word, (bit, above)| word | u64::from(above) << bit)
        })
}
