//! Columns of numbers as bytes, little end first: how an index is written down and read again.

use std::io::{self, Read, Write};

use crc32fast::Hasher;

/// Bytes that are on their way at once; a multiple of the size of every cell.
const PIECE: usize = 3 * 16 * 1024;

/// What a column is made of.
pub(crate) trait Cell: Copy {
    const SIZE: usize;
    fn put(self, out: &mut Vec<u8>);
    /// From exactly as many bytes as it has.
    fn take(bytes: &[u8]) -> Self;

    fn take_all(bytes: &[u8], into: &mut Vec<Self>) {
        into.extend(bytes.chunks_exact(Self::SIZE).map(Self::take));
    }
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Cell for $number {
            const SIZE: usize = size_of::<$number>();

            fn put(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn take(bytes: &[u8]) -> Self {
                let bytes = bytes.first_chunk().copied();
                Self::from_le_bytes(bytes.unwrap_or_default())
            }
        }
    )*};
}

numbers!(u16 u32 u64 i64 f32);

impl Cell for u8 {
    const SIZE: usize = 1;

    fn put(self, out: &mut Vec<u8>) {
        out.push(self);
    }

    fn take(bytes: &[u8]) -> Self {
        bytes.first().copied().unwrap_or_default()
    }

    fn take_all(bytes: &[u8], into: &mut Vec<Self>) {
        into.extend_from_slice(bytes);
    }
}

impl Cell for i8 {
    const SIZE: usize = 1;

    fn put(self, out: &mut Vec<u8>) {
        out.push(self.cast_unsigned());
    }

    fn take(bytes: &[u8]) -> Self {
        u8::take(bytes).cast_signed()
    }

    fn take_all(bytes: &[u8], into: &mut Vec<Self>) {
        into.extend(bytes.iter().map(|byte| byte.cast_signed()));
    }
}

impl<T: Cell + Default, const N: usize> Cell for [T; N] {
    const SIZE: usize = T::SIZE * N;

    fn put(self, out: &mut Vec<u8>) {
        self.into_iter().for_each(|cell| cell.put(out));
    }

    fn take(bytes: &[u8]) -> Self {
        let mut cells = [T::default(); N];
        for (cell, bytes) in cells.iter_mut().zip(bytes.chunks_exact(T::SIZE)) {
            *cell = T::take(bytes);
        }
        cells
    }
}

/// Where columns are written to.
pub(crate) struct Writing<'a> {
    out: &'a mut dyn Write,
    piece: Vec<u8>,
    /// Tells whether what is read is what was written.
    sum: Hasher,
}

impl<'a> Writing<'a> {
    pub(crate) fn new(out: &'a mut dyn Write) -> Self {
        let piece = Vec::with_capacity(PIECE + 64);
        let sum = Hasher::new();
        Self { out, piece, sum }
    }

    pub(crate) fn cell<T: Cell>(&mut self, cell: T) -> io::Result<()> {
        cell.put(&mut self.piece);
        if self.piece.len() < PIECE {
            return Ok(());
        }
        self.send()
    }

    fn send(&mut self) -> io::Result<()> {
        self.sum.update(&self.piece);
        let sent = self.out.write_all(&self.piece);
        self.piece.clear();
        sent
    }

    /// A column that says how long it is.
    pub(crate) fn column<T: Cell>(
        &mut self,
        length: usize,
        cells: impl IntoIterator<Item = T>,
    ) -> io::Result<()> {
        self.cell(length as u64)?;
        cells
            .into_iter()
            .take(length)
            .try_for_each(|cell| self.cell(cell))
    }

    pub(crate) fn text(&mut self, text: &str) -> io::Result<()> {
        self.column(text.len(), text.bytes())
    }

    /// Sends what is left, and the checksum.
    pub(crate) fn end(mut self) -> io::Result<()> {
        self.send()?;
        self.out.write_all(&self.sum.finalize().to_le_bytes())
    }
}

/// Where columns are read from. Nothing is believed that is longer than what is there.
pub(crate) struct Reading<'a> {
    from: &'a mut dyn Read,
    left: u64,
    piece: Vec<u8>,
    sum: Hasher,
}

impl<'a> Reading<'a> {
    pub(crate) fn new(from: &'a mut dyn Read, bytes: u64) -> Self {
        let piece = vec![0; PIECE];
        Self {
            from,
            left: bytes,
            piece,
            sum: Hasher::new(),
        }
    }

