//! Pages of the audit log of one tenant, newest entries first.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use mnemon_core::{Tenant, limits};

use super::read::{LINE_BYTES, end_of_entries, rotated};
use super::{AuditEntry, AuditError, AuditLog, failed};

/// Bytes that are read at once, from the end of a file towards its beginning.
const BLOCK_BYTES: u64 = 256 * 1024;
/// Bytes that nearly always hold a whole entry.
const SMALL_BYTES: u64 = 8 * 1024;
/// The tenant of an entry stands before this byte: a number, a time and a caller precede it.
const TENANT_BYTES: usize = 8 * 1024;

/// Entries of one tenant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditPage {
    /// Newest first.
    pub entries: Vec<AuditEntry>,
    /// Older entries of all tenants begin before this number; absent at the beginning of the log.
    pub next: Option<u64>,
    /// Lines that are not entries.
    pub unreadable: u64,
}

impl AuditLog {
    /// At most `most` entries of the tenant that are older than the entry `before`.
    ///
    /// One page reads at most [`limits::AUDIT_PAGE_BYTES`] of the log. A tenant with few entries among
    /// many of others gets a short page, or an empty one, with the number to continue from.
    pub fn page(
        &self,
        tenant: &Tenant,
        before: Option<u64>,
        most: usize,
    ) -> Result<AuditPage, AuditError> {
        self.page_within(tenant, before, most, limits::AUDIT_PAGE_BYTES)
    }

    pub(super) fn page_within(
        &self,
        tenant: &Tenant,
        before: Option<u64>,
        most: usize,
        bytes: u64,
    ) -> Result<AuditPage, AuditError> {
        loop {
            let files = self.files()?;
            let mut reading = Reading::new(tenant, before, most, bytes);
            let is_over = reading.files(&files, before)?;
            // A file that was full meanwhile has another name, and would be missing.
            if self.files()? != files {
                continue;
            }
            if !is_over {
                reading.page.next = None;
            }
            return Ok(reading.page);
        }
    }

    /// The files of the log, in the order of their entries.
    fn files(&self) -> Result<Vec<PathBuf>, AuditError> {
        let mut paths = rotated(&self.path).map_err(|source| failed(&self.path, source))?;
        match self.path.try_exists() {
            Ok(true) => paths.push(self.path.clone()),
            Ok(false) => {}
            Err(source) => return Err(failed(&self.path, source)),
        }
        Ok(paths)
    }
}

/// A page that is being filled.
struct Reading {
    page: AuditPage,
    /// The tenant as a line has it, by which lines of others are skipped without parsing them.
    mark: Vec<u8>,
    tenant: Tenant,
    before: u64,
    most: usize,
    bytes: u64,
}

impl Reading {
    fn new(tenant: &Tenant, before: Option<u64>, most: usize, bytes: u64) -> Self {
        let name = serde_json::to_string(tenant).unwrap_or_default();
        Self {
            page: AuditPage::default(),
            mark: format!("\"tenant\":{name}").into_bytes(),
            tenant: tenant.clone(),
            before: before.unwrap_or(u64::MAX),
            most,
            bytes,
        }
    }

    /// Reads files from the newest one on; whether the page is complete.
    fn files(&mut self, paths: &[PathBuf], before: Option<u64>) -> Result<bool, AuditError> {
        for path in paths.iter().rev() {
            let is_over = match self.file(path, before) {
                // It was renamed meanwhile; the caller notices.
                Err(error) if error.kind() == io::ErrorKind::NotFound => false,
                read => read.map_err(|source| failed(path, source))?,
            };
            if is_over {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads a file from its end, or from the entry to begin before; whether the page is complete.
    fn file(&mut self, path: &Path, before: Option<u64>) -> io::Result<bool> {
        let mut file = File::open(path)?;
        let size = file.metadata()?.len();
        let mut end = end_of_entries(&mut file, size)?;
        if let Some(before) = before {
            end = start_of(&mut file, end, before)?;
        }
        // The beginning of a line that the next block completes.
        let mut rest = Vec::new();
        while end > 0 {
            let start = end.saturating_sub(BLOCK_BYTES);
            let mut block = Vec::new();
            file.seek(SeekFrom::Start(start))?;
            (&mut file).take(end - start).read_to_end(&mut block)?;
            block.append(&mut rest);
            let mut lines = block.rsplit(|byte| *byte == b'\n').peekable();
            while let Some(line) = lines.next() {
                if lines.peek().is_none() && start > 0 {
                    rest = line.to_vec();
                } else if !line.is_empty() && self.line(line) {
                    return Ok(true);
                }
            }
            if rest.len() as u64 > LINE_BYTES {
                // No entry is that long: it is a damaged part of the file.
                self.page.unreadable += 1;
                rest.clear();
            }
            self.bytes = self.bytes.saturating_sub(end - start);
            end = start;
        }
        Ok(false)
    }

    /// Takes a line; whether the page is complete.
    fn line(&mut self, line: &[u8]) -> bool {
        if !contains(line, &self.mark) {
            // The number is read only where the page ends here.
            return self.bytes == 0 && self.end_at(line);
        }
        let Ok(entry) = serde_json::from_slice::<AuditEntry>(line) else {
            self.page.unreadable += 1;
            return false;
        };
        if entry.seq >= self.before || entry.tenant != self.tenant {
            return false;
        }
        // The chain begins with number 1.
        self.page.next = Some(entry.seq).filter(|seq| *seq > 1);
        self.page.entries.push(entry);
        self.page.entries.len() >= self.most || self.bytes == 0
    }

    /// Ends the page at the entry of another tenant.
    fn end_at(&mut self, line: &[u8]) -> bool {
        let entry = serde_json::from_slice::<AuditEntry>(line);
        match entry {
            Ok(entry) if entry.seq < self.before => {
                self.page.next = Some(entry.seq);
                true
            }
            _ => false,
        }
    }
}

/// Where the entry of this number begins, or the first one after it; found by halving, as numbers
/// rise from line to line.
fn start_of(file: &mut File, end: u64, number: u64) -> io::Result<u64> {
    let (mut low, mut high) = (0, end);
    while low < high {
        let middle = low.midpoint(high);
        match entry_after(file, middle, end)? {
            Some((_, seq)) if seq < number => low = middle + 1,
            _ => high = middle,
        }
    }
    // `low` is the first place behind which no older entry begins.
    Ok(entry_after(file, low, end)?.map_or(end, |(start, _)| start))
}

/// The first readable entry that begins at this place or behind it: its place and its number.
fn entry_after(file: &mut File, place: u64, end: u64) -> io::Result<Option<(u64, u64)>> {
    let (mut at, mut size) = (place, SMALL_BYTES);
    while at < end {
        // The byte before shows whether a line begins here.
        let from = at.saturating_sub(1);
        let most = (end - from).min(size);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        (&mut *file).take(most).read_to_end(&mut bytes)?;
        let mut start = 0;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let begins = from + start;
            start += line.len() as u64;
            if begins >= at
                && line.ends_with(b"\n")
                && let Ok(entry) = serde_json::from_slice::<AuditEntry>(line)
            {
                return Ok(Some((begins, entry.seq)));
            }
        }
        match size < 2 * LINE_BYTES {
            true => size = 2 * LINE_BYTES,
            false => at = from + most,
        }
    }
    Ok(None)
}

/// Whether the beginning of a line, which has the tenant, contains this part.
fn contains(line: &[u8], part: &[u8]) -> bool {
    let start = line.get(..TENANT_BYTES).unwrap_or(line);
    start.windows(part.len()).any(|window| window == part)
}
