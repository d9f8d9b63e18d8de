//! Many things, one JSON document per line.
//!
//! The whole input is checked before the first line is written, so that a mistake on the last line
//! leaves the store as it was. What cannot be read twice is put aside in a temporary file first.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::Path;

use mnemon_core::{Id, Invalid, StoreError, limits, secrets};
use serde::de::DeserializeOwned;

use super::input;
use crate::Error;

/// Things in one batch.
const BATCH: usize = 1000;

/// A line, in bytes: content and body at their limits, and as much again for escapes.
const LINE_BYTES: u64 = 64 * 1024 * 1024;

/// A file of lines that can be read again.
pub(super) struct Lines {
    /// What to call it in a message.
    pub(super) place: String,
    file: File,
}

/// Something, and the line it came from.
pub(super) struct Numbered<T> {
    pub(super) line: u64,
    pub(super) bytes: usize,
    pub(super) value: T,
}

impl Lines {
    /// The lines of this file, or of stdin.
    pub(super) fn open(path: Option<&Path>) -> Result<Self, Error> {
        let Some(path) = path.filter(|path| *path != Path::new("-")) else {
            return Self::put_aside("stdin".to_owned(), io::stdin().lock(), Error::Input);
        };
        let failed = Error::file("read", path);
        let place = path.display().to_string();
        let file = File::open(path).map_err(failed)?;
        let meta = file.metadata().map_err(failed)?;
        if meta.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        if meta.is_file() {
            return Ok(Self { place, file });
        }
        Self::put_aside(place, file, failed)
    }

    fn put_aside(
        place: String,
        mut from: impl Read,
        failed: impl FnOnce(io::Error) -> Error,
    ) -> Result<Self, Error> {
        let folder = std::env::temp_dir();
        let aside = Error::file("used for the input", &folder);
        let mut file = tempfile::tempfile().map_err(aside)?;
        io::copy(&mut from, &mut file).map_err(failed)?;
        Ok(Self { place, file })
    }

    /// Every line decoded, from the first; blank ones are passed over.
    fn decode<T: DeserializeOwned>(&mut self) -> Result<Decoded<'_, T>, Error> {
        self.file.rewind().map_err(Error::Input)?;
        Ok(Decoded {
            place: &self.place,
            reader: BufReader::new(&mut self.file),
            line: 0,
            kind: std::marker::PhantomData,
        })
    }

    /// Every line decoded, in batches; an id comes at most once in a batch.
    pub(super) fn batches<T: DeserializeOwned>(
        &mut self,
        id: fn(&T) -> Option<&Id>,
    ) -> Result<Batches<'_, T>, Error> {
        Ok(Batches {
            lines: self.decode()?,
            id,
            held: None,
        })
    }

    /// Decodes every line, asks `check` about it, and says how many there are. An error says that
    /// nothing was done.
    pub(super) fn check<T: DeserializeOwned>(
        &mut self,
        check: impl Fn(&T) -> Result<(), Invalid>,
    ) -> Result<u64, Error> {
        let place = self.place.clone();
        let mut count = 0;
        for item in self.decode::<T>()? {
            let item = item?;
            check(&item.value)
                .map_err(|invalid| at(&place, item.line, NOTHING_DONE, invalid.into()))?;
            count += 1;
        }
        Ok(count)
    }
}

/// What became of the other lines when one is wrong.
const NOTHING_DONE: &str = " (nothing was written)";

/// The error with the line it is about.
fn at(place: &str, line: u64, done: &str, source: Error) -> Error {
    Error::Line {
        place: place.to_owned(),
        line,
        done: done.to_owned(),
        source: Box::new(source),
    }
}

struct Decoded<'a, T> {
    place: &'a str,
    reader: BufReader<&'a mut File>,
    line: u64,
    kind: std::marker::PhantomData<T>,
}

