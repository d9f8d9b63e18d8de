//! Which files lie at the database's path: device and inode of the file and of the two that SQLite
//! keeps beside it.
//!
//! SQLite goes on writing to a file that was removed or replaced, and such commits are lost when
//! the process ends. So the identities are compared before a commit is acknowledged. They are read
//! with `stat`, never with `open`: closing a second descriptor of a database file would release
//! the POSIX locks that SQLite holds on it in this process.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use crate::store::beside;

/// The identities of the database, its write-ahead log and its shared memory; `None` for a file
/// that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct FileIds {
    pub(super) main: Option<FileId>,
    wal: Option<FileId>,
    shm: Option<FileId>,
}

/// What became of the files that a connection has open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// They are where others look for them.
    InPlace,
    /// The database was removed, or another file is in its place: what is written to the open one
    /// is lost.
    OtherFile,
    /// The database is the same, but its write-ahead log or shared memory was removed.
    LogRemoved,
    /// The database is the same, but another process has begun another write-ahead log.
    OtherLog,
}

impl FileIds {
    /// The files that are there now.
    pub(super) fn of(path: &Path) -> Self {
        Self {
            main: FileId::of(path),
            wal: FileId::of(&beside(path, "-wal")),
            shm: FileId::of(&beside(path, "-shm")),
        }
    }

    /// Whether the log and the shared memory lie where SQLite should just have made them. They do
    /// not if they were removed while another connection of this process, which shares its own with
    /// every later one, is open.
    pub(super) fn are_complete(&self) -> bool {
        !cfg!(unix) || (self.wal.is_some() && self.shm.is_some())
    }

    /// Removes the log that lies beside another database than the one that it belongs to, of which
    /// these are the identities: SQLite would take it for the other's own, and replay it.
    pub(super) fn remove_orphaned_log(&self, path: &Path) {
        let now = Self::of(path);
        if now.main != self.main && now.wal.is_some() && now.wal == self.wal {
            for suffix in ["-wal", "-shm"] {
                // Whoever was faster has removed it.
                let _ = std::fs::remove_file(beside(path, suffix));
            }
        }
    }

    /// Compares the files that were opened with those that are there now.
    pub(super) fn standing(&self, now: &Self) -> Standing {
        if self == now {
            Standing::InPlace
        } else if self.main != now.main {
            Standing::OtherFile
        } else if now.wal.is_some() && now.wal != self.wal {
            Standing::OtherLog
        } else {
            Standing::LogRemoved
        }
    }
}

/// Which file it is, however it was renamed. The number is not given to another file as long as
/// this one is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    pub(super) fn of(path: &Path) -> Option<Self> {
        std::fs::metadata(path)
            .ok()
            .map(|metadata| Self::from(&metadata))
    }
}

#[cfg(unix)]
impl From<&Metadata> for FileId {
    fn from(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }
}

/// Elsewhere (Windows) the system refuses to remove or rename a file that SQLite has open; only
/// its absence is noticed.
#[cfg(not(unix))]
impl From<&Metadata> for FileId {
    fn from(_metadata: &Metadata) -> Self {
        Self {
            device: 0,
            inode: 0,
        }
    }
}

/// The file that a symbolic link leads to: SQLite keeps its other files beside that one.
pub(crate) fn follow_link(path: &Path) -> PathBuf {
    let is_link = std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink());
    if !is_link {
        return path.to_owned();
    }
    match (std::fs::canonicalize(path), std::fs::read_link(path)) {
        (Ok(file), _) => file,
        // It leads to a file that is not there yet.
        (Err(_), Ok(target)) => crate::files::parent(path).join(target),
        (Err(_), Err(_)) => path.to_owned(),
    }
}
