//! Copies of a file that is in use, and putting one in its place.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mnemon_core::{Invalid, StoreError};
use rusqlite::{Connection, OpenFlags};

use super::errors::At;
use super::health;
use super::identity::FileId;
use super::schema;
use super::writer::empty_log;
use crate::files::{make_store_folder, parent, sync_folder};
use crate::health::BackupSummary;
use crate::store::{beside, corrupt, foreign, free_name, write_failed};

/// How long a restore waits for readers and writers of the file that it replaces.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);

/// Writes a copy of the store, as it is at one moment, to a new file. Nobody waits for it, and
/// nothing that was erased is in it: rows are copied, not pages.
pub(crate) fn backup(path: &Path, to: &Path, force: bool) -> Result<BackupSummary, StoreError> {
    if !path.exists() {
        let what = format!("there is no store at {} yet", path.display());
        return Err(Invalid::new("store", what).into());
    }
    check_target(path, to, force)?;
    let place = path.display().to_string();
    let (connection, _) = schema::look(path)?;
    let new = unfinished(to);
    let made = schema::create_private(&new)
        .map_err(|error| write_failed(to, "cannot be written", error))
        .and_then(|_| {
            let name = new.to_str().ok_or_else(|| {
                let what = format!("{} is not valid UTF-8", to.display());
                Invalid::new("file", what)
            })?;
            connection.execute("VACUUM INTO ?1", [name]).at(&place)?;
            let summary = check_backup(&new)?;
            put_in_place(&new, to, force)?;
            Ok(summary)
        });
    match made {
        Ok(summary) => Ok(BackupSummary {
            place: to.display().to_string(),
            ..summary
        }),
        Err(error) => {
            discard(&new);
            Err(error)
        }
    }
}

/// Refuses what would be written over: the store itself and the files beside it, always; anything
/// else without `force`.
fn check_target(path: &Path, to: &Path, force: bool) -> Result<(), StoreError> {
    let own = ["", "-wal", "-shm"].map(|suffix| FileId::of(&beside(path, suffix)));
    let target = FileId::of(to);
    let wrong = if target.is_some() && own.contains(&target) {
        "is the store itself; name another file"
    } else if to.is_dir() {
        "is a folder; name a file in it"
    } else if target.is_some() && !force {
        "exists; pass --force to overwrite it"
    } else {
        return Ok(());
    };
    Err(Invalid::new("file", format!("{} {wrong}", to.display())).into())
}

/// Renames the finished file, which survives a power cut from then on.
fn put_in_place(new: &Path, to: &Path, force: bool) -> Result<(), StoreError> {
    let placed = File::open(new)
        .and_then(|file| file.sync_all())
        .and_then(|()| match force {
            true => fs::rename(new, to),
            // A link, unlike a rename, never replaces what somebody has put there meanwhile.
            false => match fs::hard_link(new, to) {
                Ok(()) => fs::remove_file(new),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
                // Not every file system has links.
                Err(_) => fs::rename(new, to),
            },
        })
        .and_then(|()| sync_folder(parent(to)));
    placed.map_err(|error| write_failed(to, "cannot be written", error))
}

/// Checks that the file is a whole store, and says what is in it. It is not changed.
pub(crate) fn check_backup(file: &Path) -> Result<BackupSummary, StoreError> {
    let place = file.display().to_string();
    if !file.exists() {
        return Err(write_failed(
            file,
            "cannot be read",
            io::ErrorKind::NotFound.into(),
        ));
    }
    schema::check_path(file, &place)?;
    let (connection, format) = schema::look(file)?;
    let findings = health::contents(&connection, format);
    if let Some(wrong) = findings.into_iter().find(|finding| !finding.ok) {
        let what = format!("{}: {}", wrong.check, wrong.detail);
        return Err(corrupt(place, what));
    }
    let count = |sql: &str| {
        let count = connection.query_row(sql, [], |row| row.get::<_, i64>(0));
        count.map(i64::cast_unsigned).at(&place)
    };
    if format == 0 {
        return Err(foreign(place, "the file is empty"));
    }
    Ok(BackupSummary {
        backend: "sqlite",
        format,
        tenants: count("SELECT count(*) FROM tenants")?,
        records: count("SELECT count(*) FROM records")?,
        history: count("SELECT count(*) FROM history WHERE version > 0")?,
        place,
    })
}

