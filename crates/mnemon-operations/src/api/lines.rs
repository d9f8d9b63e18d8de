//! Many things, one JSON document per line: how a line is read, how many go together, and which line
//! is to blame.

use std::collections::HashSet;

use mnemon_core::{Id, Invalid, StoreError, limits, secrets};
use serde::de::DeserializeOwned;

use crate::Error;

/// Things in one batch.
const BATCH: usize = 1000;
/// A line, in bytes: content and body at their limits, and as much again for escapes.
pub const LINE_BYTES: usize = 64 * 1024 * 1024;
/// What became of the other lines when one is wrong.
pub const NOTHING_DONE: &str = " (nothing was written)";

/// Something, and the line it came from.
#[derive(Debug)]
pub struct Numbered<T> {
    pub line: u64,
    pub bytes: usize,
    pub value: T,
}

/// What a line holds; nothing if it is blank.
pub fn decode<T: DeserializeOwned>(
    line: u64,
    bytes: Vec<u8>,
) -> Result<Option<Numbered<T>>, Error> {
    let text = utf8("line", bytes)?;
    // Some editors mark UTF-8 with an invisible character at the very beginning.
    let text = match line {
        1 => text.trim_start_matches('\u{feff}'),
        _ => text.as_str(),
    };
    if text.trim().is_empty() {
        return Ok(None);
    }
    let value = serde_json::from_str(text).map_err(|error| json_error(&error))?;
    Ok(Some(Numbered {
        line,
        bytes: text.len(),
        value,
    }))
}

/// The bytes as text, or where they are none.
pub fn utf8(field: &str, bytes: Vec<u8>) -> Result<String, Error> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let what = format!("is not UTF-8 text: invalid byte at offset {at}");
        Invalid::new(field, what).into()
    })
}

/// The message with the column; the parser's own line is always 1 here and would mislead.
fn json_error(error: &serde_json::Error) -> Error {
    let text = error.to_string();
    let suffix = format!(" at line {} column {}", error.line(), error.column());
    let what = text.strip_suffix(&suffix).unwrap_or(&text);
    Invalid::new(format!("column {}", error.column()), what).into()
}

/// A line that has no end.
pub fn too_long() -> Error {
    let what = format!("is longer than {LINE_BYTES} bytes");
    Invalid::new("line", what).into()
}

/// Lines that are written together: at most [`BATCH`] of them and half of what a commit may weigh. An
/// id comes at most once.
#[derive(Debug)]
pub struct Batch<T> {
    pub items: Vec<Numbered<T>>,
    seen: HashSet<Id>,
    bytes: usize,
}

impl<T> Default for Batch<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            seen: HashSet::new(),
            bytes: 0,
        }
    }
}

impl<T> Batch<T> {
    /// Takes the line, or gives it back if it does not fit.
    pub fn take(&mut self, item: Numbered<T>, id: Option<Id>) -> Result<(), Numbered<T>> {
        self.bytes += item.bytes;
        let full = self.items.len() == BATCH || self.bytes > limits::BATCH_BYTES / 2;
        let twice = id.is_some_and(|id| !self.seen.insert(id));
        if !self.items.is_empty() && (full || twice) {
            return Err(item);
        }
        self.items.push(item);
        Ok(())
    }
}

/// The error with the line it is about.
pub fn at(place: &str, line: u64, done: &str, source: Error) -> Error {
    Error::Line {
        place: place.to_owned(),
        line,
        done: done.to_owned(),
        source: Box::new(source),
    }
}

/// The line of a batch that an error is about, if it is known; otherwise the first. `ids` are those
/// of the batch.
pub fn blamed(ids: &[(u64, Option<Id>)], error: &Error) -> u64 {
    let first = ids.first().map_or(1, |(line, _)| *line);
    let found = match error {
        Error::Engine(mnemon_engine::Error::Store(StoreError::Conflict { id, .. })) => {
            let mut lines = ids.iter().rev();
            lines.find(|(_, theirs)| theirs.as_ref() == Some(id))
        }
        Error::Engine(mnemon_engine::Error::Invalid(invalid)) => {
            let mut lines = ids.iter();
            lines.find(|(_, theirs)| theirs.as_ref().is_some_and(|id| is_about(invalid, id)))
        }
        _ => None,
    };
    found.map_or(first, |(line, _)| *line)
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
