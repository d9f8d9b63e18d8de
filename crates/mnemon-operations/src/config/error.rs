//! What can be wrong with a configuration.

use std::path::PathBuf;

use super::Origin;

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("the configuration file {} cannot be read", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{} cannot be written", path.display())]
    Unwritable {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{}:{line}: {what}", path.display())]
    Syntax {
        path: PathBuf,
        line: usize,
        what: String,
    },
    #[error(
        "{}:{line}: `{key}` is not a setting{}; the settings are: {known}",
        path.display(),
        suggestion(nearest)
    )]
    UnknownKey {
        path: PathBuf,
        line: usize,
        key: String,
        nearest: Option<String>,
        known: String,
    },
    #[error("{key} (from {origin}): {what}")]
    Value {
        key: &'static str,
        origin: Origin,
        what: String,
    },
    #[error("the environment variable {0} does not hold UTF-8 text")]
    NotText(&'static str),
    #[error(
        "there is no place for the store: neither MNEMON_HOME nor HOME is set; name one with --store"
    )]
    NoHome,
    #[error("there is no folder for the list of trusted files: set HOME")]
    NoUserFolder,
}

fn suggestion(nearest: &Option<String>) -> String {
    match nearest {
        Some(key) => format!(" (did you mean `{key}`?)"),
        None => String::new(),
    }
}
