//! Documents on disk: which files there are, and what text is in them.
//!
//! [`find`] walks folders; [`FoundFile::read`] reads a file and turns HTML and PDF into text.
//! Neither follows a symbolic link that it meets on the way, so nothing outside of the named
//! folders is read and a loop of links is harmless.

mod find;
mod html;
mod pdf;
mod read;

use std::io;

use mnemon_core::{ErrorKind, limits};

pub(crate) use find::modified;
pub use find::{Found, FoundFile, NotTaken, find, is_gone};
pub use read::FileText;

pub const TEXT_FILE_BYTES: u64 = limits::DOCUMENT_BYTES as u64;
/// A PDF file, in bytes; most of it is seldom text.
pub const PDF_FILE_BYTES: u64 = 64 * 1024 * 1024;
/// Files that one search may find.
pub const FILES: usize = 100_000;
/// The thread that reads PDF: when it panics, the file is to blame and is reported.
pub const PDF_THREAD: &str = "pdf";
/// How deep folders are nested.
pub const DEPTH: usize = 100;

/// Why a file was not taken in.
#[derive(Debug, thiserror::Error)]
pub enum FileProblem {
    #[error("there is no such file or folder")]
    Missing,
    #[error("it is a symbolic link; name it on the command line to ingest its target")]
    Link,
    #[error("it is neither a file nor a folder")]
    NotAFile,
    #[error(
        "its file type is not known to be text; name it on the command line to ingest it anyway"
    )]
    UnknownKind,
    #[error(
        "its name is not UTF-8, or has more than {} characters",
        limits::SOURCE_CHARS
    )]
    BadName,
    #[error("it is empty")]
    Empty,
    #[error("it is a binary file: {0}")]
    Binary(&'static str),
    #[error("it has {bytes} bytes, at most {most} are allowed; split it into several files")]
    TooLarge { bytes: u64, most: u64 },
    #[error("it kept changing while it was read; try again")]
    Changed,
    #[error("folders are nested deeper than {DEPTH} levels")]
    TooDeep,
    #[error("there are more than {FILES} files; name smaller folders")]
    TooMany,
    #[error("its elements are nested deeper than {} levels", html::DEPTH)]
    Tangled,
    #[error("it cannot be read")]
    Unreadable(#[source] io::Error),
    #[error("its text cannot be read: {0}")]
    Pdf(String),
    #[error("PDF is not included in this build: rebuild with --features pdf")]
    NoPdf,
}

impl FileProblem {
    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::TooLarge { .. } | Self::TooMany | Self::TooDeep | Self::Tangled => {
                ErrorKind::TooLarge
            }
            Self::Changed => ErrorKind::Busy,
            Self::Unreadable(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                ErrorKind::Denied
            }
            Self::Missing => ErrorKind::NotFound,
            Self::Unreadable(_) => ErrorKind::Unavailable,
            Self::NoPdf => ErrorKind::Unsupported,
            Self::Link
            | Self::NotAFile
            | Self::UnknownKind
            | Self::BadName
            | Self::Empty
            | Self::Binary(_)
            | Self::Pdf(_) => ErrorKind::Invalid,
        }
    }

    /// Whether such a file is simply not meant when it is met in a folder.
    pub fn is_usual(&self) -> bool {
        matches!(
            self,
            Self::Link | Self::NotAFile | Self::UnknownKind | Self::Empty | Self::Binary(_)
        )
    }

    fn of_io(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing,
            _ => Self::Unreadable(error),
        }
    }
}
