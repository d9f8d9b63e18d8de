//! Vectors as they are kept: int8 with a scale, and sketches of them.

use std::io;

use super::dense::VectorError;
use super::sketches::{Sketch, Sketches};
use crate::search::column_file::{Reading, Writing, wrong};
use crate::search::{make_room, push};

/// Dimensions a vector may have. Sums of as many int8 products stay far inside 32 bits.
pub const MAX_DIMENSION: usize = 8192;
/// Vectors in one set.
const MAX_VECTORS: usize = u32::MAX as usize;

/// Vectors by which the centre of a set is judged.
const CENTRE_SAMPLE: usize = 4096;

/// A vector as int8 times a scale, and what that rounds away in sixteenths of a step. The int8
/// codes alone decide which are the nearest in 98 of 100 cases; with the rest, in 999 of 1000.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantised {
    pub codes: Vec<i8>,
    /// A nibble for each code: the lower ones for the first half of the codes, the upper ones for
    /// the second.
    pub fine: Vec<u8>,
    pub scale: f32,
}

impl Quantised {
    /// The codes and then the nibbles, as a store keeps them.
    pub fn to_bytes(&self) -> Vec<u8> {
        let codes = self.codes.iter().map(|code| code.cast_unsigned());
        codes.chain(self.fine.iter().copied()).collect()
    }

    /// Reads what [`Quantised::to_bytes`] wrote. Where there are no nibbles, the middle is taken.
    pub fn from_bytes(bytes: &[u8], dimension: usize, scale: f32) -> Self {
        let (codes, fine) = bytes.split_at_checked(dimension).unwrap_or((bytes, &[]));
        let mut fine = fine.to_vec();
        fine.resize(dimension.div_ceil(2), MIDDLE);
        Self {
            codes: codes.iter().map(|code| code.cast_signed()).collect(),
            fine,
            scale,
        }
    }

    /// The vector again, within a sixteenth of a step of the one that was rounded.
    pub fn values(&self) -> Vec<f32> {
        let low = self.fine.iter().map(|nibbles| nibbles & 15);
        let high = self.fine.iter().map(|nibbles| nibbles >> 4);
        let fine = low.chain(high).map(rest);
        let codes = self.codes.iter().map(|code| f32::from(*code));
        codes
            .zip(fine)
            .map(|(code, rest)| (code + rest) * self.scale)
            .collect()
    }

    /// A place for a document that has no vector.
    pub fn nothing(dimension: usize) -> Self {
        Self {
            codes: vec![0; dimension],
            fine: vec![MIDDLE; dimension.div_ceil(2)],
            scale: 0.0,
        }
    }
}

/// Two nibbles that say: nothing was rounded away.
const MIDDLE: u8 = 0x88;
/// Steps that a nibble tells apart within one step of a code.
const FINE_STEPS: f32 = 16.0;

/// What the rest of a value after rounding, −0.5..=0.5, becomes; and back.
fn nibble(rest: f32) -> u8 {
    ((rest + 0.5) * FINE_STEPS)
        .floor()
        .clamp(0.0, FINE_STEPS - 1.0) as u8
}

pub(super) fn rest(nibble: u8) -> f32 {
    f32::from(nibble) / FINE_STEPS - 0.5
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
    let codes: Vec<i8> = vector.iter().map(|x| (x / scale).round() as i8).collect();
    let mut rests = vector
        .iter()
        .zip(&codes)
        .map(|(x, code)| nibble(x / scale - f32::from(*code)));
    let half = vector.len().div_ceil(2);
    let mut fine: Vec<u8> = rests.by_ref().take(half).collect();
    fine.iter_mut()
        .zip(rests)
        .for_each(|(low, high)| *low |= high << 4);
    Ok(Quantised { codes, fine, scale })
}

