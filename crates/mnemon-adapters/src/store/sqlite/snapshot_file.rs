//! Indexes saved beside the file, so that the next process need not make them again.
//!
//! `FILE-index.TENANT` is a cache: without it a search answers the same, later. The tenant's row
//! holds a random mark, and only a saved index with the same mark is believed: one of another time
//! of the file (a backup that was restored) has another. Changes after it are followed as always.
//!
//! A purge gives the tenant a new mark and removes the file within its own transaction. Saving
//! puts the file in its place within a transaction, too, and only if the mark is still the one
//! that it began with; so none appears after a purge that knows what was purged.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mnemon_core::StoreError;
use mnemon_core::index::{Cursor, Feed, Index, TrackedIndex};
use rusqlite::{Connection, TransactionBehavior};

use super::errors::At;
use super::feed::TenantSnapshot;
use super::identity::FileId;
use super::schema;
use super::search::{OpenIndex, Slot};
use crate::private;
use crate::store::unavailable;

/// Changes are worth a new file if they are so large a share of the documents.
const SHARE: usize = 16;
/// An unfinished file of this age was left behind by a process that died.
const ABANDONED: Duration = Duration::from_secs(60);
/// How long upkeep lets a file know what has been erased since.
const OLD: Duration = Duration::from_secs(24 * 60 * 60);

/// When an index is saved.
#[derive(Debug, Clone, Copy)]
pub struct Saving {
    /// After so many changes at the least; of a large index, a sixteenth of it.
    pub changes: usize,
    /// The least time between two files: a busy process should not write all the time.
    pub pause: Duration,
}

impl Default for Saving {
    fn default() -> Self {
        Self {
            changes: 1024,
            pause: Duration::from_secs(10),
        }
    }
}

impl Saving {
    /// Whether enough has changed.
    pub(super) fn is_due(&self, open: &OpenIndex) -> bool {
        let enough = self.changes.max(open.tracked.index().len() / SHARE);
        let rested = open.saved_at.is_none_or(|at| at.elapsed() >= self.pause);
        open.unsaved >= enough && rested
    }
}

/// Bytes before the index: the mark, and the numbers of the cursor.
const HEADER: u64 = 32;

/// Where a tenant's index is saved.
struct SnapshotPath {
    done: PathBuf,
}

impl SnapshotPath {
    /// `None` for a database that has no name that could be continued.
    fn of(connection: &Connection, tenant: i64) -> Option<Self> {
        let file = connection.path().filter(|path| !path.is_empty())?;
        let done = PathBuf::from(format!("{file}-index.{tenant}"));
        Some(Self { done })
    }

    /// A name for a file that somebody is about to write.
    fn unfinished(&self) -> PathBuf {
        let mut name = self.done.clone().into_os_string();
        name.push(format!(".{:08x}.new", fastrand::u32(..)));
        PathBuf::from(name)
    }

    /// The files that somebody is writing, or was when they died.
    fn all_unfinished(&self) -> Vec<PathBuf> {
        let Some(done) = self.done.file_name().and_then(|name| name.to_str()) else {
            return Vec::new();
        };
        let folder = self.done.parent().filter(|folder| *folder != Path::new(""));
        let Ok(entries) = std::fs::read_dir(folder.unwrap_or(Path::new("."))) else {
            return Vec::new();
        };
        let beginning = format!("{done}.");
        let names = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let is_ours = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(&beginning) && name.ends_with(".new"))
        };
        names.filter(is_ours).collect()
    }
}

/// A file of the permissions of the database.
fn create(path: &Path, like: &Path) -> io::Result<File> {
    let file = private::options().write(true).create_new(true).open(path)?;
    file.set_permissions(std::fs::metadata(like)?.permissions())?;
    Ok(file)
}

fn age(path: &Path) -> Option<Duration> {
    let changed = std::fs::metadata(path).ok()?.modified().ok()?;
    changed.elapsed().ok()
}

