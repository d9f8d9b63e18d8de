//! One error for everything that can go wrong.

use std::fmt;

use mnemon_core::ErrorKind;

/// Why an operation failed. The message says what was wrong, where, and what to do.
#[derive(Debug)]
pub struct Error(mnemon_engine::Error);

impl Error {
    /// The kind of failure, to decide whether to retry, correct the input or give up.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

impl<E: Into<mnemon_engine::Error>> From<E> for Error {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}
