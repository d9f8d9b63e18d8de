//! Rewriting a log without its dead lines.
//!
//! The next log is written aside and takes the place of the old one in one rename: that is the
//! moment from which it counts. What undo needs goes into a history file before. The header of
//! the log names that file and how much of it counts, so that whatever an interrupted rewrite left
//! behind is neither read twice nor mistaken for the truth.

use std::collections::HashMap;
use std::fs;
use std::io::{self, BufWriter, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use mnemon_core::commit::Effect;
use mnemon_core::ram::Image;
use mnemon_core::{Id, StoreError, Time};

use super::disk::{self, write_failed};
use super::encode;
use super::folder::Folder;
use super::line::{Header, HistoryRef};
use super::reader::Mark;
use super::state::{Filed, State};
use crate::private;
use crate::store::unavailable;

impl Folder {
    /// Writes the log anew from the image. Of what was `purged`, which the image no longer holds,
    /// no copy stays in the folder. When it is not certain that the new log stays, the state is
    /// forgotten; after any other error nothing has changed.
    pub(super) fn rewrite(&self, state: &mut State, purged: &[Id]) -> Result<(), StoreError> {
        let (header, filed, mark) = self.write_aside(state, purged)?;
        let _held = disk::hold_next_log(&self.paths.aside);
        fs::rename(&self.paths.aside, &self.paths.log)
            .map_err(|error| write_failed(&self.paths.log, error))?;
        if let Some(log) = &state.log {
            state.notices.cut_bytes += log.reached.torn;
        }
        state.notices.torn_bytes = 0;
        state.log = None;
        state.adopt(&self.paths, mark);
        if let Some(log) = &mut state.log {
            log.header = Some(header);
            log.filed = filed;
        }
        let settled = self.paths.sync_folder().and_then(|()| self.sweep(state));
        settled.map_err(|error| {
            *state = State::default();
            write_failed(&self.paths.folder, error)
        })
    }

    fn write_aside(
        &self,
        state: &State,
        purged: &[Id],
    ) -> Result<(Header, Filed, Mark), StoreError> {
        self.refuse_link()?;
        self.keep_bad_lines(state, purged)?;
        let generation = state.header().map_or(1, |header| header.generation + 1);
        let (history, filed) = self.write_history(state, generation, !purged.is_empty())?;
        let header = Header {
            generation,
            last_seq: state.image.last_seq(),
            history,
            clock: Some(state.image.clock()),
        };
        let mark = write_log(&self.paths.aside, &header, &state.image)
            .and_then(|mark| self.like_log(&self.paths.aside).map(|()| mark))
            .map_err(|error| {
                // What is left aside is no harm, it is overwritten or swept next time.
                let _ = disk::remove(&self.paths.aside);
                write_failed(&self.paths.aside, error)
            })?;
        Ok((header, filed, mark))
    }

    /// Renaming would replace the link, and leave the file that it points to as it is.
    fn refuse_link(&self) -> Result<(), StoreError> {
        let is_link = fs::symlink_metadata(&self.paths.log).is_ok_and(|meta| meta.is_symlink());
        if !is_link {
            return Ok(());
        }
        let what = "it is a symbolic link, which a rewrite would replace";
        let place = self.paths.log.display().to_string();
        Err(unavailable(place, what, what))
    }

    /// Brings the history up to what the image holds: appends what is new, or writes it all into
    /// a new file when something in the old one must go.
    fn write_history(
        &self,
        state: &State,
        generation: u64,
        purging: bool,
    ) -> Result<(Option<HistoryRef>, Filed), StoreError> {
        if let (Some(history), Some(log)) = (state.history(), &state.log)
            && !purging
            && !log.filed.is_stale(&state.image)
            && self.is_whole(history)
        {
            let path = self.paths.history(&history.file);
            return append_history(&path, history.clone(), &log.filed, &state.image)
                .map(|(history, filed)| (Some(history), filed))
                .map_err(|error| write_failed(&path, error));
        }
        let file = disk::history_name(generation);
        let path = self.paths.history(&file);
        let history = HistoryRef { file, bytes: 0 };
        disk::remove(&path)
            .and_then(|_| append_history(&path, history, &Filed::default(), &state.image))
            .and_then(|(history, filed)| {
                if history.bytes == 0 {
                    disk::remove(&path)?;
                    return Ok((None, filed));
                }
                self.like_log(&path)?;
                self.paths.sync_folder()?;
                Ok((Some(history), filed))
            })
            .map_err(|error| write_failed(&path, error))
    }

    /// Whoever may read the log may read what is made from it, and nobody else.
    pub(super) fn like_log(&self, path: &Path) -> io::Result<()> {
        match disk::look(&self.paths.log)? {
            Some(metadata) => fs::set_permissions(path, metadata.permissions()),
            None => Ok(()),
        }
    }

    fn is_whole(&self, history: &HistoryRef) -> bool {
        let metadata = fs::metadata(self.paths.history(&history.file));
        metadata.is_ok_and(|metadata| metadata.len() >= history.bytes)
    }

    /// What an interrupted rewrite left behind. Without a header nobody can say which history
    /// is meant, so none is named.
    pub(super) fn leftovers(&self, state: &State) -> Vec<PathBuf> {
        let mut found = Vec::new();
        found.extend(Some(self.paths.aside.clone()).filter(|path| path.exists()));
        found.extend(Some(self.paths.bad_aside.clone()).filter(|path| path.exists()));
        if let Some(header) = state.header() {
            let current = header.history.as_ref().map(|history| history.file.as_str());
            found.extend(self.paths.histories_but(current).unwrap_or_default());
        }
        found
    }

    /// Removes the leftovers. The caller holds the exclusive lock.
    pub(super) fn sweep(&self, state: &State) -> io::Result<()> {
        let leftovers = self.leftovers(state);
        for path in &leftovers {
            disk::remove(path)?;
        }
        if leftovers.is_empty() {
            return Ok(());
        }
        self.paths.sync_folder()
    }
}

/// Writes a whole log to the disk; the mark is its end.
fn write_log(path: &Path, header: &Header, image: &Image) -> io::Result<Mark> {
    let mut out = BufWriter::with_capacity(1 << 16, disk::create(path)?);
    encode::header(header, &mut out)?;
    let mut lines = 1;
    for (entry, record) in image.current() {
        encode::current(entry, record, &mut out)?;
        lines += 1;
    }
    let file = out.into_inner()?;
    file.sync_all()?;
    Ok(Mark::default().after(file.metadata()?.len(), lines))
}

/// Appends to a history what it does not hold yet, and waits for the disk.
fn append_history(
    path: &Path,
    history: HistoryRef,
    filed: &Filed,
    image: &Image,
) -> io::Result<(HistoryRef, Filed)> {
    let mut options = private::options();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    // Whatever lies beyond was appended by a rewrite that did not come to its end.
    file.set_len(history.bytes)?;
    file.seek(SeekFrom::Start(history.bytes))?;
    let mut filed = filed.clone();
    let mut out = BufWriter::with_capacity(1 << 16, file);
    for past in image.past() {
        if filed.seqs.insert(past.entry.seq) {
            encode::past(past, &mut out)?;
        }
    }
    for effect in image.receipt_effects() {
        if let Effect::Receipt { key, at, .. } = &effect
            && filed.keys.insert(key.name.clone(), *at).is_none()
        {
            encode::receipt(&effect, &mut out)?;
        }
    }
    let file = out.into_inner()?;
    file.sync_all()?;
    let bytes = file.metadata()?.len();
    let file = history.file;
    Ok((HistoryRef { file, bytes }, filed))
}

impl Filed {
    /// Whether the file holds something that must go: dropped or erased history, a receipt past
    /// its time or replaced by a later one, a line that cannot be read.
    fn is_stale(&self, image: &Image) -> bool {
        let receipts = image.receipt_effects();
        let kept: HashMap<&str, Time> = receipts
            .iter()
            .filter_map(|effect| match effect {
                Effect::Receipt { key, at, .. } => Some((key.name.as_str(), *at)),
                _ => None,
            })
            .collect();
        self.damaged
            || self.seqs.iter().any(|seq| !image.has_past(*seq))
            || self
                .keys
                .iter()
                .any(|(key, at)| kept.get(key.as_str()) != Some(at))
    }
}