/// Puts a copy of the backup in the place of the store. The name under which the store that was
/// there is kept, if there was one. Processes that use the store go on with the new file.
pub(crate) fn restore(path: &Path, from: &Path) -> Result<Option<PathBuf>, StoreError> {
    if FileId::of(from).is_some() && FileId::of(from) == FileId::of(path) {
        let what = format!("{} is the store itself; name a backup", from.display());
        return Err(Invalid::new("file", what).into());
    }
    let folder = parent(path);
    make_store_folder(folder)
        .map_err(|error| write_failed(path, "its folder cannot be created", error))?;
    let new = unfinished(path);
    let copied = schema::create_private(&new)
        .and_then(|mut file| {
            io::copy(&mut File::open(from)?, &mut file)?;
            file.sync_all()
        })
        .map_err(|error| write_failed(&new, "cannot be written", error))
        // Not the backup, but what is put in place must be whole.
        .and_then(|()| check_backup(&new).map(drop));
    let kept = path.exists().then(|| free_name(path, ".before-restore"));
    let held = copied.and_then(|()| hold(path));
    let restored = held.and_then(|held| replace(path, &new, kept.as_deref(), held));
    if let Err(error) = restored {
        discard(&new);
        return Err(error);
    }
    Ok(kept)
}

/// Puts `new` in the place of the store in one step, and keeps the store that was there under the
/// name `kept`.
///
/// `held` is the write lock ([`hold`]), and the write-ahead log is empty: a log that lies beside the
/// new file would be taken for its own. A process that opens the store in the moment between the
/// rename and the removal of the old log is not guarded against.
pub(super) fn replace(
    path: &Path,
    new: &Path,
    kept: Option<&Path>,
    held: Option<Connection>,
) -> Result<(), StoreError> {
    let cannot = |error| write_failed(path, "cannot be replaced", error);
    let synced = File::open(new).and_then(|file| file.sync_all());
    synced.map_err(cannot)?;
    if let Some(kept) = kept {
        if held.is_none() {
            // It is too damaged to be opened: its log stays with it.
            for suffix in ["-wal", "-shm"] {
                let log = beside(path, suffix);
                if log.exists() {
                    fs::rename(&log, beside(kept, suffix)).map_err(cannot)?;
                }
            }
        }
        if fs::hard_link(path, kept).is_err() {
            fs::rename(path, kept).map_err(cannot)?;
        }
    }
    fs::rename(new, path).map_err(cannot)?;
    for suffix in ["-wal", "-shm"] {
        match fs::remove_file(beside(path, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(cannot(error)),
            _ => {}
        }
    }
    sync_folder(parent(path)).map_err(cannot)?;
    drop(held);
    Ok(())
}

/// Holds the write lock of the store with its write-ahead log empty. `None` if it is damaged or not
/// there.
pub(super) fn hold(path: &Path) -> Result<Option<Connection>, StoreError> {
    if !path.exists() {
        return Ok(None);
    }
    let place = path.display().to_string();
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let since = Instant::now();
    let tried = || {
        let connection = Connection::open_with_flags(path, flags).at(&place)?;
        connection.busy_timeout(Duration::ZERO).at(&place)?;
        loop {
            let emptied = empty_log(&connection, &place)?;
            if emptied && connection.execute_batch("BEGIN IMMEDIATE").is_ok() {
                // Somebody may have written between the two.
                let log = fs::metadata(beside(path, "-wal"));
                if log.map_or(0, |log| log.len()) == 0 {
                    return Ok(connection);
                }
                connection.execute_batch("ROLLBACK").at(&place)?;
            }
            let waited = since.elapsed();
            if waited >= PATIENCE {
                return Err(StoreError::Busy {
                    place: place.clone(),
                    seconds: waited.as_secs(),
                });
            }
            std::thread::sleep(PAUSE);
        }
    };
    match tried() {
        Ok(connection) => Ok(Some(connection)),
        Err(error @ (StoreError::Busy { .. } | StoreError::ReadOnly { .. })) => Err(error),
        Err(_) => Ok(None),
    }
}

/// An unfinished file of this age was left behind by a process that died.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// A name beside the target for a file that is being written. Those that were left behind under
/// such a name are removed.
pub(super) fn unfinished(target: &Path) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let beginning = format!(".{name}.");
    let is_abandoned = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        let age = modified.ok().and_then(|modified| modified.elapsed().ok());
        name.starts_with(&beginning)
            && name.contains(UNFINISHED)
            && age.is_some_and(|age| age > ABANDONED)
    };
    for entry in fs::read_dir(parent(target)).into_iter().flatten().flatten() {
        if is_abandoned(&entry) {
            // The next one tries again.
            let _ = fs::remove_file(entry.path());
        }
    }
    parent(target).join(format!("{beginning}{:08x}{UNFINISHED}", fastrand::u32(..)))
}

const UNFINISHED: &str = ".mnemon-unfinished";

/// Removes an unfinished file and what SQLite made beside it.
pub(super) fn discard(new: &Path) {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        // What cannot be removed now is removed by a later backup.
        let _ = fs::remove_file(beside(new, suffix));
    }
}
