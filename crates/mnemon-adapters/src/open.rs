//! From a URL to a store.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mnemon_core::ram::Ram;
use mnemon_core::{Backend, Invalid, StoreError};

use crate::health::{BackupSummary, Examination, Finding};
use crate::store::jsonl::{self, Jsonl};
use crate::store::sqlite::{self, Sqlite};

/// The schemes that [`open`] knows, each with an example and what it is for.
pub const SCHEMES: &[(&str, &str)] = &[
    ("ram:", "in memory, gone when the process ends"),
    ("jsonl:DIR", "an append-only log of JSON lines in a folder"),
    (
        "sqlite:PATH",
        "one file, any number of processes (the default)",
    ),
];

/// A store with its index, and what was noticed while opening it.
pub struct Opened {
    pub backend: Backend,
    /// Sentences for people: what was skipped, what was repaired.
    pub notices: Vec<String>,
}

/// Which store a URL means.
enum StoreUrl {
    Ram,
    Jsonl(PathBuf),
    Sqlite(PathBuf),
}

impl StoreUrl {
    fn of(url: &str) -> Result<Self, Invalid> {
        let (scheme, rest) = url.split_once(':').unwrap_or((url, ""));
        // `sqlite:///x` and `sqlite:/x` both mean /x; `sqlite:x` is relative.
        let path = rest.strip_prefix("//").unwrap_or(rest);
        match scheme {
            "ram" if rest.is_empty() => Ok(Self::Ram),
            "jsonl" if !path.is_empty() => Ok(Self::Jsonl(PathBuf::from(path))),
            "sqlite" if !path.is_empty() => Ok(Self::Sqlite(sqlite::follow_link(Path::new(path)))),
            _ => {
                let known: Vec<&str> = SCHEMES.iter().map(|(form, _)| *form).collect();
                Err(Invalid::new(
                    "store",
                    format!(
                        "`{}` is not a store; write one of: {}",
                        url.escape_debug(),
                        known.join(", ")
                    ),
                ))
            }
        }
    }
}

/// Where the store would be that the URL names, if nothing is there.
pub fn missing(url: &str) -> Result<Option<PathBuf>, StoreError> {
    let path = match StoreUrl::of(url)? {
        StoreUrl::Ram => return Ok(None),
        StoreUrl::Jsonl(path) | StoreUrl::Sqlite(path) => path,
    };
    // A link that leads nowhere, or a file that may not be looked at, is for `open` to report.
    let is_missing =
        matches!(path.symlink_metadata(), Err(error) if error.kind() == ErrorKind::NotFound);
    Ok(is_missing.then_some(path))
}

/// Opens the store that the URL names, and makes it if it is not there.
pub fn open(url: &str) -> Result<Opened, StoreError> {
    let (backend, notices): (Backend, _) = match StoreUrl::of(url)? {
        StoreUrl::Ram => (Arc::new(Ram::new()).into(), Vec::new()),
        StoreUrl::Jsonl(path) => {
            let store = Jsonl::open(&path)?;
            let notices = store.notices().sentences();
            (Arc::new(store).into(), notices)
        }
        StoreUrl::Sqlite(path) => (Arc::new(Sqlite::open(&path)?).into(), Vec::new()),
    };
    Ok(Opened { backend, notices })
}

/// Looks at the store without using it: whole, ours, readable, with room to grow?
pub fn examine(url: &str) -> Result<Examination, StoreError> {
    let (path, mut findings) = match StoreUrl::of(url)? {
        StoreUrl::Ram => {
            let finding = Finding::good("memory", "a store in memory has no files to check");
            return Ok(Examination {
                place: url.to_owned(),
                findings: vec![finding],
            });
        }
        StoreUrl::Jsonl(path) => (path.clone(), jsonl::examine(&path)),
        StoreUrl::Sqlite(path) => (path.clone(), sqlite::examine(&path)),
    };
    findings.push(space(&path));
    Ok(Examination {
        place: path.display().to_string(),
        findings,
    })
}

/// Does what the findings of [`examine`] proposed, and says what it did.
pub fn repair(url: &str) -> Result<Vec<String>, StoreError> {
    match StoreUrl::of(url)? {
        StoreUrl::Ram => Ok(Vec::new()),
        StoreUrl::Jsonl(path) => jsonl::repair(&path),
        StoreUrl::Sqlite(path) => sqlite::repair(&path),
    }
}

/// Writes a copy of the store, which may be in use, to a new file or folder. One that exists is
/// written over only with `force`.
pub fn backup(url: &str, to: &Path, force: bool) -> Result<BackupSummary, StoreError> {
    match StoreUrl::of(url)? {
        StoreUrl::Ram => Err(keeps_nothing()),
        StoreUrl::Jsonl(path) => jsonl::backup(&path, to, force),
        StoreUrl::Sqlite(path) => sqlite::backup(&path, to, force),
    }
}

/// Checks that the file or folder is a whole backup of a store of this kind.
pub fn check_backup(url: &str, from: &Path) -> Result<BackupSummary, StoreError> {
    match StoreUrl::of(url)? {
        StoreUrl::Ram => Err(keeps_nothing()),
        StoreUrl::Jsonl(_) => jsonl::check_backup(from),
        StoreUrl::Sqlite(_) => sqlite::check_backup(from),
    }
}

/// A store that was put back.
#[derive(Debug)]
pub struct Restored {
    pub summary: BackupSummary,
    /// Where the store lies that was there before.
    pub kept: Option<PathBuf>,
}

/// Checks the backup, and puts a copy of it in the place of the store.
pub fn restore(url: &str, from: &Path) -> Result<Restored, StoreError> {
    let summary = check_backup(url, from)?;
    let kept = match StoreUrl::of(url)? {
        StoreUrl::Ram => return Err(keeps_nothing()),
        StoreUrl::Jsonl(path) => jsonl::restore(&path, from)?,
        StoreUrl::Sqlite(path) => sqlite::restore(&path, from)?,
    };
    Ok(Restored { summary, kept })
}

fn keeps_nothing() -> StoreError {
    StoreError::Unsupported {
        backend: "ram",
        what: "be backed up: it keeps nothing on disk",
    }
}

/// Below this a store is about to fail.
const LOW_SPACE: u64 = 64 * 1024 * 1024;

fn space(path: &Path) -> Finding {
    // A file without a folder lies in the working directory.
    let mut folders = path
        .ancestors()
        .map(|folder| match folder.as_os_str().is_empty() {
            true => Path::new("."),
            false => folder,
        });
    let there = folders.find(|folder| folder.exists());
    match there.map(fs4::available_space) {
        Some(Ok(bytes)) if bytes >= LOW_SPACE => {
            Finding::good("space", format!("{} MiB free", bytes / 1024 / 1024))
        }
        Some(Ok(bytes)) => Finding::warning(
            "space",
            format!(
                "only {} MiB free; writes will soon fail",
                bytes / 1024 / 1024
            ),
        ),
        Some(Err(error)) => Finding::warning("space", format!("cannot be asked: {error}")),
        None => Finding::bad("space", "the folder does not exist"),
    }
}
