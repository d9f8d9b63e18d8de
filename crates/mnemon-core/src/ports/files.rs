//! The port to Markdown that people and agents edit together.

use std::io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};

use async_trait::async_trait;

use crate::error::ErrorKind;
use crate::model::{Time, limits};

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

    /// Takes the file away, if it is still as `unchanged_since` says. When it returns, it stays
    /// away after a power cut.
    async fn remove(&self, path: &str, unchanged_since: &Stamp) -> Result<(), FilesError>;

    /// The files below a folder, sorted by path; empty when there is no such folder.
    async fn list(&self, folder: &str) -> Result<Vec<Listed>, FilesError>;

    /// What changed below the folder since the stamps of an earlier list: a watch that a caller
    /// polls, so that core and engine need no threads.
    async fn changed(&self, folder: &str, known: &[Listed]) -> Result<Vec<String>, FilesError>;

    /// Removes temporary files that writers left in the folder when they were killed, and returns
    /// their paths. A backend that makes none has none to remove.
    async fn sweep(&self, _folder: &str, _sweep: Sweep) -> Result<Vec<String>, FilesError> {
        Ok(Vec::new())
    }
}

/// Which temporary files of killed writers are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sweep {
    /// Those in the folder that are older than a day.
    Stale,
    /// The same in the folders below it, too.
    StaleBelow,
    /// All in the folder, whatever their age: for a purge. Writers of the folder take turns, so
    /// that none is being written.
    All,
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
    #[error("{path} was changed by another process in the meantime")]
    Conflict { path: String },
    #[error("{path} has {bytes} bytes, at most {most} are read")]
    TooLarge { path: String, bytes: u64, most: u64 },
    #[error("{path}: there are more than {most} files; use a separate folder")]
    TooMany { path: String, most: usize },
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
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Outside { .. } => ErrorKind::Invalid,
            Self::Conflict { .. } => ErrorKind::Conflict,
            Self::TooLarge { .. } | Self::TooMany { .. } => ErrorKind::TooLarge,
            Self::Unavailable { source, .. } => match source.as_ref().map(std::io::Error::kind) {
                Some(PermissionDenied | ReadOnlyFilesystem) => ErrorKind::Denied,
                Some(StorageFull | QuotaExceeded) => ErrorKind::Full,
                _ => ErrorKind::Unavailable,
            },
        }
    }
}

/// Whether the path names something below a root, as far as the name alone tells: relative, every
/// part with a name of its own, short enough for a file system.
pub fn check_path(path: &str) -> Result<(), FilesError> {
    let wrong = |what: String| {
        let path = path.escape_debug().to_string();
        Err(FilesError::Outside { path, what })
    };
    if path.len() > limits::PATH_BYTES {
        let most = limits::PATH_BYTES;
        return wrong(format!(
            "it has {} bytes, at most {most} are allowed",
            path.len()
        ));
    }
    if path.contains('\\') || path.chars().any(char::is_control) {
        return wrong("it may not hold `\\` or control characters".to_owned());
    }
    for part in path.split('/') {
        if matches!(part, "." | "..") {
            return wrong(format!("it may not hold `{part}`"));
        }
        if part.is_empty() {
            let what = match path {
                "" => "it is empty",
                _ if path.starts_with('/') => "it begins with `/`",
                _ => "a part of it has no name",
            };
            return wrong(what.to_owned());
        }
        let most = limits::PATH_PART_BYTES;
        if part.len() > most {
            let bytes = part.len();
            return wrong(format!("a part has {bytes} bytes, at most {most} fit"));
        }
    }
    Ok(())
}