/// The index that was saved under the tenant's mark.
pub(super) fn load(snapshot: &TenantSnapshot<'_>) -> Option<TrackedIndex> {
    let TenantSnapshot {
        connection,
        tenant,
        mark,
        ..
    } = snapshot;
    if *mark == 0 {
        return None;
    }
    let file = File::open(SnapshotPath::of(connection, *tenant)?.done).ok()?;
    let bytes = file.metadata().ok()?.len().checked_sub(HEADER)?;
    let mut from = BufReader::with_capacity(1 << 16, file);
    let mut number = || {
        let mut bytes = [0; 8];
        from.read_exact(&mut bytes).ok()?;
        Some(u64::from_le_bytes(bytes))
    };
    let found = number()?.cast_signed();
    let cursor = Cursor {
        seq: number()?,
        embedded: number()?,
        removed: number()?,
        records: 0,
    };
    let newest = snapshot.newest();
    let is_past = cursor.seq <= newest.seq
        && cursor.embedded <= newest.embedded
        && cursor.removed <= newest.removed;
    if found != *mark || !is_past {
        return None;
    }
    // Whatever is wrong with it: it is made again, from the rows.
    let index = Index::load(&mut from, bytes).ok()?;
    Some(TrackedIndex::at(cursor, index))
}

/// Saves the index. What goes wrong costs the next process some time, and nobody anything else.
/// `main` is the file that the index was made from. No lock is held while the disk is written.
pub(super) fn save(database: &Path, main: Option<FileId>, tenant: i64, slot: &Slot) {
    let unsaved = slot.read().as_ref().map(|open| Unsaved {
        tracked: Arc::clone(&open.tracked),
        changes: open.unsaved,
        mark: open.mark,
    });
    let Some(unsaved) = unsaved else { return };
    let (changes, before) = (unsaved.changes, unsaved.mark);
    let saved = try_to_save(database, main, tenant, unsaved);
    let mut open = slot.write();
    let Some(open) = open.as_mut() else { return };
    open.saved_at = Some(Instant::now());
    if let Ok(Some(mark)) = saved {
        open.unsaved = open.unsaved.saturating_sub(changes);
        if open.mark == before {
            open.mark = mark;
        }
    }
}

/// An index as it is when saving begins.
struct Unsaved {
    tracked: Arc<TrackedIndex>,
    changes: usize,
    mark: i64,
}

/// The new mark, if the index was saved.
fn try_to_save(
    database: &Path,
    main: Option<FileId>,
    tenant: i64,
    unsaved: Unsaved,
) -> Result<Option<i64>, StoreError> {
    let place = database.display().to_string();
    if main.is_none() || FileId::of(database) != main {
        return Ok(None);
    }
    let schema::OpenFile {
        mut connection,
        ids,
    } = schema::open_known(database)?;
    if ids.main != main {
        // Another file is there now, to which the index does not belong.
        return Ok(None);
    }
    let Some(files) = SnapshotPath::of(&connection, tenant) else {
        return Ok(None);
    };
    for other in files.all_unfinished() {
        if age(&other).is_some_and(|age| age <= ABANDONED) {
            // Somebody else is at it.
            return Ok(None);
        }
        let _ = std::fs::remove_file(other);
    }
    let unfinished = files.unfinished();
    let Ok(file) = create(&unfinished, database) else {
        return Ok(None);
    };
    // An index that does not know of a purge yet must not even be begun: the process might die.
    let before = unsaved.mark;
    let mark = "SELECT saved FROM tenants WHERE num = ?1";
    let mark = connection.query_row(mark, [tenant], |row| row.get(0));
    let is_current = mark == Ok(before);
    let written = is_current.then(|| write(file, unsaved).ok()).flatten();
    let kept = written.map(|mark| {
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .at(&place)?;
        let renamed = transaction
            .execute(
                "UPDATE tenants SET saved = ?3 WHERE num = ?1 AND saved = ?2",
                [tenant, before, mark],
            )
            .at(&place)?;
        if renamed == 0 || std::fs::rename(&unfinished, &files.done).is_err() {
            return Ok(None);
        }
        transaction.commit().at(&place)?;
        Ok(Some(mark))
    });
    let kept = kept.transpose().map(Option::flatten);
    if !matches!(kept, Ok(Some(_))) {
        let _ = std::fs::remove_file(&unfinished);
    }
    kept
}

/// Writes the file under a new mark, which it returns. The index is let go before the disk is
/// waited for.
fn write(mut file: File, Unsaved { tracked, .. }: Unsaved) -> io::Result<i64> {
    let mark = fastrand::i64(1..);
    let cursor = tracked.cursor();
    let numbers = [cursor.seq, cursor.embedded, cursor.removed];
    for number in [mark.cast_unsigned()].into_iter().chain(numbers) {
        file.write_all(&number.to_le_bytes())?;
    }
    tracked.index().save(&mut file)?;
    drop(tracked);
    file.sync_all()?;
    Ok(mark)
}

