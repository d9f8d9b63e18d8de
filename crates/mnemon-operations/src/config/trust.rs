//! Which files of projects the user has trusted, and as they were then.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{ConfigError, Environment};

/// The list lies beside the user's own configuration file, which is believed as much.
const LIST: &str = "trusted.json";
const VERSION: u64 = 1;
/// More files than anybody looks through before they say yes.
const MOST_FILES: usize = 1000;
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// The files that the user has trusted.
#[derive(Debug, Clone)]
pub struct TrustList {
    path: PathBuf,
}

/// A file as it was when it was trusted. Its text is kept so that a change can be shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustedFile {
    /// The file's real path, links resolved.
    pub path: PathBuf,
    pub digest: String,
    pub text: String,
}

/// What the list says about a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    Never,
    /// It was trusted, but with this text.
    Changed(String),
    Trusted,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    version: u64,
    files: Vec<TrustedFile>,
}

impl TrustList {
    /// The list of this user, if they have a folder for it.
    pub fn of(env: &Environment) -> Option<Self> {
        let path = env.user_folder()?.join(LIST);
        Some(Self { path })
    }

    /// Every trusted file, by path.
    pub fn files(&self) -> Result<Vec<TrustedFile>, ConfigError> {
        let failed = |source| ConfigError::Unreadable {
            path: self.path.clone(),
            source,
        };
        let bytes = match fs::metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
            Ok(meta) if meta.len() > MOST_BYTES => {
                return Err(failed(io::Error::other("it is too large")));
            }
            Ok(_) => fs::read(&self.path).map_err(failed)?,
        };
        let stored: Stored = serde_json::from_slice(&bytes)
            .map_err(|error| failed(io::Error::other(format!("{error}; remove the file"))))?;
        match stored.version {
            VERSION => Ok(stored.files),
            newer => {
                let what = format!("it has version {newer}, and this program reads {VERSION}");
                Err(failed(io::Error::other(what)))
            }
        }
    }

    /// Whether this text of this file was trusted.
    pub fn trust_of(&self, path: &Path, text: &str) -> Result<Trust, ConfigError> {
        let path = real(path)?;
        let files = self.files()?;
        Ok(match files.into_iter().find(|file| file.path == path) {
            None => Trust::Never,
            Some(file) if file.digest == digest(text) => Trust::Trusted,
            Some(file) => Trust::Changed(file.text),
        })
    }

    /// Trusts the file as long as it has this text.
    pub fn add(&self, path: &Path, text: &str) -> Result<TrustedFile, ConfigError> {
        let trusted = TrustedFile {
            path: real(path)?,
            digest: digest(text),
            text: text.to_owned(),
        };
        let mut files = self.files()?;
        files.retain(|file| file.path != trusted.path);
        if files.len() >= MOST_FILES {
            let what = format!("it lists {MOST_FILES} files; remove some with --remove");
            return Err(self.unwritable(io::Error::other(what)));
        }
        files.push(trusted.clone());
        self.write(files)?;
        Ok(trusted)
    }

    /// Trusts the file no longer. Whether it was trusted.
    pub fn remove(&self, path: &Path) -> Result<bool, ConfigError> {
        // A file that is gone can still be named as it was listed.
        let path = real(path).unwrap_or_else(|_| path.to_owned());
        let mut files = self.files()?;
        let before = files.len();
        files.retain(|file| file.path != path);
        if files.len() == before {
            return Ok(false);
        }
        self.write(files)?;
        Ok(true)
    }

    fn write(&self, mut files: Vec<TrustedFile>) -> Result<(), ConfigError> {
        files.sort_by(|one, other| one.path.cmp(&other.path));
        let version = VERSION;
        let stored = Stored { version, files };
        self.replace(&stored)
            .map_err(|source| self.unwritable(source))
    }

    /// A temporary file is made for its owner alone, and keeps that when it takes the name.
    fn replace(&self, stored: &Stored) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(&serde_json::to_vec_pretty(stored)?)?;
        file.as_file().sync_all()?;
        file.persist(&self.path)?;
        Ok(())
    }

    fn unwritable(&self, source: io::Error) -> ConfigError {
        ConfigError::Unwritable {
            path: self.path.clone(),
            source,
        }
    }
}

fn real(path: &Path) -> Result<PathBuf, ConfigError> {
    path.canonicalize()
        .map_err(|source| ConfigError::Unreadable {
            path: path.to_owned(),
            source,
        })
}

fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}