impl<T: DeserializeOwned> Decoded<'_, T> {
    fn next_line(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let mut bytes = Vec::new();
        let mut bounded = (&mut self.reader).take(LINE_BYTES);
        let read = bounded
            .read_until(b'\n', &mut bytes)
            .map_err(Error::Input)?;
        if read == 0 {
            return Ok(None);
        }
        if read as u64 == LINE_BYTES && bytes.last() != Some(&b'\n') {
            let what = format!("is longer than {LINE_BYTES} bytes");
            return Err(Invalid::new("line", what).into());
        }
        Ok(Some(bytes))
    }

    fn step(&mut self) -> Result<Option<Numbered<T>>, Error> {
        loop {
            self.line += 1;
            let Some(bytes) = self.next_line()? else {
                return Ok(None);
            };
            let text = input::utf8("line", bytes)?;
            // Some editors mark UTF-8 with an invisible character at the very beginning.
            let text = match self.line {
                1 => text.trim_start_matches('\u{feff}'),
                _ => text.as_str(),
            };
            if text.trim().is_empty() {
                continue;
            }
            let value = serde_json::from_str(text).map_err(|error| json_error(&error))?;
            return Ok(Some(Numbered {
                line: self.line,
                bytes: text.len(),
                value,
            }));
        }
    }
}

impl<T: DeserializeOwned> Iterator for Decoded<'_, T> {
    type Item = Result<Numbered<T>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step().transpose()?;
        Some(step.map_err(|error| at(self.place, self.line, NOTHING_DONE, error)))
    }
}

/// The message with the column; the parser's own line is always 1 here and would mislead.
fn json_error(error: &serde_json::Error) -> Error {
    let text = error.to_string();
    let suffix = format!(" at line {} column {}", error.line(), error.column());
    let what = text.strip_suffix(&suffix).unwrap_or(&text);
    Invalid::new(format!("column {}", error.column()), what).into()
}

/// The lines of an input in batches: at most [`BATCH`] lines and half of what a commit may weigh.
pub(super) struct Batches<'a, T> {
    lines: Decoded<'a, T>,
    id: fn(&T) -> Option<&Id>,
    /// The line that did not fit into the batch before.
    held: Option<Numbered<T>>,
}

impl<T: DeserializeOwned> Iterator for Batches<'_, T> {
    type Item = Result<Vec<Numbered<T>>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut batch: Vec<Numbered<T>> = Vec::new();
        let mut seen: HashSet<Id> = HashSet::new();
        let mut bytes = 0;
        loop {
            let item = match self.held.take().map(Ok).or_else(|| self.lines.next()) {
                Some(Ok(item)) => item,
                Some(Err(error)) => return Some(Err(error)),
                None => break,
            };
            bytes += item.bytes;
            let id = (self.id)(&item.value).cloned();
            let full = batch.len() == BATCH || bytes > limits::BATCH_BYTES / 2;
            let twice = id.is_some_and(|id| !seen.insert(id));
            if !batch.is_empty() && (full || twice) {
                self.held = Some(item);
                break;
            }
            batch.push(item);
        }
        (!batch.is_empty()).then_some(Ok(batch))
    }
}

/// The error of a batch, with the line that is to blame if that can be told, and with what became
/// of the lines before. `ids` are those of the batch.
pub(super) fn blame(place: &str, ids: &[(u64, Option<Id>)], error: Error) -> Error {
    let first = ids.first().map_or(1, |(line, _)| *line);
    let line = match &error {
        Error::Engine(mnemon_engine::Error::Store(StoreError::Conflict { id, .. })) => ids
            .iter()
            .rev()
            .find(|(_, theirs)| theirs.as_ref() == Some(id))
            .map_or(first, |(line, _)| *line),
        Error::Engine(mnemon_engine::Error::Invalid(invalid)) => ids
            .iter()
            .find(|(_, theirs)| theirs.as_ref().is_some_and(|id| is_about(invalid, id)))
            .map_or(first, |(line, _)| *line),
        _ => first,
    };
    match first {
        1 => at(place, line, NOTHING_DONE, error),
        _ => {
            let done = format!(" (the lines before line {first} were written)");
            at(place, line, &done, error)
        }
    }
}

/// Whether the engine says this of the record with this id. An id that holds a secret is not
/// repeated in the error.
fn is_about(invalid: &Invalid, id: &Id) -> bool {
    let is_withheld = || secrets::find_in_identifier(id.as_str()).is_some();
    match invalid.field.strip_prefix("record") {
        Some("") => is_withheld(),
        Some(named) => named.trim_start() == id.as_str(),
        None => false,
    }
}
