//! From a URL to a store.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mnemon_core::ram::Ram;
use mnemon_core::{Backend, Invalid, Replica, StoreError};

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
    (
        "postgres://…",
        "a PostgreSQL database, any number of servers",
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
    Postgres,
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
            "postgres" | "postgresql" if rest.starts_with("//") => Ok(Self::Postgres),
            _ => {
                let shown = match (rest.starts_with("//"), rest.rsplit_once('@')) {
                    // There may be a password before it.
                    (true, Some((_, host))) => format!("{scheme}://***@{host}"),
                    _ => url.to_owned(),
                };
                let known: Vec<&str> = SCHEMES.iter().map(|(form, _)| *form).collect();
                Err(Invalid::new(
                    "store",
                    format!(
                        "`{}` is not a store; write one of: {}",
                        shown.escape_debug(),
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
        StoreUrl::Ram | StoreUrl::Postgres => return Ok(None),
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
        StoreUrl::Postgres => (open_postgres(url)?, Vec::new()),
    };
    Ok(Opened { backend, notices })
}

/// Opens the store that the URL names to copy it, or to copy another one into it.
pub fn open_replica(url: &str) -> Result<Arc<dyn Replica>, StoreError> {
    Ok(match StoreUrl::of(url)? {
        StoreUrl::Ram => {
            return Err(StoreError::Unsupported {
                backend: "ram",
                what: "be migrated: it ends with its process",
            });
        }
        StoreUrl::Jsonl(path) => Arc::new(Jsonl::open(&path)?),
        StoreUrl::Sqlite(path) => Arc::new(Sqlite::open(&path)?),
        StoreUrl::Postgres => replica_in_postgres(url)?,
    })
}

/// Whether the place that the URL names does not hold a store yet.
pub fn is_unused(url: &str) -> Result<bool, StoreError> {
    match StoreUrl::of(url)? {
        StoreUrl::Ram => Ok(true),
        StoreUrl::Postgres => has_no_tables(url),
        StoreUrl::Jsonl(_) | StoreUrl::Sqlite(_) => Ok(missing(url)?.is_some()),
    }
}

/// Whether both URLs name the same store, as far as they show it.
pub fn is_same_store(one: &str, other: &str) -> Result<bool, StoreError> {
    let place = |url: &str| -> Result<(u8, PathBuf), StoreError> {
        Ok(match StoreUrl::of(url)? {
            StoreUrl::Ram => (0, PathBuf::new()),
            StoreUrl::Jsonl(path) => (1, path.canonicalize().unwrap_or(path)),
            StoreUrl::Sqlite(path) => (2, path.canonicalize().unwrap_or(path)),
            StoreUrl::Postgres => {
                let address = url.split_once("//").map_or(url, |(_, rest)| rest);
                let address = address.split('?').next().unwrap_or(address);
                let host = address.rsplit_once('@').map_or(address, |(_, host)| host);
                (3, PathBuf::from(host))
            }
        })
    };
    Ok(place(one)? == place(other)?)
}

#[cfg(feature = "postgres")]
fn open_postgres(url: &str) -> Result<Backend, StoreError> {
    let store = crate::store::postgres::Postgres::open(url)?;
    Ok(Arc::new(store).into())
}

#[cfg(feature = "postgres")]
fn replica_in_postgres(url: &str) -> Result<Arc<dyn Replica>, StoreError> {
    let store = crate::store::postgres::Postgres::open(url)?;
    Ok(Arc::new(store))
}

#[cfg(feature = "postgres")]
fn has_no_tables(url: &str) -> Result<bool, StoreError> {
    crate::store::postgres::has_no_tables(url)
}

#[cfg(feature = "postgres")]
fn examine_postgres(url: &str) -> Result<(String, Vec<Finding>), StoreError> {
    crate::store::postgres::examine(url)
}

#[cfg(not(feature = "postgres"))]
fn open_postgres(_: &str) -> Result<Backend, StoreError> {
    Err(without_postgres())
}

#[cfg(not(feature = "postgres"))]
fn replica_in_postgres(_: &str) -> Result<Arc<dyn Replica>, StoreError> {
    Err(without_postgres())
}

#[cfg(not(feature = "postgres"))]
fn has_no_tables(_: &str) -> Result<bool, StoreError> {
    Err(without_postgres())
}

#[cfg(not(feature = "postgres"))]
fn examine_postgres(_: &str) -> Result<(String, Vec<Finding>), StoreError> {
    Err(without_postgres())
}

#[cfg(not(feature = "postgres"))]
fn without_postgres() -> StoreError {
    StoreError::Unsupported {
        backend: "postgres",
        what: "be used: this program was built without it; build it with --features postgres",
    }
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
        StoreUrl::Postgres => {
            let (place, findings) = examine_postgres(url)?;
            return Ok(Examination { place, findings });
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
        StoreUrl::Ram | StoreUrl::Postgres => Ok(Vec::new()),
        StoreUrl::Jsonl(path) => jsonl::repair(&path),
        StoreUrl::Sqlite(path) => sqlite::repair(&path),
    }
}

/// Writes a copy of the store, which may be in use, to a new file or folder. One that exists is
/// written over only with `force`.
pub fn backup(url: &str, to: &Path, force: bool) -> Result<BackupSummary, StoreError> {
    match StoreUrl::of(url)? {
        StoreUrl::Ram => Err(keeps_nothing()),
        StoreUrl::Postgres => Err(has_own_backups()),
        StoreUrl::Jsonl(path) => jsonl::backup(&path, to, force),
        StoreUrl::Sqlite(path) => sqlite::backup(&path, to, force),
    }
}

/// Checks that the file or folder is a whole backup of a store of this kind.
pub fn check_backup(url: &str, from: &Path) -> Result<BackupSummary, StoreError> {
    match StoreUrl::of(url)? {
        StoreUrl::Ram => Err(keeps_nothing()),
        StoreUrl::Postgres => Err(has_own_backups()),
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
        StoreUrl::Postgres => return Err(has_own_backups()),
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

fn has_own_backups() -> StoreError {
    StoreError::Unsupported {
        backend: "postgres",
        what: "be backed up or restored by mnemon: use pg_dump and pg_restore, or the backups of \
               your database service",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_url_is_shown_without_its_password() {
        let error = open("mysql://ann:s3cret@host/d").map(drop).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("`mysql://***@host/d` is not a store"),
            "{text}"
        );
        let error = open("sqlite:").map(drop).unwrap_err().to_string();
        assert!(error.contains("`sqlite:` is not a store"), "{error}");
    }
}
