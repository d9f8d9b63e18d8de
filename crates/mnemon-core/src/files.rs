//! The port to Markdown that people and agents edit together.

use async_trait::async_trait;

use crate::{ErrorKind, Time};

/// Files under one root, named by relative paths with `/`. No name leads out of the root.
#[async_trait]
pub trait Files: Send + Sync {
    /// The file's bytes and stamp; `None` when there is no such file.
    async fn read(&self, path: &str) -> Result<Option<File>, FilesError>;

    /// Replaces the file whole, if it is still as `unchanged_since` says (`None`: it must not be
    /// there). When it returns, the new content survives a power cut.
    async fn write(
        &self,
        path: &str,
        bytes: &[u8],
        unchanged_since: Option<&Stamp>,
    ) -> Result<Stamp, FilesError>;

    /// The files below a folder, sorted by path; empty when there is no such folder.
    async fn list(&self, folder: &str) -> Result<Vec<Listed>, FilesError>;

    /// What changed below the folder since the stamps of an earlier list: a watch that a caller
    /// polls, so that core and engine need no threads.
    async fn changed(&self, folder: &str, known: &[Listed]) -> Result<Vec<String>, FilesError>;
}

/// A file's content at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    pub bytes: Vec<u8>,
    pub stamp: Stamp,
}

/// Tells one content of a file from another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// A digest of the content.
    pub digest: String,
    pub modified: Time,
}

/// A file in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub path: String,
    pub bytes: u64,
    pub modified: Time,
}

/// Why a file was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    #[error("`{path}` is not a path below the root: {what}")]
    Outside { path: String, what: String },
    #[error("{path} was changed by somebody else in the meantime")]
    Conflict { path: String },
    #[error("{path} has {bytes} bytes, at most {most} are read")]
    TooLarge { path: String, bytes: u64, most: u64 },
    #[error("{path}: {what}")]
    Unavailable {
        path: String,
        what: String,
        #[source]
        source: Option<std::io::Error>,
    },
}

impl FilesError {
    /// What the caller can do about it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Outside { .. } => ErrorKind::Invalid,
            Self::Conflict { .. } => ErrorKind::Conflict,
            Self::TooLarge { .. } => ErrorKind::TooLarge,
            Self::Unavailable { .. } => ErrorKind::Unavailable,
        }
    }
}
