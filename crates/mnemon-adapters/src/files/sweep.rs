//! Removing temporary files that writers left when they were killed.

use std::fs::{self, DirEntry};
use std::io;
use std::path::Path;
use std::time::Duration;

use mnemon_core::files::Sweep;
use mnemon_core::limits;

use super::{UNFINISHED, is_nothing, sync_folder, turn};

/// From this age on a temporary file was left by a writer that was killed.
const STALE: Duration = Duration::from_secs(24 * 60 * 60);
/// Random characters in the name of a temporary file.
const RANDOM: usize = 16;

/// Sweeps a folder under its lock, and those below it if asked. Links are not followed.
pub(super) fn sweep_at(
    place: &Path,
    path: &str,
    sweep: Sweep,
    depth: usize,
    swept: &mut Vec<String>,
) -> io::Result<()> {
    let lock = match turn(place) {
        Err(error) if is_nothing(&error) => return Ok(()),
        other => other?,
    };
    let names = sweep_locked(place, sweep == Sweep::All)?;
    drop(lock);
    let below = |name: &str| match path {
        "" => name.to_owned(),
        _ => format!("{path}/{name}"),
    };
    swept.extend(names.iter().map(|name| below(name)));
    if sweep != Sweep::StaleBelow || depth == limits::FOLDER_DEPTH {
        return Ok(());
    }
    for entry in fs::read_dir(place)? {
        let entry = entry?;
        // `file_type` tells a link from what it leads to.
        if let (true, Some(name)) = (entry.file_type()?.is_dir(), entry.file_name().to_str()) {
            sweep_at(&entry.path(), &below(name), sweep, depth + 1, swept)?;
        }
    }
    Ok(())
}

/// Removes what killed writers left in a folder whose lock is held, and returns the names. Under the
/// lock nobody is writing; the age is only asked where the lock may not hold (a network drive).
pub(super) fn sweep_locked(folder: &Path, any_age: bool) -> io::Result<Vec<String>> {
    remove(folder, UNFINISHED, any_age)
}

/// Removes temporary files with this ending from the folder that are older than a day, and returns
/// their names: `.`, 16 letters or digits, the ending.
pub fn sweep_stale(folder: &Path, ending: &str) -> io::Result<Vec<String>> {
    remove(folder, ending, false)
}

fn remove(folder: &Path, ending: &str, any_age: bool) -> io::Result<Vec<String>> {
    let mut swept = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| is_temporary(name, ending)) else {
            continue;
        };
        if is_ours(&entry, any_age)? {
            fs::remove_file(entry.path())?;
            swept.push(name.to_owned());
        }
    }
    if !swept.is_empty() {
        sync_folder(folder)?;
    }
    Ok(swept)
}

fn is_temporary(name: &str, ending: &str) -> bool {
    let random = name
        .strip_prefix('.')
        .and_then(|name| name.strip_suffix(ending));
    random.is_some_and(|random| {
        random.len() == RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

/// Whether it is a file, and old enough. A link is never followed, and stays.
fn is_ours(entry: &DirEntry, any_age: bool) -> io::Result<bool> {
    let meta = entry.metadata()?;
    let is_old = || {
        let age = meta.modified().ok().and_then(|at| at.elapsed().ok());
        age.is_some_and(|age| age > STALE)
    };
    Ok(meta.is_file() && (any_age || is_old()))
}
