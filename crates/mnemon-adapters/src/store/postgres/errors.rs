//! What errors of the database mean to our callers.

use std::error::Error as _;
use std::io;

use mnemon_core::{Invalid, StoreError};
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::store::{corrupt, unavailable};

/// Why something in the database failed.
#[derive(Debug)]
pub(super) enum Failure {
    Database(Error),
    Store(StoreError),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Database(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Failure {
    /// Whether the connection was lost, so that another one may succeed.
    pub(super) fn is_lost(&self) -> bool {
        match self {
            Self::Database(error) => is_lost(error),
            Self::Store(_) => false,
        }
    }

    pub(super) fn is_deadlock(&self) -> bool {
        let code = match self {
            Self::Database(error) => error.code(),
            Self::Store(_) => None,
        };
        code == Some(&SqlState::T_R_DEADLOCK_DETECTED)
    }

    /// The error that callers of the store at `place` see.
    pub(super) fn at(self, place: &str) -> StoreError {
        match self {
            Self::Database(error) => store_error(place, error),
            Self::Store(error) => error,
        }
    }
}

/// Row-level security is on, and the statement named no tenant.
pub(super) fn misses_tenant(error: &Error) -> bool {
    let said = error.as_db_error().map(|error| error.message());
    error.code() == Some(&SqlState::UNDEFINED_OBJECT)
        && said.is_some_and(|said| said.contains("mnemon.tenant"))
}

fn is_lost(error: &Error) -> bool {
    // Once more with a tenant.
    if error.is_closed() || misses_tenant(error) {
        return true;
    }
    match error.code() {
        Some(code) => {
            let ends = [
                SqlState::ADMIN_SHUTDOWN,
                SqlState::CRASH_SHUTDOWN,
                SqlState::CANNOT_CONNECT_NOW,
                SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
                // With a migration: nothing of the transaction happened.
                SqlState::T_R_DEADLOCK_DETECTED,
            ];
            // Class 08: connection exceptions.
            code.code().starts_with("08") || ends.contains(code)
        }
        None => error
            .source()
            .is_some_and(|source| source.is::<io::Error>()),
    }
}

/// What a failed connection or statement means.
fn store_error(place: &str, error: Error) -> StoreError {
    if is_lost(&error) {
        let what = "the database server cannot be reached, or the connection was lost";
        return unavailable(place, with_reason(what, &error), error);
    }
    let Some(code) = error.code().cloned() else {
        let what = with_reason("the database server cannot be used", &error);
        return unavailable(place, what, error);
    };
    let owned = place.to_owned();
    match code {
        SqlState::INVALID_PASSWORD | SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            let what = "the server refuses this user or password; check both in the URL";
            denied(place, what, error)
        }
        SqlState::INVALID_CATALOG_NAME => {
            let what = "the database does not exist; create it, for example with createdb";
            unavailable(place, what, error)
        }
        SqlState::INSUFFICIENT_PRIVILEGE | SqlState::READ_ONLY_SQL_TRANSACTION => {
            StoreError::ReadOnly { place: owned }
        }
        SqlState::CHARACTER_NOT_IN_REPERTOIRE => {
            Invalid::new("text", "holds a NUL character; remove it").into()
        }
        SqlState::DISK_FULL => StoreError::Full {
            place: owned,
            source: Box::new(error),
        },
        SqlState::LOCK_NOT_AVAILABLE | SqlState::QUERY_CANCELED => StoreError::Busy {
            place: owned,
            seconds: super::pool::PATIENCE.as_secs(),
        },
        SqlState::TOO_MANY_CONNECTIONS => {
            let what = "the server has no connection left; raise max_connections there, or lower \
                        `pool` in the URL";
            unavailable(place, what, error)
        }
        SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED => corrupt(place, error.to_string()),
        _ => unavailable(place, with_reason("PostgreSQL failed", &error), error),
    }
}

/// The sentence, with the reason that the server or the system gave.
fn with_reason(what: &str, error: &Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(error), _) => format!("{what}: {}", error.message()),
        (None, Some(source)) => format!("{what}: {source}"),
        (None, None) => format!("{what}: {error}"),
    }
}

fn denied(place: &str, what: &str, error: Error) -> StoreError {
    let source = io::Error::new(io::ErrorKind::PermissionDenied, error);
    unavailable(place, what, source)
}

/// The role may not make our tables.
pub(super) fn may_not_create(place: &str, error: Error) -> StoreError {
    let what = "this user may not create the schema `mnemon`; let the owner of the database run \
                GRANT CREATE ON DATABASE, or open the store once as that owner";
    denied(place, what, error)
}
