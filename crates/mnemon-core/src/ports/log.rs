//! The port to logs that only ever grow: written at the end, read from the end, and erased whole.
//!
//! A [`Files`](crate::ports::files::Files) replaces a file whole. A log must not be replaced, and may be
//! far too long to be read whole: it has a port of its own.

use async_trait::async_trait;

use crate::ports::files::FilesError;

/// Logs under one root, named like files.
#[async_trait]
pub trait Log: Send + Sync {
    /// Writes the bytes, which end with a line break, at the end of the log, and makes it if there
    /// is none. If the log ends in the middle of a line (a writer was cut off), that line is ended
    /// first, so that the two do not run into each other. When it returns, the bytes survive a
    /// power cut. Two writers never mix their bytes. Returns how long the log is now.
    async fn append(&self, path: &str, bytes: &[u8]) -> Result<u64, FilesError>;

    /// At most `most` bytes before `end` (`None`: before the end of the log); `None` when there is
    /// no such log. Nothing else of the log is read.
    async fn read_before(
        &self,
        path: &str,
        end: Option<u64>,
        most: usize,
    ) -> Result<Option<Piece>, FilesError>;

    /// Erases the log whole, for a purge; whether there was one. A writer that was waiting to
    /// append begins a new log. When it returns, the log stays away after a power cut.
    async fn erase(&self, path: &str) -> Result<bool, FilesError>;
}

/// A part of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Where in the log the bytes begin.
    pub start: u64,
    pub bytes: Vec<u8>,
}
