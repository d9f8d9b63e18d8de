//! An index in a folder.
//!
//! ```text
//! FOLDER/mnemon-index.json           the format, and the generation that searches use
//! FOLDER/mnemon-index.lock           locked while a process writes
//! FOLDER/gN/documents.lance          the table of a generation
//! FOLDER/gN/watermarks/TENANT.json   how far a tenant's documents follow the store
//! ```
//!
//! A small file is replaced by renaming, after its content is durable. Lance does not sync its files, so
//! [`Home::sync`] does before a watermark is raised.

use std::collections::HashSet;
use std::error::Error;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use lance::session::Session;
use lance_table::io::commit::CommitHandler;
use mnemon_adapters::external_index::{Generation, Watermark};
use mnemon_adapters::make_private_folder;
use mnemon_core::{StoreError, Tenant};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::home::{self, Home, MARKER, Marker, TABLE, Turn, WATERMARKS, WatermarkFile};

const LOCK: &str = "mnemon-index.lock";
/// The wait between two attempts to get the lock.
const LOCK_POLL: Duration = Duration::from_millis(5);
/// Folders below a table that are synced at the most.
const SYNC_DEPTH: usize = 4;

/// An index in a folder.
pub(crate) struct Folder {
    path: PathBuf,
    /// How messages name it.
    place: String,
    wait: Duration,
    session: Arc<Session>,
    /// Files that this process knows to be durable.
    synced: Mutex<HashSet<PathBuf>>,
}

impl Folder {
    pub(crate) fn new(path: PathBuf, place: String, wait: Duration) -> Self {
        Self {
            path,
            place,
            wait,
            session: home::session(lance::io::ObjectStoreRegistry::default()),
            synced: Mutex::default(),
        }
    }

    fn folder_of(&self, generation: &Generation) -> PathBuf {
        self.path.join(&generation.0)
    }

    fn table_of(&self, generation: &Generation) -> PathBuf {
        self.folder_of(generation).join(TABLE)
    }

    fn marker(&self) -> Result<Option<Marker>, StoreError> {
        let marker: Option<Marker> = self.read(&self.path.join(MARKER))?;
        if let Some(marker) = &marker {
            marker.check(&self.place)?;
        }
        Ok(marker)
    }

    /// Has searches use a generation. The caller holds the lock.
    fn mark_current(&self, generation: Option<&Generation>) -> Result<(), StoreError> {
        self.replace(&self.path.join(MARKER), &Marker::new(generation))
    }

    /// Deletes all generations but one.
    fn remove_others(&self, generation: &Generation) -> Result<(), StoreError> {
        let failed = |error| self.failed("cannot delete an old generation", error);
        for entry in fs::read_dir(&self.path).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let name = name.to_string_lossy();
            if home::is_generation(&name) && name != generation.0 {
                let other = self.path.join(&*name);
                // First what says that it is there, so that no process uses a half of it.
                let watermarks = gone_is_fine(fs::remove_dir_all(other.join(WATERMARKS)));
                watermarks.map_err(failed)?;
                gone_is_fine(fs::remove_dir_all(&other)).map_err(failed)?;
            }
        }
        Ok(())
    }

    fn watermark_path(&self, generation: &Generation, tenant: &Tenant) -> PathBuf {
        let watermarks = self.folder_of(generation).join(WATERMARKS);
        watermarks.join(WatermarkFile::name(tenant))
    }

    fn read<T: DeserializeOwned>(&self, path: &Path) -> Result<Option<T>, StoreError> {
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => return Err(self.failed("cannot read the folder", error)),
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        home::parsed(&self.place, &name, &text).map(Some)
    }

    /// Replaces a small file. The caller holds the lock.
    fn replace(&self, path: &Path, content: &impl Serialize) -> Result<(), StoreError> {
        let write = || {
            let fresh = path.with_extension("json.new");
            let mut file = File::create(&fresh)?;
            file.write_all(&serde_json::to_vec(content)?)?;
            file.sync_all()?;
            fs::rename(&fresh, path)?;
            sync_folder(path.parent().unwrap_or(path))
        };
        write().map_err(|error| self.failed("cannot write to the folder", error))
    }

    fn failed(&self, what: &str, error: io::Error) -> StoreError {
        let place = self.place.clone();
        match error.kind() {
            ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => {
                StoreError::ReadOnly { place }
            }
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StoreError::Full {
                place,
                source: error.into(),
            },
            _ => StoreError::Unavailable {
                place,
                what: format!("{what}: {error}"),
                source: error.into(),
            },
        }
    }
}

