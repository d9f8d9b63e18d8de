//! Sketches of vectors: one bit for each dimension, laid out so that many are read at once.

use std::io;

use super::rotate::rotate;
use crate::search::column_file::{Reading, Writing};
use crate::search::make_room;

/// Sketches that lie side by side and are compared with a query at once; as many as a word of a
/// mask has bits.
pub(super) const ABREAST: usize = 64;
/// Dimensions to a word of a sketch as it is saved.
const WORD: usize = 64;

/// What is seen of vectors from a centre, addressed by slot.
#[derive(Clone, Debug)]
pub(super) struct Sketches {
    /// Bytes to a sketch.
    row: usize,
    /// The first bytes of [`ABREAST`] sketches, then their second bytes, and so on; then the same
    /// of the next ones. The last group is filled up with nothing.
    bits: Vec<Bytes>,
    /// What a step along a vector's signs is worth: bits tell directions, not lengths.
    strides: Vec<f32>,
    len: usize,
}

/// A byte of each of [`ABREAST`] sketches, where one load of a register finds them.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Bytes(pub(super) [u8; ABREAST]);

/// Sketches that lie side by side.
#[derive(Clone, Copy)]
pub(super) struct Group<'a> {
    pub(super) bits: &'a [Bytes],
    pub(super) strides: &'a [f32; ABREAST],
}

impl Sketches {
    pub(super) fn new(dimension: usize) -> Self {
        Self {
            row: bytes_of(dimension),
            bits: Vec::new(),
            strides: Vec::new(),
            len: 0,
        }
    }

    pub(super) fn reserve(&mut self, more: usize) {
        let groups = more.div_ceil(ABREAST);
        self.bits.reserve(groups * self.row);
        self.strides.reserve(groups * ABREAST);
    }

    /// Bytes that all of them take.
    pub(super) fn bytes(&self) -> usize {
        ABREAST * self.bits.capacity() + size_of::<f32>() * self.strides.capacity()
    }

    /// Bytes to a sketch.
    pub(super) fn row(&self) -> usize {
        self.row
    }

    /// Adds a sketch at the next slot.
    pub(super) fn push(&mut self, sketch: &Sketch) {
        self.add(sketch.bits.iter().copied(), sketch.stride);
    }

    fn add(&mut self, bits: impl Iterator<Item = u8>, stride: f32) {
        if self.len.is_multiple_of(ABREAST) {
            let groups = self.len / ABREAST + 1;
            make_room(&mut self.bits, self.row);
            self.bits.resize(groups * self.row, Bytes([0; ABREAST]));
            make_room(&mut self.strides, ABREAST);
            self.strides.resize(groups * ABREAST, 0.0);
        }
        self.len += 1;
        self.place(self.len - 1, bits, stride);
    }

    /// Puts another sketch at a slot that there is.
    pub(super) fn set(&mut self, slot: usize, sketch: &Sketch) {
        if slot < self.len {
            self.place(slot, sketch.bits.iter().copied(), sketch.stride);
        }
    }

    fn place(&mut self, slot: usize, bits: impl Iterator<Item = u8>, stride: f32) {
        let rows = self.bits.iter_mut().skip(slot / ABREAST * self.row);
        let places = rows.filter_map(|row| row.0.get_mut(slot % ABREAST));
        places.zip(bits).for_each(|(place, byte)| *place = byte);
        if let Some(place) = self.strides.get_mut(slot) {
            *place = stride;
        }
    }

    /// The sketches of the slots from `64 × number` on.
    pub(super) fn group(&self, number: usize) -> Option<Group<'_>> {
        Some(Group {
            bits: self.bits.get(number * self.row..(number + 1) * self.row)?,
            strides: self.strides.as_chunks().0.get(number)?,
        })
    }

    /// The bits of a slot as words.
    fn words(&self, slot: usize) -> Option<Vec<u64>> {
        let rows = self.group(slot / ABREAST)?.bits.iter();
        let bits: Vec<u8> = rows
            .filter_map(|row| row.0.get(slot % ABREAST).copied())
            .collect();
        let (words, _) = bits.as_chunks();
        Some(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }

    /// Writes the sketches of these slots, one after the other.
    pub(super) fn save<I: Iterator<Item = usize>>(
        &self,
        count: usize,
        slots: impl Fn() -> I,
        out: &mut Writing<'_>,
    ) -> io::Result<()> {
        let words = slots().filter_map(|slot| self.words(slot)).flatten();
        out.column(count * self.row * 8 / WORD, words)?;
        out.column(
            count,
            slots().filter_map(|slot| self.strides.get(slot).copied()),
        )
    }

    /// Reads so many sketches as [`Sketches::save`] wrote them.
    pub(super) fn load(dimension: usize, count: usize, from: &mut Reading<'_>) -> io::Result<Self> {
        let mut sketches = Self::new(dimension);
        let words: Vec<u64> = from.column_of(count * sketches.row * 8 / WORD)?;
        let strides: Vec<f32> = from.column_of(count)?;
        sketches.reserve(count);
        let rows = words.chunks_exact(sketches.row * 8 / WORD);
        for (words, stride) in rows.zip(strides) {
            sketches.add(words.iter().flat_map(|word| word.to_le_bytes()), stride);
        }
        Ok(sketches)
    }
}

/// What is seen of one vector.
pub(super) struct Sketch {
    /// A bit for each dimension of the rotated difference from the centre, set where it is
    /// positive; the lowest first.
    bits: Vec<u8>,
    /// The factor with which a product with these signs comes nearest to the product with the
    /// vector itself.
    stride: f32,
}

impl Sketch {
    /// Taken from the int8 codes, so that one made on writing and one made on loading are the same.
    pub(super) fn of(codes: &[i8], scale: f32, centre: &[f32]) -> Self {
        let mut seen: Vec<f32> = codes
            .iter()
            .zip(centre)
            .map(|(&code, c)| f32::from(code) * scale - c)
            .collect();
        rotate(&mut seen);
        let sum: f32 = seen.iter().map(|x| x.abs()).sum();
        let square: f32 = seen.iter().map(|x| x * x).sum();
        let bytes = seen.chunks(8).map(|chunk| {
            let positive = chunk.iter().map(|x| u8::from(*x > 0.0));
            let bits = positive.enumerate();
            bits.fold(0, |byte, (bit, set)| byte | set << bit)
        });
        let mut bits: Vec<u8> = bytes.collect();
        bits.resize(bytes_of(codes.len()), 0);
        let stride = if sum > 0.0 { square / sum } else { 0.0 };
        Self { bits, stride }
    }
}

/// Whole words, as they are saved.
fn bytes_of(dimension: usize) -> usize {
    dimension.div_ceil(WORD) * (WORD / 8)
}
