//! Many things, one JSON document per line.
//!
//! The whole input is checked before the first line is written, so that a mistake on the last line
//! leaves the store as it was. What cannot be read twice is put aside in a temporary file first.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::Path;

use mnemon_core::{Id, Invalid};
use serde::de::DeserializeOwned;

use mnemon_operations::Error;
use mnemon_operations::api::lines::{
    Batch, LINE_BYTES, NOTHING_DONE, Numbered, at, blamed, decode, too_long,
};

/// A file of lines that can be read again.
pub(super) struct Lines {
    /// What to call it in a message.
    pub(super) place: String,
    file: File,
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

    /// The file, from its beginning.
    pub(super) fn into_file(mut self) -> Result<File, Error> {
        self.file.rewind().map_err(Error::Input)?;
        Ok(self.file)
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

struct Decoded<'a, T> {
    place: &'a str,
    reader: BufReader<&'a mut File>,
    line: u64,
    kind: std::marker::PhantomData<T>,
}

impl<T: DeserializeOwned> Decoded<'_, T> {
    fn next_line(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let mut bytes = Vec::new();
        let mut bounded = (&mut self.reader).take(LINE_BYTES as u64);
        let read = bounded
            .read_until(b'\n', &mut bytes)
            .map_err(Error::Input)?;
        if read == 0 {
            return Ok(None);
        }
        if read == LINE_BYTES && bytes.last() != Some(&b'\n') {
            return Err(too_long());
        }
        Ok(Some(bytes))
    }

    fn step(&mut self) -> Result<Option<Numbered<T>>, Error> {
        loop {
            self.line += 1;
            let Some(bytes) = self.next_line()? else {
                return Ok(None);
            };
            if let Some(item) = decode(self.line, bytes)? {
                return Ok(Some(item));
            }
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

/// The lines of an input in batches.
pub(super) struct Batches<'a, T> {
    lines: Decoded<'a, T>,
    id: fn(&T) -> Option<&Id>,
    /// The line that did not fit into the batch before.
    held: Option<Numbered<T>>,
}

impl<T: DeserializeOwned> Iterator for Batches<'_, T> {
    type Item = Result<Vec<Numbered<T>>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut batch = Batch::default();
        loop {
            let item = match self.held.take().map(Ok).or_else(|| self.lines.next()) {
                Some(Ok(item)) => item,
                Some(Err(error)) => return Some(Err(error)),
                None => break,
            };
            let id = (self.id)(&item.value).cloned();
            if let Err(item) = batch.take(item, id) {
                self.held = Some(item);
                break;
            }
        }
        (!batch.items.is_empty()).then_some(Ok(batch.items))
    }
}

/// The error of a batch, with the line that is to blame if that can be told, and with what became
/// of the lines before. `ids` are those of the batch.
pub(super) fn blame(place: &str, ids: &[(u64, Option<Id>)], error: Error) -> Error {
    let first = ids.first().map_or(1, |(line, _)| *line);
    let line = blamed(ids, &error);
    match first {
        1 => at(place, line, NOTHING_DONE, error),
        _ => {
            let done = format!(" (the lines before line {first} were written)");
            at(place, line, &done, error)
        }
    }
}
