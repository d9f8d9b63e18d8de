//! Lines that could not be read: kept beside the log when it is rewritten, not destroyed.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};

use mnemon_core::{Id, StoreError};

use super::disk::{self, read_failed, write_failed};
use super::folder::Folder;
use super::reader::{self, Bad, Mark, Sink};
use super::state::{State, walk_history};
use crate::private;

/// Collects the places of bad lines.
#[derive(Default)]
struct BadLines(Vec<Bad>);

impl Sink for BadLines {
    fn bad(&mut self, bad: Bad) {
        self.0.push(bad);
    }
}

impl Folder {
    /// Copies the bad lines aside, except those that mention what was purged.
    pub(super) fn keep_bad_lines(&self, state: &State, purged: &[Id]) -> Result<(), StoreError> {
        let failed = |error| write_failed(&self.paths.bad, error);
        let purged: Vec<Vec<u8>> = purged.iter().filter_map(quoted).collect();
        if !purged.is_empty() && self.paths.bad.exists() {
            self.clean_bad_file(&purged).map_err(failed)?;
        }
        if state.notices.skipped_total == 0 {
            return Ok(());
        }
        let sources = self.find_bad_lines(state)?;
        if sources.iter().all(|(_, bad)| bad.is_empty()) {
            return Ok(());
        }
        self.copy_bad_lines(&sources, &purged).map_err(failed)
    }

    fn find_bad_lines(&self, state: &State) -> Result<Vec<(File, Vec<Bad>)>, StoreError> {
        let log = &self.paths.log;
        let file = File::open(log).map_err(|error| read_failed(log, error))?;
        let mut found = BadLines::default();
        reader::read(&file, Mark::default(), &self.tenant, &mut found)
            .map_err(|stop| stop.told(log))?;
        let mut sources = vec![(file, found.0)];
        if let Some(history) = state.history() {
            let path = self.paths.history(&history.file);
            let mut found = Vec::new();
            // A history that is missing has been reported, and has no lines to keep.
            if let Ok(file) = File::open(&path) {
                walk_history(&path, history.bytes, &self.tenant, |kept| {
                    found.extend(kept.err());
                })
                .map_err(|stop| stop.told(&path))?;
                sources.push((file, found));
            }
        }
        Ok(sources)
    }

    fn copy_bad_lines(&self, sources: &[(File, Vec<Bad>)], purged: &[Vec<u8>]) -> io::Result<()> {
        let mut options = private::options();
        let file = options.append(true).create(true).open(&self.paths.bad)?;
        let mut out = BufWriter::new(file);
        for (file, lines) in sources {
            for bad in lines {
                if bad.bytes == 0 {
                    // There is no line to keep; that it is missing must not be forgotten.
                    writeln!(out, "# line {}: {}", bad.line, bad.why)?;
                    continue;
                }
                let mut file = file;
                file.seek(SeekFrom::Start(bad.offset))?;
                let mut line = Vec::new();
                file.take(bad.bytes).read_to_end(&mut line)?;
                if !mentions(&line, purged) {
                    out.write_all(line.trim_ascii_end())?;
                    out.write_all(b"\n")?;
                }
            }
        }
        out.into_inner()?.sync_all()?;
        self.like_log(&self.paths.bad)
    }

    fn clean_bad_file(&self, purged: &[Vec<u8>]) -> io::Result<()> {
        let mut input = BufReader::new(File::open(&self.paths.bad)?);
        let mut out = BufWriter::new(disk::create(&self.paths.bad_aside)?);
        let mut line = Vec::new();
        while input.read_until(b'\n', &mut line)? > 0 {
            if !mentions(&line, purged) {
                out.write_all(&line)?;
            }
            line.clear();
        }
        out.into_inner()?.sync_all()?;
        self.like_log(&self.paths.bad_aside)?;
        fs::rename(&self.paths.bad_aside, &self.paths.bad)?;
        self.paths.sync_folder()
    }
}

/// The id as it stands in a line.
fn quoted(id: &Id) -> Option<Vec<u8>> {
    let text = serde_json::to_string(id).ok()?;
    Some(text.trim_matches('"').as_bytes().to_vec())
}

fn mentions(line: &[u8], names: &[Vec<u8>]) -> bool {
    names
        .iter()
        .any(|name| line.windows(name.len()).any(|part| part == name.as_slice()))
}
