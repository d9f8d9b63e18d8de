//! The files of an audit log, and lines from their ends.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::{AuditEntry, AuditError, AuditLog, ROOM_BYTES, beside, failed};
use crate::files::parent;

/// A longer line is not one of ours: a hundred ids and three names have less.
pub(super) const LINE_BYTES: u64 = 256 * 1024;

/// Digits of the number of the first entry in the name of a rotated file, so that names sort.
const DIGITS: usize = 20;

impl AuditLog {
    /// The newest entries, oldest first. Lines that cannot be read are left out.
    pub fn tail(&self, most: usize) -> Result<Vec<AuditEntry>, AuditError> {
        let mut paths = rotated(&self.path).map_err(|source| failed(&self.path, source))?;
        if self.path.is_file() {
            paths.push(self.path.clone());
        }
        if paths.is_empty() {
            return Err(AuditError::Missing(self.path.clone()));
        }
        let mut entries: VecDeque<AuditEntry> = VecDeque::new();
        while entries.len() < most
            && let Some(path) = paths.pop()
        {
            let lines = last_lines(&path, most - entries.len());
            let lines = lines.map_err(|source| failed(&path, source))?;
            for entry in lines
                .iter()
                .rev()
                .filter_map(|line| serde_json::from_slice(line).ok())
            {
                entries.push_front(entry);
            }
        }
        Ok(entries.into())
    }
}

/// The rotated files of a log, in the order of their entries.
pub(super) fn rotated(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = match fs::read_dir(parent(path)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let other = path.with_file_name(entry?.file_name());
        let number = other.extension().and_then(|number| number.to_str());
        if let Some(first) = number.and_then(|number| number.parse().ok())
            && rotated_path(path, first) == other
        {
            found.push(other);
        }
    }
    found.sort();
    Ok(found)
}

/// `audit.jsonl` with the entries from 7 on becomes `audit.jsonl.00000000000000000007`.
pub(super) fn rotated_path(path: &Path, first: u64) -> PathBuf {
    beside(path, &format!("{first:0DIGITS$}"))
}

/// The number of the first entry of a file.
pub(super) fn first_seq(path: &Path) -> io::Result<Option<u64>> {
    let mut line = Vec::new();
    let mut file = BufReader::new(File::open(path)?.take(LINE_BYTES));
    file.read_until(b'\n', &mut line)?;
    let entry = serde_json::from_slice::<AuditEntry>(&line);
    Ok(entry.ok().map(|entry| entry.seq))
}

/// The byte at this place of a file.
pub(super) fn byte_at(file: &mut File, place: u64) -> io::Result<u8> {
    let mut byte = [0];
    file.seek(SeekFrom::Start(place))?;
    file.read_exact(&mut byte)?;
    Ok(byte[0])
}

/// The length of a file of this size without the spaces at its end.
pub(super) fn end_of_entries(file: &mut File, size: u64) -> io::Result<u64> {
    let mut end = size;
    while end > 0 {
        let start = end.saturating_sub(ROOM_BYTES);
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        file.take(end - start).read_to_end(&mut bytes)?;
        if let Some(last) = bytes.iter().rposition(|byte| *byte != b' ') {
            return Ok(start + last as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Where the last whole line of entries of this length ends, and that line without its line break.
pub(super) fn last_line(file: &mut File, length: u64) -> io::Result<(u64, Option<Vec<u8>>)> {
    // An unfinished line and a whole one before it.
    let start = length.saturating_sub(2 * LINE_BYTES);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(length - start).read_to_end(&mut bytes)?;
    let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') else {
        return Ok((start, None));
    };
    bytes.truncate(end);
    let line = bytes.rsplit(|byte| *byte == b'\n').next();
    Ok((start + end as u64 + 1, line.map(<[u8]>::to_vec)))
}

/// The last lines of a file, at most this many; the spaces at its end are none.
fn last_lines(path: &Path, most: usize) -> io::Result<VecDeque<Vec<u8>>> {
    let mut lines = VecDeque::new();
    let mut file = BufReader::new(File::open(path)?);
    loop {
        let mut line = Vec::new();
        file.read_until(b'\n', &mut line)?;
        if line.iter().all(|byte| *byte == b' ') {
            return Ok(lines);
        }
        if lines.len() == most {
            lines.pop_front();
        }
        lines.push_back(line);
    }
}