    pub(crate) fn cell<T: Cell>(&mut self) -> io::Result<T> {
        let bytes = self.bytes(T::SIZE)?;
        Ok(T::take(bytes))
    }

    /// The next bytes, at most a piece of them.
    fn bytes(&mut self, count: usize) -> io::Result<&[u8]> {
        let left = self.left.checked_sub(count as u64);
        self.left = left.ok_or_else(|| wrong("it is truncated"))?;
        let room = self.piece.get_mut(..count);
        let bytes = room.ok_or_else(|| wrong("a cell is too large"))?;
        self.from.read_exact(bytes)?;
        self.sum.update(bytes);
        Ok(bytes)
    }

    pub(crate) fn column<T: Cell>(&mut self) -> io::Result<Vec<T>> {
        let length: u64 = self.cell()?;
        let bytes = length.checked_mul(T::SIZE as u64);
        let bytes = bytes.filter(|bytes| *bytes <= self.left);
        let bytes = bytes.ok_or_else(|| wrong("a column is longer than the rest of the file"))?;
        let mut cells = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
        let mut left = usize::try_from(bytes).unwrap_or(0);
        while left > 0 {
            let piece = self.bytes(left.min(PIECE))?;
            T::take_all(piece, &mut cells);
            left -= piece.len();
        }
        Ok(cells)
    }

    /// A column of this length.
    pub(crate) fn column_of<T: Cell>(&mut self, length: usize) -> io::Result<Vec<T>> {
        let cells = self.column()?;
        if cells.len() == length {
            return Ok(cells);
        }
        Err(wrong("a column has the wrong length"))
    }

    /// Whether all that was read is what was written.
    pub(crate) fn end(self) -> io::Result<()> {
        let mut sum = [0; 4];
        self.from.read_exact(&mut sum)?;
        if u32::from_le_bytes(sum) == self.sum.finalize() {
            return Ok(());
        }
        Err(wrong("it is damaged"))
    }

    pub(crate) fn text(&mut self) -> io::Result<String> {
        String::from_utf8(self.column()?).map_err(|_| wrong("a text is not UTF-8"))
    }
}

pub(crate) fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_come_back() {
        let numbers: Vec<[u32; 3]> = (0..30_000).map(|n| [n, n * 2, n * 3]).collect();
        let codes: Vec<i8> = (0..100_000_u32).map(|n| (n % 255) as u8 as i8).collect();
        let mut out = Vec::new();
        let mut writing = Writing::new(&mut out);
        writing.column(numbers.len(), numbers.clone()).unwrap();
        writing.text("Zażółć").unwrap();
        writing.column(codes.len(), codes.clone()).unwrap();
        writing.cell(0.25_f32).unwrap();
        writing.end().unwrap();
        let mut from = out.as_slice();
        let mut reading = Reading::new(&mut from, out.len() as u64);
        assert_eq!(reading.column::<[u32; 3]>().unwrap(), numbers);
        assert_eq!(reading.text().unwrap(), "Zażółć");
        assert_eq!(reading.column_of::<i8>(codes.len()).unwrap(), codes);
        assert_eq!(reading.cell::<f32>().unwrap(), 0.25);
        reading.end().unwrap();
    }

    #[test]
    fn damage_is_seen_wherever_it_is() {
        let mut out = Vec::new();
        let mut writing = Writing::new(&mut out);
        writing.column(100, 0..100_u8).unwrap();
        writing.end().unwrap();
        let read = |bytes: &[u8]| {
            let (mut from, bytes) = (bytes, bytes.len() as u64);
            let mut reading = Reading::new(&mut from, bytes);
            reading.column::<u8>()?;
            reading.end()
        };
        read(&out).unwrap();
        for at in 0..out.len() {
            let mut damaged = out.clone();
            damaged[at] ^= 4;
            assert!(read(&damaged).is_err(), "byte {at}");
            assert!(read(&out[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn a_length_that_cannot_be_is_refused_before_room_is_made() {
        let mut out = u64::MAX.to_le_bytes().to_vec();
        out.extend([0; 8]);
        let mut from = out.as_slice();
        let mut reading = Reading::new(&mut from, 16);
        assert!(reading.column::<u64>().is_err());
    }
}