/// Removes the saved index of a tenant of whom something is purged, in the purge's transaction.
pub(super) fn forget(connection: &Connection, place: &str, tenant: i64) -> Result<(), StoreError> {
    connection
        .prepare_cached("UPDATE tenants SET saved = ?2 WHERE num = ?1")
        .and_then(|mut update| update.execute([tenant, fastrand::i64(1..)]))
        .at(place)?;
    let Some(files) = SnapshotPath::of(connection, tenant) else {
        return Ok(());
    };
    let unfinished = files.all_unfinished().into_iter();
    for file in unfinished.chain([files.done]) {
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let what = "it contains data that is to be purged, and cannot be removed";
                return Err(unavailable(file.display().to_string(), what, error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The same for one that is a day old, when something has expired.
pub(super) fn forget_old(
    connection: &Connection,
    place: &str,
    tenant: i64,
) -> Result<(), StoreError> {
    let files = SnapshotPath::of(connection, tenant);
    match files.and_then(|files| age(&files.done)) {
        Some(age) if age > OLD => forget(connection, place, tenant),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An empty index.
    fn empty(mark: i64) -> Slot {
        let slot = Slot::default();
        *slot.write() = Some(OpenIndex::new(0, mark, TrackedIndex::default(), 0));
        slot
    }

    /// Whether there is an index of the tenant `ours` with this mark.
    fn is_saved(connection: &Connection, mark: i64) -> bool {
        let mut snapshot = TenantSnapshot::look(connection, "m.db", 1).unwrap();
        snapshot.mark = mark;
        load(&snapshot).is_some()
    }

    /// A database with a tenant or two.
    fn database(folder: &Path) -> (PathBuf, Connection) {
        let file = folder.join("m.db");
        let connection = schema::open(&file).unwrap();
        let tenants = "INSERT INTO tenants (num, name) VALUES (1, 'ours'), (12, 'other')";
        connection.execute_batch(tenants).unwrap();
        (file, connection)
    }

    fn files(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name());
        let names = names.map(|name| name.to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| name.contains("-index.")).collect();
        names.sort();
        names
    }

    #[test]
    fn an_index_from_before_a_purge_is_not_saved_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let (file, connection) = database(folder.path());
        let early = empty(0);
        save(&file, FileId::of(&file), 12, &empty(0));
        save(&file, FileId::of(&file), 1, &early);
        assert_eq!(files(folder.path()), ["m.db-index.1", "m.db-index.12"]);
        let mark = early.read().as_ref().unwrap().mark;
        assert!(is_saved(&connection, mark));
        assert!(!is_saved(&connection, mark + 1), "another mark");

        // Somebody has begun to write one, and somebody else died over it.
        std::fs::write(folder.path().join("m.db-index.1.0000.new"), "half").unwrap();
        forget(&connection, "m.db", 1).unwrap();
        assert_eq!(files(folder.path()), ["m.db-index.12"]);
        save(&file, FileId::of(&file), 1, &early);
        assert_eq!(files(folder.path()), ["m.db-index.12"]);
    }

    #[test]
    fn two_do_not_save_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let (file, _) = database(folder.path());
        std::fs::write(folder.path().join("m.db-index.1.0002.new"), "half").unwrap();
        save(&file, FileId::of(&file), 1, &empty(0));
        assert_eq!(files(folder.path()), ["m.db-index.1.0002.new"]);
    }

    #[test]
    fn what_the_dead_left_behind_is_cleared_away() {
        let folder = tempfile::tempdir().unwrap();
        let (file, connection) = database(folder.path());
        let aged = |name: &str, age: Duration| {
            let file = File::create(folder.path().join(name)).unwrap();
            file.set_modified(std::time::SystemTime::now() - age)
                .unwrap();
        };
        aged("m.db-index.1.0001.new", ABANDONED * 2);
        save(&file, FileId::of(&file), 1, &empty(0));
        assert_eq!(files(folder.path()), ["m.db-index.1"]);

        // What has expired may be known to a file for a day.
        forget_old(&connection, "m.db", 1).unwrap();
        assert_eq!(files(folder.path()), ["m.db-index.1"]);
        aged("m.db-index.1", OLD * 2);
        forget_old(&connection, "m.db", 1).unwrap();
        assert!(files(folder.path()).is_empty());
    }
}
