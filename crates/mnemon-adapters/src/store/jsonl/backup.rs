//! Copies of a folder that is in use, and putting one in its place.
//!
//! A backup is a folder like the store itself. Each tenant's log is copied under its lock, up to its
//! last complete commit, with the history that it names; lines that were set aside stay behind.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use mnemon_core::{Invalid, StoreError};

use super::disk::{Lock, write_failed};
use super::doctor::{self, examine, folders};
use super::folder::Folder;
use super::line::FORMAT;
use crate::files::{make_store_folder, parent, sync_folder};
use crate::health::BackupSummary;
use crate::private;
use crate::store::{corrupt, foreign, free_name};

/// Writes a copy of the store to a new folder.
pub(crate) fn backup(root: &Path, to: &Path, force: bool) -> Result<BackupSummary, StoreError> {
    let logs = folders(root)?;
    if logs.is_empty() {
        let what = format!("there is no store at {} yet", root.display());
        return Err(Invalid::new("store", what).into());
    }
    check_target(root, to, force)?;
    let new = unfinished(to);
    let made = logs
        .iter()
        .try_for_each(|log| copy(log, root, &new))
        .and_then(|()| check_backup(&new))
        .and_then(|summary| {
            if to.exists() {
                fs::remove_dir_all(to).map_err(|error| write_failed(to, error))?;
            }
            let placed = fs::rename(&new, to).and_then(|()| sync_folder(parent(to)));
            placed.map_err(|error| write_failed(to, error))?;
            Ok(summary)
        });
    if made.is_err() {
        // It has a name that nobody takes for a backup.
        let _ = fs::remove_dir_all(&new);
    }
    made.map(|summary| BackupSummary {
        place: to.display().to_string(),
        ..summary
    })
}

fn check_target(root: &Path, to: &Path, force: bool) -> Result<(), StoreError> {
    let root = root.canonicalize().ok();
    let within = |path: &Path, both_ways: bool| {
        let paths = path.canonicalize().ok().zip(root.as_ref());
        paths.is_some_and(|(path, root)| {
            path.starts_with(root) || both_ways && root.starts_with(&path)
        })
    };
    let is_store = within(to, true) || within(parent(to), false);
    let wrong = if is_store {
        "is in the store itself; name another folder"
    } else if to.exists() && !force {
        "exists; pass --force to replace it"
    } else if to.exists() && check_backup(to).is_err() {
        // Only what is a backup is ever removed to make room for one.
        "exists and is not a backup of a jsonl: store"
    } else {
        return Ok(());
    };
    Err(Invalid::new("file", format!("{} {wrong}", to.display())).into())
}

/// Copies one tenant's log and history.
fn copy(log: &Folder, root: &Path, to: &Path) -> Result<(), StoreError> {
    let folder = match log.paths.folder.strip_prefix(root) {
        Ok(rest) => to.join(rest),
        Err(_) => to.to_owned(),
    };
    make_store_folder(&folder).map_err(|error| write_failed(&folder, error))?;
    let mut state = log.state_mut();
    log.refresh(&mut state)?;
    // The same lock that keeps writers and rewrites away from readers.
    let _lock = Lock::shared(&log.paths)?;
    state.catch_up(&log.paths, &log.tenant)?;
    let Some(read) = &state.log else {
        return Ok(());
    };
    copy_file(&log.paths.log, &folder, read.reached.mark.offset)?;
    if let Some(history) = state.history() {
        copy_file(&log.paths.history(&history.file), &folder, history.bytes)?;
    }
    sync_folder(&folder).map_err(|error| write_failed(&folder, error))
}

fn copy_file(from: &Path, folder: &Path, bytes: u64) -> Result<(), StoreError> {
    let to = folder.join(from.file_name().unwrap_or_default());
    let mut options = private::options();
    options.write(true).create_new(true);
    let copied = options.open(&to).and_then(|mut file| {
        io::copy(&mut File::open(from)?.take(bytes), &mut file)?;
        file.sync_all()
    });
    copied.map_err(|error| write_failed(&to, error))
}

/// Checks that the folder is a whole store, and says what is in it.
pub(crate) fn check_backup(folder: &Path) -> Result<BackupSummary, StoreError> {
    let place = folder.display().to_string();
    let logs = folders(folder)?;
    if logs.is_empty() {
        let what = "it is not a folder that holds memory.jsonl";
        return Err(foreign(place, what));
    }
    let checks = ["integrity", "format", "tail"];
    let findings = examine(folder).into_iter();
    let wrong = findings
        .into_iter()
        .find(|finding| !finding.ok && checks.contains(&&*finding.check));
    if let Some(wrong) = wrong {
        let what = format!("{}: {}", wrong.check, wrong.detail);
        return Err(corrupt(place, what));
    }
    let mut summary = BackupSummary {
        place,
        backend: "jsonl",
        format: FORMAT,
        tenants: logs.len() as u64,
        records: 0,
        history: 0,
    };
    for log in logs {
        let (records, history) = log.read(|image| {
            // Tombstones of purges are not counted as history.
            let history = image.past().filter(|past| past.version > 0).count();
            (image.len() as u64, history as u64)
        })?;
        summary.records += records;
        summary.history += history;
    }
    Ok(summary)
}

/// Puts a copy of the backup in the place of the store; the store that was there is kept under the
/// name in the answer.
pub(crate) fn restore(root: &Path, from: &Path) -> Result<Option<PathBuf>, StoreError> {
    let new = unfinished(root);
    make_store_folder(parent(root)).map_err(|error| write_failed(root, error))?;
    let copied = doctor::folders(from)?
        .iter()
        .try_for_each(|log| copy(log, from, &new))
        .and_then(|()| check_backup(&new).map(drop))
        .and_then(|()| swap(root, &new));
    if copied.is_err() {
        let _ = fs::remove_dir_all(&new);
    }
    copied
}

fn swap(root: &Path, new: &Path) -> Result<Option<PathBuf>, StoreError> {
    let mut locks = Vec::new();
    for log in folders(root)? {
        locks.push(Lock::exclusive(&log.paths)?);
    }
    let failed = |error| write_failed(root, error);
    let kept = root.exists().then(|| free_name(root, ".before-restore"));
    if let Some(kept) = &kept {
        fs::rename(root, kept).map_err(failed)?;
    }
    fs::rename(new, root).map_err(failed)?;
    sync_folder(parent(root)).map_err(failed)?;
    Ok(kept)
}

fn unfinished(target: &Path) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let name = format!(".{name}.{:08x}.mnemon-unfinished", fastrand::u32(..));
    parent(target).join(name)
}
