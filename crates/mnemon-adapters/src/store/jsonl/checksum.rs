//! The checksum at the end of each line: `,"crc":"1a2b3c4d"}`, over the bytes before it.
//!
//! The stamp of such a line says so (`checked`), so that damage to the checksum's own name does
//! not make the line look like one of an older version, which had none.

use crc32fast::Hasher;

/// What stands between the line and its checksum.
const MEMBER: &[u8] = b",\"crc\":\"";
/// The checksum in lower case hexadecimal.
const DIGITS: usize = 8;
/// What stands after the checksum.
const END: &[u8] = b"\"}";
/// How each of our lines begins.
const LINE_START: &[u8] = b"{\"op\":\"";

/// How many places in a damaged line are tried as the beginning of another line.
const STARTS: usize = 64;

/// Whether a line's bytes are those that were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Checksum {
    /// An older version or the original wrote it.
    Absent,
    Right,
    Wrong,
}

/// Puts the checksum into the JSON object that begins at `start`.
pub(super) fn seal(line: &mut Vec<u8>, start: usize) {
    line.pop();
    let sum = digits(crc32fast::hash(line.get(start..).unwrap_or_default()));
    line.extend_from_slice(MEMBER);
    line.extend_from_slice(&sum);
    line.extend_from_slice(END);
}

/// Compares the line with its checksum.
pub(super) fn check(line: &[u8]) -> Checksum {
    let split = line
        .trim_ascii_end()
        .strip_suffix(END)
        .and_then(|line| line.split_last_chunk::<DIGITS>())
        .and_then(|(line, sum)| Some((line.strip_suffix(MEMBER)?, sum)));
    match split {
        None => Checksum::Absent,
        Some((line, sum)) if digits(crc32fast::hash(line)) == *sum => Checksum::Right,
        Some(_) => Checksum::Wrong,
    }
}

/// The whole lines inside a damaged one. A damaged line break joins two lines, and neither of
/// them need be lost.
pub(super) fn lines_within(line: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    let mut rest = line;
    for _ in 0..STARTS {
        let Some(start) = find(rest, LINE_START) else {
            break;
        };
        let from = rest.get(start..).unwrap_or_default();
        rest = match sealed_at_start(from) {
            Some(line) => {
                found.push(line);
                from.get(line.len()..).unwrap_or_default()
            }
            None => from.get(1..).unwrap_or_default(),
        };
    }
    found
}

/// The line that the bytes begin with, if it is there up to a checksum that is right.
fn sealed_at_start(bytes: &[u8]) -> Option<&[u8]> {
    let mut hasher = Hasher::new();
    let mut hashed = 0;
    while let Some(more) = find(bytes.get(hashed..)?, MEMBER) {
        let member = hashed + more;
        hasher.update(bytes.get(hashed..member)?);
        hashed = member;
        let sum = digits(hasher.clone().finalize());
        let after = bytes.get(member + MEMBER.len()..)?;
        if after.starts_with(&sum) && after.get(DIGITS..)?.starts_with(END) {
            return bytes.get(..member + MEMBER.len() + DIGITS + END.len());
        }
        hasher.update(bytes.get(hashed..=hashed)?);
        hashed += 1;
    }
    None
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|part| part == wanted)
}

fn digits(sum: u32) -> [u8; DIGITS] {
    let mut text = [0; DIGITS];
    for (at, digit) in text.iter_mut().rev().enumerate() {
        let value = (sum >> (4 * at)) & 0xf;
        let symbols = *b"0123456789abcdef";
        *digit = symbols.get(value as usize).copied().unwrap_or(b'0');
    }
    text
}

#[cfg(test)]
mod tests;
