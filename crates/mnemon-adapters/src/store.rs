//! The stores, and the errors and names that they share.

pub(crate) mod jsonl;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
pub(crate) mod sqlite;

use std::io;
use std::path::{Path, PathBuf};

use mnemon_core::StoreError;

type Source = Box<dyn std::error::Error + Send + Sync>;

fn corrupt(place: impl Into<String>, what: impl Into<String>) -> StoreError {
    let (place, what) = (place.into(), what.into());
    StoreError::Corrupt { place, what }
}

fn foreign(place: impl Into<String>, what: impl Into<String>) -> StoreError {
    let (place, what) = (place.into(), what.into());
    StoreError::Foreign { place, what }
}

fn unavailable(
    place: impl Into<String>,
    what: impl Into<String>,
    source: impl Into<Source>,
) -> StoreError {
    StoreError::Unavailable {
        place: place.into(),
        what: what.into(),
        source: source.into(),
    }
}

/// What a failure to write a file means to the caller.
fn write_failed(path: &Path, what: &str, error: io::Error) -> StoreError {
    use io::ErrorKind as Kind;
    let place = path.display().to_string();
    match error.kind() {
        Kind::StorageFull | Kind::QuotaExceeded | Kind::FileTooLarge => {
            let source = Box::new(error);
            StoreError::Full { place, source }
        }
        Kind::PermissionDenied | Kind::ReadOnlyFilesystem => StoreError::ReadOnly { place },
        _ => unavailable(place, what, error),
    }
}

/// The same error once more: a write that fails has several callers to tell.
fn again(error: &StoreError) -> StoreError {
    match error {
        StoreError::Full { place, source } => StoreError::Full {
            place: place.clone(),
            source: source.to_string().into(),
        },
        StoreError::Busy { place, seconds } => StoreError::Busy {
            place: place.clone(),
            seconds: *seconds,
        },
        StoreError::TooNew {
            place,
            found,
            known,
        } => StoreError::TooNew {
            place: place.clone(),
            found: *found,
            known: *known,
        },
        StoreError::ReadOnly { place } => StoreError::ReadOnly {
            place: place.clone(),
        },
        StoreError::Corrupt { place, what } => corrupt(place, what),
        StoreError::Foreign { place, what } => foreign(place, what),
        StoreError::Unavailable {
            place,
            what,
            source,
        } => unavailable(place, what, source.to_string()),
        other => StoreError::Internal(other.to_string()),
    }
}

/// The path with something appended to its name: `-wal`, `.bad`.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// `FILE.bad`, `FILE.bad.2`, …
fn numbered(path: &Path, suffix: &str, number: usize) -> PathBuf {
    match number {
        1 => beside(path, suffix),
        _ => beside(path, &format!("{suffix}.{number}")),
    }
}

/// The first of these names that is free.
fn free_name(path: &Path, suffix: &str) -> PathBuf {
    let mut names = (1..).map(|number| numbered(path, suffix, number));
    let free = names.find(|name| !name.exists());
    free.unwrap_or_else(|| beside(path, suffix))
}