/// Vectors of one dimension, addressed by slot.
#[derive(Clone, Debug)]
pub struct VectorSet {
    pub(super) dimension: usize,
    pub(super) bytes: Vec<i8>,
    pub(super) fine: Vec<u8>,
    pub(super) scales: Vec<f32>,
    pub(super) sketches: Sketches,
    /// Whether every vector has a sketch; of a set without, all vectors are compared.
    pub(super) is_sketched: bool,
    /// Where the vectors are seen from.
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
        Ok(Self {
            dimension,
            bytes: Vec::new(),
            fine: Vec::new(),
            scales: Vec::new(),
            sketches: Sketches::new(dimension),
            is_sketched: true,
            centre: vec![0.0; dimension],
        })
    }

    /// A set of few vectors for one search, which is not saved. A sketch costs as much as hundreds
    /// of comparisons with the vector.
    pub fn without_sketches(dimension: usize) -> Result<Self, VectorError> {
        Ok(Self {
            is_sketched: false,
            ..Self::new(dimension)?
        })
    }

    pub fn dimension(&self) -> usize {
        self.dimension
    }

    pub fn len(&self) -> usize {
        self.scales.len()
    }

    pub fn is_empty(&self) -> bool {
        self.scales.is_empty()
    }

    /// Bytes that the whole set takes.
    pub(crate) fn bytes(&self) -> usize {
        let numbers = self.scales.capacity() + self.centre.capacity();
        let codes = self.bytes.capacity() + self.fine.capacity();
        codes + size_of::<f32>() * numbers + self.sketches.bytes()
    }

    /// Makes room, so that a load of known size does not copy.
    pub fn reserve(&mut self, vectors: usize) {
        self.bytes.reserve(vectors * self.dimension);
        self.fine.reserve(vectors * self.fine_row());
        self.scales.reserve(vectors);
        self.sketches.reserve(vectors);
    }

    /// Bytes of the nibbles of one vector.
    pub(super) fn fine_row(&self) -> usize {
        self.dimension.div_ceil(2)
    }

    /// Adds a vector at the next slot, which it returns.
    pub fn push(&mut self, vector: &[f32]) -> Result<u32, VectorError> {
        self.check(vector.len())?;
        self.push_quantised(&quantise(vector)?)
    }

    /// Adds a vector as a store keeps it.
    pub fn push_quantised(&mut self, vector: &Quantised) -> Result<u32, VectorError> {
        self.check_quantised(vector)?;
        let slot = self.scales.len();
        let slot = u32::try_from(slot).ok().filter(|_| slot < MAX_VECTORS);
        let slot = slot.ok_or(VectorError::Full { max: MAX_VECTORS })?;
        make_room(&mut self.bytes, vector.codes.len());
        self.bytes.extend_from_slice(&vector.codes);
        make_room(&mut self.fine, vector.fine.len());
        self.fine.extend_from_slice(&vector.fine);
        push(&mut self.scales, vector.scale);
        if self.is_sketched {
            let sketch = Sketch::of(&vector.codes, vector.scale, &self.centre);
            self.sketches.push(&sketch);
        }
        Ok(slot)
    }

    /// Puts another vector at a slot. False where there is no such slot.
    pub fn replace(&mut self, slot: u32, new: &Quantised) -> Result<bool, VectorError> {
        self.check_quantised(new)?;
        let at = slot as usize;
        let (dimension, fine) = (self.dimension, self.fine_row());
        let Some(scale) = self.scales.get_mut(at) else {
            return Ok(false);
        };
        *scale = new.scale;
        if let Some(row) = self.bytes.get_mut(at * dimension..(at + 1) * dimension) {
            row.copy_from_slice(&new.codes);
        }
        if let Some(row) = self.fine.get_mut(at * fine..(at + 1) * fine) {
            row.copy_from_slice(&new.fine);
        }
        if self.is_sketched {
            let sketch = Sketch::of(&new.codes, new.scale, &self.centre);
            self.sketches.set(at, &sketch);
        }
        Ok(true)
    }

    pub(crate) fn check_quantised(&self, vector: &Quantised) -> Result<(), VectorError> {
        self.check(vector.codes.len())?;
        if vector.fine.len() != self.fine_row() {
            return Err(VectorError::WrongDimension {
                expected: self.dimension,
                got: vector.fine.len() * 2,
            });
        }
        if !vector.scale.is_finite() {
            return Err(VectorError::NotFinite { index: 0 });
        }
        Ok(())
    }

    /// Makes the bits tell vectors apart by what they do not share. Texts of one kind have much
    /// in common (here: two thirds of a vector's length), and a bit that is the same for all of
    /// them says nothing. A search is right without it, and needs more oversampling.
    pub fn recentre(&mut self) {
        if !self.is_sketched {
            return;
        }
        let every = (self.len() / CENTRE_SAMPLE).max(1);
        let mut sums = vec![0.0f64; self.dimension];
        let mut count = 0.0;
        for (codes, &scale) in self
            .bytes
            .chunks_exact(self.dimension)
            .zip(&self.scales)
            .step_by(every)
        {
            let values = codes.iter().map(|&x| f64::from(x) * f64::from(scale));
            sums.iter_mut().zip(values).for_each(|(sum, x)| *sum += x);
            count += 1.0;
        }
        if count > 0.0 {
            self.centre = sums.into_iter().map(|sum| (sum / count) as f32).collect();
        }
        let rows = self.bytes.chunks_exact(self.dimension).zip(&self.scales);
        for (slot, (codes, &scale)) in rows.enumerate() {
            let sketch = Sketch::of(codes, scale, &self.centre);
            self.sketches.set(slot, &sketch);
        }
    }

    /// Writes the vectors at these slots.
    pub(crate) fn save<I: Iterator<Item = u32>>(
        &self,
        count: usize,
        slots: impl Fn() -> I,
        out: &mut Writing<'_>,
    ) -> io::Result<()> {
        out.column(self.dimension, self.centre.iter().copied())?;
        let slots = || slots().map(|slot| slot as usize);
        let rows = |slot: usize, width: usize| slot * width..(slot + 1) * width;
        let row = |slot: usize| self.bytes.get(rows(slot, self.dimension));
        let codes = slots().filter_map(row).flatten().copied();
        out.column(count * self.dimension, codes)?;
        let row = |slot: usize| self.fine.get(rows(slot, self.fine_row()));
        let fine = slots().filter_map(row).flatten().copied();
        out.column(count * self.fine_row(), fine)?;
        out.column(
            count,
            slots().filter_map(|slot| self.scales.get(slot).copied()),
        )?;
        self.sketches.save(count, slots, out)
    }

    /// Reads so many vectors as [`VectorSet::save`] wrote them.
    pub(crate) fn load(dimension: usize, count: usize, from: &mut Reading<'_>) -> io::Result<Self> {
        let mut set = Self::new(dimension).map_err(|error| wrong(&error.to_string()))?;
        set.centre = from.column_of(dimension)?;
        set.bytes = from.column_of(count * dimension)?;
        set.fine = from.column_of(count * set.fine_row())?;
        set.scales = from.column_of(count)?;
        set.sketches = Sketches::load(dimension, count, from)?;
        Ok(set)
    }

    /// Whether there is a vector at the slot, and not just a place for one.
    pub fn has(&self, slot: u32) -> bool {
        let scale = self.scales.get(slot as usize);
        scale.is_some_and(|scale| *scale != 0.0)
    }

    /// The vector at a slot.
    pub fn get(&self, slot: u32) -> Option<Quantised> {
        let (codes, fine, scale) = self.row(slot)?;
        Some(Quantised {
            codes: codes.to_vec(),
            fine: fine.to_vec(),
            scale,
        })
    }

    pub(super) fn row(&self, slot: u32) -> Option<(&[i8], &[u8], f32)> {
        let at = slot as usize;
        let (dimension, fine) = (self.dimension, self.fine_row());
        Some((
            self.bytes.get(at * dimension..(at + 1) * dimension)?,
            self.fine.get(at * fine..(at + 1) * fine)?,
            *self.scales.get(at)?,
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
