//! What can go wrong, as the caller sees it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What the caller can do about an error. Every port's error says its kind; one table in the
/// `mnemon` crate turns a kind into an exit code, an HTTP status, an MCP code and a hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorKind {
    /// The request itself is wrong; sending it again cannot help.
    Invalid,
    /// What was asked for is not there.
    NotFound,
    /// Somebody else changed it first.
    Conflict,
    /// The policy does not allow it.
    Denied,
    /// A stated limit is exceeded.
    TooLarge,
    /// It comes too often; the message says when it may come again.
    TooOften,
    /// The disk (or the quota) is full; nothing was written.
    Full,
    /// Others hold it; trying again later can help.
    Busy,
    /// The store's bytes are not what they should be.
    Corrupt,
    /// Written by a newer version of this program.
    TooNew,
    /// It is not one of our stores at all.
    Foreign,
    /// This backend cannot do this.
    Unsupported,
    /// The file system or the network failed.
    Unavailable,
    /// A bug in Mnemon.
    Internal,
}

impl ErrorKind {
    /// Every kind, for tables and their tests.
    pub const ALL: [Self; 14] = [
        Self::Invalid,
        Self::NotFound,
        Self::Conflict,
        Self::Denied,
        Self::TooLarge,
        Self::TooOften,
        Self::Full,
        Self::Busy,
        Self::Corrupt,
        Self::TooNew,
        Self::Foreign,
        Self::Unsupported,
        Self::Unavailable,
        Self::Internal,
    ];
}

/// A value that breaks a rule: where, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// The field, as the user wrote it.
    pub field: String,
    /// What is wrong, and what would be right.
    pub what: String,
}

impl Invalid {
    /// `field` breaks a rule; `what` says which, and what would be right.
    pub fn new(field: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            what: what.into(),
        }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.what)
    }
}

impl std::error::Error for Invalid {}

/// An enum of plain words: the same word in JSON, on the command line and in a database.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident, $field:literal { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name { $($(#[$doc])* #[serde(rename = $word)] $variant,)+ }

        impl $name {
            /// Every value, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The word for it.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::error::Invalid;

            fn from_str(text: &str) -> Result<Self, $crate::error::Invalid> {
                Self::ALL.iter().copied().find(|value| value.as_str() == text).ok_or_else(|| {
                    let known: Vec<&str> = Self::ALL.iter().map(|value| value.as_str()).collect();
                    $crate::error::Invalid::new(
                        $field,
                        format!("`{}` is not one of: {}", text.escape_debug(), known.join(", ")),
                    )
                })
            }
        }
    };
}

pub(crate) use words;
