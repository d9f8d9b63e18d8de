//! Where a value came from.

use std::fmt;
use std::path::PathBuf;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Default,
    File {
        path: PathBuf,
        line: usize,
    },
    /// The project's folder that was found above where the user stands.
    Project(PathBuf),
    /// The variable's name.
    Env(&'static str),
    /// The flag as it is written.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Project(folder) => write!(f, "project {}", folder.display()),
            Self::Env(name) | Self::Flag(name) => f.write_str(name),
        }
    }
}

/// A value and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sourced<T> {
    pub value: T,
    pub origin: Origin,
}

impl<T> Sourced<T> {
    /// A value that nobody chose.
    pub fn default(value: T) -> Self {
        Self {
            value,
            origin: Origin::Default,
        }
    }
}
