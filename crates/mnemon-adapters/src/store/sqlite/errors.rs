//! What SQLite's errors mean to our callers.

use std::borrow::Borrow;
use std::time::Duration;

use mnemon_core::StoreError;
use rusqlite::{Connection, Error, ErrorCode, OptionalExtension, Params, Row};

use crate::store::{corrupt, foreign, unavailable};

/// How long a call waits for the others before it gives up.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// How long the call of this thread has waited for others. SQLite's busy handler is given a number
/// of tries, which says nothing about the time they took.
pub(super) mod patience {
    use std::cell::Cell;
    use std::time::{Duration, Instant};

    thread_local! {
        static SINCE: Cell<Option<Instant>> = const { Cell::new(None) };
        static SPENT: Cell<Duration> = const { Cell::new(Duration::ZERO) };
        static IMPATIENT: Cell<bool> = const { Cell::new(false) };
    }

    /// Does something without waiting for anybody.
    pub(in super::super) fn without<T>(work: impl FnOnce() -> T) -> T {
        IMPATIENT.set(true);
        let result = work();
        IMPATIENT.set(false);
        result
    }

    /// Whether to wait at all.
    pub(in super::super) fn is_any() -> bool {
        !IMPATIENT.get()
    }

    /// Whether the wait may go on; the first try of a wait begins it.
    pub(in super::super) fn is_left(first: bool) -> bool {
        let now = Instant::now();
        let since = SINCE.get().filter(|_| !first).unwrap_or(now);
        SINCE.set(Some(since));
        SPENT.set(now - since);
        now - since < super::PATIENCE
    }

    /// The time that the wait of which the caller hears now has taken.
    pub(super) fn spent() -> Duration {
        SPENT.take()
    }
}

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
            seconds: patience::spent().as_secs(),
        },
        Some(ErrorCode::ReadOnly) => StoreError::ReadOnly { place },
        Some(ErrorCode::NotADatabase) => foreign(place, "the file is not an SQLite database"),
        Some(ErrorCode::DatabaseCorrupt) => corrupt(place, error.to_string()),
        _ => unavailable(place, "SQLite failed", error),
    }
}

/// Statements that are prepared once.
pub(super) trait Query: Borrow<Connection> {
    /// What the first row says, if there is one.
    fn first<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Option<T>> {
        let mut select = self.borrow().prepare_cached(sql)?;
        select.query_row(values, read).optional()
    }

    /// What all rows say.
    fn all<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        let mut select = self.borrow().prepare_cached(sql)?;
        select.query_map(values, read)?.collect()
    }
}

impl Query for Connection {}

/// Names the place in an SQLite error.
pub(super) trait At<T> {
    fn at(self, place: &str) -> Result<T, StoreError>;
}

impl<T> At<T> for rusqlite::Result<T> {
    fn at(self, place: &str) -> Result<T, StoreError> {
        self.map_err(|error| store_error(place, error))
    }
}
