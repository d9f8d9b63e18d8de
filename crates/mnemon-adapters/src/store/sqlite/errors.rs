//! What SQLite's errors mean to our callers.

use mnemon_core::StoreError;
use rusqlite::{Error, ErrorCode};

/// How long a writer waits for the others before it gives up.
pub(super) const PATIENCE_SECONDS: u64 = 60;

/// The error that the caller of the store at `place` sees.
pub(super) fn store_error(place: &str, error: Error) -> StoreError {
    let place = place.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full {
            place,
            source: Box::new(error),
        },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy {
            place,
            seconds: PATIENCE_SECONDS,
        },
        Some(ErrorCode::ReadOnly) => StoreError::ReadOnly { place },
        Some(ErrorCode::NotADatabase) => StoreError::Foreign {
            place,
            what: "the file is not an SQLite database".to_owned(),
        },
        Some(ErrorCode::DatabaseCorrupt) => StoreError::Corrupt {
            place,
            what: error.to_string(),
        },
        _ => StoreError::Unavailable {
            place,
            what: "SQLite failed".to_owned(),
            source: Box::new(error),
        },
    }
}

/// The same error once more: a transaction that fails has several callers to tell.
pub(super) fn again(error: &StoreError) -> StoreError {
    let source = || Box::from(error.to_string());
    match error {
        StoreError::Full { place, .. } => StoreError::Full {
            place: place.clone(),
            source: source(),
        },
        StoreError::Busy { place, seconds } => StoreError::Busy {
            place: place.clone(),
            seconds: *seconds,
        },
        StoreError::ReadOnly { place } => StoreError::ReadOnly {
            place: place.clone(),
        },
        StoreError::Corrupt { place, what } => StoreError::Corrupt {
            place: place.clone(),
            what: what.clone(),
        },
        StoreError::Unavailable { place, what, .. } => StoreError::Unavailable {
            place: place.clone(),
            what: what.clone(),
            source: source(),
        },
        other => StoreError::Internal(other.to_string()),
    }
}

/// Names the place in an SQLite error.
pub(super) trait At<T> {
    fn at(self, place: &str) -> Result<T, StoreError>;
}

impl<T> At<T> for rusqlite::Result<T> {
    fn at(self, place: &str) -> Result<T, StoreError> {
        self.map_err(|error| store_error(place, error))
    }
}