#[async_trait]
impl Home for Folder {
    fn place(&self) -> &str {
        &self.place
    }

    fn table(&self, generation: &Generation) -> String {
        self.table_of(generation).to_string_lossy().into_owned()
    }

    fn session(&self) -> Arc<Session> {
        self.session.clone()
    }

    fn commits(&self) -> Option<Arc<dyn CommitHandler>> {
        None
    }

    fn takes_turns(&self) -> bool {
        true
    }

    /// The system releases the lock when the process ends.
    async fn turn(&self) -> Result<Turn, StoreError> {
        let path = self.path.join(LOCK);
        let mut options = File::options();
        options.create(true).truncate(false).write(true);
        let file = options.open(path);
        let file = file.map_err(|error| self.failed("cannot open the lock", error))?;
        let began = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Box::new(file)),
                Err(TryLockError::WouldBlock) if began.elapsed() < self.wait => {
                    tokio::time::sleep(LOCK_POLL).await;
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(StoreError::Busy {
                        place: self.place.clone(),
                        seconds: self.wait.as_secs(),
                    });
                }
                Err(TryLockError::Error(error)) => {
                    return Err(self.failed("cannot lock the folder", error));
                }
            }
        }
    }

    async fn has(&self, generation: &Generation) -> Result<bool, StoreError> {
        let watermarks = self.folder_of(generation).join(WATERMARKS);
        Ok(watermarks.is_dir() && self.table_of(generation).is_dir())
    }

    async fn current(&self) -> Result<Option<Generation>, StoreError> {
        match self.marker()?.and_then(Marker::generation) {
            Some(named) if self.has(&named).await? => Ok(Some(named)),
            _ => Ok(None),
        }
    }

    async fn prepare(&self) -> Result<(), StoreError> {
        if self.marker()?.is_some() {
            return Ok(());
        }
        let done = make_private_folder(&self.path);
        done.map_err(|error| self.failed("cannot make the folder", error))?;
        let failed = |error| self.failed("cannot read the folder", error);
        for entry in fs::read_dir(&self.path).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let name = name.to_string_lossy();
            let is_ours = name.starts_with(MARKER) || name == LOCK;
            // The marker is written before everything else, perhaps a moment ago.
            if !is_ours && self.marker()?.is_none() {
                let what = format!(
                    "the folder holds `{}`, which is not of an index; name an empty folder",
                    name.escape_debug()
                );
                return Err(home::foreign(&self.place, what));
            }
        }
        Ok(())
    }

    async fn make(&self) -> Result<Generation, StoreError> {
        if self.marker()?.is_none() {
            self.mark_current(None)?;
        }
        let generation = home::new_generation();
        let folder = self.folder_of(&generation);
        let done = make_private_folder(&folder.join(WATERMARKS));
        let done = done.and_then(|()| sync_folder(&folder));
        let done = done.and_then(|()| sync_folder(&self.path));
        done.map_err(|error| self.failed("cannot make a folder", error))?;
        Ok(generation)
    }

    /// The folder of its table says so.
    async fn complete(&self, _: &Generation) -> Result<(), StoreError> {
        Ok(())
    }

    async fn offer(&self, generation: Generation) -> Result<Generation, StoreError> {
        self.activate(&generation).await?;
        Ok(generation)
    }

    async fn activate(&self, generation: &Generation) -> Result<(), StoreError> {
        self.mark_current(Some(generation))?;
        self.remove_others(generation)
    }

    async fn watermark(
        &self,
        generation: &Generation,
        tenant: &Tenant,
    ) -> Result<Option<Watermark>, StoreError> {
        let found: Option<WatermarkFile> = self.read(&self.watermark_path(generation, tenant))?;
        Ok(found.map(|found| found.watermark()))
    }

    async fn move_watermark(
        &self,
        generation: &Generation,
        tenant: &Tenant,
        from: Option<Watermark>,
        to: Watermark,
    ) -> Result<bool, StoreError> {
        let _turn = self.turn().await?;
        if self.watermark(generation, tenant).await? != from {
            return Ok(false);
        }
        let path = self.watermark_path(generation, tenant);
        self.replace(&path, &WatermarkFile::new(tenant, to))?;
        Ok(true)
    }

    fn sync(&self, generation: &Generation) -> Result<(), StoreError> {
        let mut known = self.synced.lock().unwrap_or_else(PoisonError::into_inner);
        let mut there = HashSet::new();
        let table = self.table_of(generation);
        let done = sync_files(&table, SYNC_DEPTH, &known, &mut there);
        done.map_err(|error| self.failed("cannot make files durable", error))?;
        *known = there;
        Ok(())
    }

    fn cause(&self, error: &(dyn Error + 'static)) -> Option<StoreError> {
        let io: &io::Error = home::found_in(error)?;
        let again = io::Error::new(io.kind(), io.to_string());
        let what = "cannot use a table (`mnemon index rebuild` makes a new one)";
        Some(self.failed(what, again))
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn gone_is_fine(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

fn sync_files(
    folder: &Path,
    depth: usize,
    known: &HashSet<PathBuf>,
    there: &mut HashSet<PathBuf>,
) -> io::Result<()> {
    let mut is_new = !known.contains(folder);
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            // Its name must last as well.
            is_new |= !known.contains(&path);
            if depth > 0 {
                sync_files(&path, depth - 1, known, there)?;
            }
            continue;
        }
        if !known.contains(&path) {
            // Lance renames and removes its own temporary files meanwhile.
            gone_is_fine(File::open(&path).and_then(|file| file.sync_all()))?;
            is_new = true;
        }
        there.insert(path);
    }
    if is_new {
        sync_folder(folder)?;
    }
    there.insert(folder.to_owned());
    Ok(())
}

/// Makes names in a folder durable.
fn sync_folder(folder: &Path) -> io::Result<()> {
    match cfg!(unix) {
        true => File::open(folder)?.sync_all(),
        // Elsewhere a folder cannot be opened.
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(path: &Path) -> Folder {
        let wait = Duration::from_millis(20);
        Folder::new(path.to_owned(), "lance:test".to_owned(), wait)
    }

    #[tokio::test]
    async fn only_generations_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let folder = folder(place.path());
        folder.prepare().await.unwrap();
        let (old, new) = (folder.make().await.unwrap(), folder.make().await.unwrap());
        for generation in [&old, &new] {
            fs::create_dir(folder.table(generation)).unwrap();
        }
        fs::write(place.path().join("notes.txt"), "mine").unwrap();
        folder.activate(&new).await.unwrap();
        assert_eq!(folder.current().await.unwrap(), Some(new));
        assert!(!folder.has(&old).await.unwrap());
        assert!(place.path().join("notes.txt").exists());
    }

    #[tokio::test]
    async fn a_folder_with_other_files_is_refused() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("notes.txt"), "mine").unwrap();
        let error = folder(place.path()).prepare().await.unwrap_err();
        assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
        assert!(
            error.to_string().contains("name an empty folder"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn a_newer_format_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let marker = r#"{"format": 2, "generation": null, "more": 1}"#;
        fs::write(place.path().join(MARKER), marker).unwrap();
        let folder = folder(place.path());
        let errors = [
            folder.current().await.unwrap_err(),
            folder.prepare().await.unwrap_err(),
        ];
        for error in errors {
            assert!(
                matches!(error, StoreError::TooNew { found: 2, .. }),
                "{error}"
            );
        }
    }

    #[tokio::test]
    async fn a_damaged_marker_is_reported_with_what_to_do() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join(MARKER), "{\"form").unwrap();
        let error = folder(place.path()).current().await.unwrap_err();
        assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
        assert!(
            error.to_string().contains("mnemon index rebuild"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn one_process_writes_at_a_time() {
        let place = tempfile::tempdir().unwrap();
        let (one, other) = (folder(place.path()), folder(place.path()));
        let held = one.turn().await.unwrap();
        let error = other.turn().await.err().unwrap();
        assert!(matches!(error, StoreError::Busy { .. }), "{error}");
        drop(held);
        other.turn().await.unwrap();
    }
}
