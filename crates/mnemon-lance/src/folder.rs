//! The folder of an index: which generation is used, watermarks, and the lock of those who write.
//!
//! ```text
//! FOLDER/mnemon-index.json           the format, and the generation that searches use
//! FOLDER/mnemon-index.lock           locked while a process writes
//! FOLDER/gN/documents.lance          the table of a generation
//! FOLDER/gN/watermarks/TENANT.json   how far a tenant's documents follow the store
//! ```
//!
//! A small file is replaced by renaming, after its content is durable. Lance does not sync its files, so
//! [`Folder::sync`] does before a watermark is raised.

use std::collections::HashSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mnemon_adapters::external_index::{Generation, Watermark};
use mnemon_adapters::make_private_folder;
use mnemon_core::{StoreError, Tenant};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The format of the folder and of its tables.
const FORMAT: i64 = 1;
const MARKER: &str = "mnemon-index.json";
const LOCK: &str = "mnemon-index.lock";
const TABLE: &str = "documents.lance";
const WATERMARKS: &str = "watermarks";
/// The wait between two attempts to get the lock.
const LOCK_POLL: Duration = Duration::from_millis(5);
/// Folders below a table that are synced at the most.
const SYNC_DEPTH: usize = 4;

#[derive(Serialize, Deserialize)]
struct Marker {
    format: i64,
    generation: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct WatermarkFile {
    tenant: String,
    seq: u64,
    embedded: u64,
}

/// The lock of those who write. The system releases it when the process ends.
pub(crate) struct Locked {
    _file: File,
}

/// The folder of an index.
pub(crate) struct Folder {
    path: PathBuf,
    /// How messages name it.
    place: String,
    wait: Duration,
}

impl Folder {
    pub(crate) fn new(path: PathBuf, place: String, wait: Duration) -> Self {
        Self { path, place, wait }
    }

    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    fn folder_of(&self, generation: &Generation) -> PathBuf {
        self.path.join(&generation.0)
    }

    pub(crate) fn table(&self, generation: &Generation) -> PathBuf {
        self.folder_of(generation).join(TABLE)
    }

    /// Whether the generation is there. A rebuild removes those that it replaces.
    pub(crate) fn has(&self, generation: &Generation) -> bool {
        self.folder_of(generation).join(WATERMARKS).is_dir() && self.table(generation).is_dir()
    }

    /// The generation that searches use, if there is one.
    pub(crate) fn current(&self) -> Result<Option<Generation>, StoreError> {
        let named = self.marker()?.and_then(|marker| marker.generation);
        let named = named.filter(|name| is_generation(name)).map(Generation);
        Ok(named.filter(|generation| self.has(generation)))
    }

    fn marker(&self) -> Result<Option<Marker>, StoreError> {
        let path = self.path.join(MARKER);
        let marker: Option<Marker> = self.read(&path)?;
        match &marker {
            Some(marker) if marker.format > FORMAT => Err(StoreError::TooNew {
                place: self.place.clone(),
                found: marker.format,
                known: FORMAT,
            }),
            _ => Ok(marker),
        }
    }

    /// Makes the folder, unless it is there. One with files of another program is refused.
    pub(crate) fn prepare(&self) -> Result<(), StoreError> {
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
                return Err(self.foreign(format!(
                    "the folder holds `{}`, which is not of an index; name an empty folder",
                    name.escape_debug()
                )));
            }
        }
        Ok(())
    }

    /// Says that the folder is one of an index. The caller holds the lock.
    pub(crate) fn claim(&self) -> Result<(), StoreError> {
        match self.marker()? {
            Some(_) => Ok(()),
            None => self.mark_current(None),
        }
    }

    /// Makes the folder of a new generation, without its table.
    pub(crate) fn make(&self) -> Result<Generation, StoreError> {
        let generation = Generation(format!("g{:016x}", fastrand::u64(..)));
        let folder = self.folder_of(&generation);
        let done = make_private_folder(&folder.join(WATERMARKS));
        let done = done.and_then(|()| sync_folder(&folder));
        let done = done.and_then(|()| sync_folder(&self.path));
        done.map_err(|error| self.failed("cannot make a folder", error))?;
        Ok(generation)
    }

    /// Has searches use a generation.
    pub(crate) fn mark_current(&self, generation: Option<&Generation>) -> Result<(), StoreError> {
        let marker = Marker {
            format: FORMAT,
            generation: generation.map(|it| it.0.clone()),
        };
        self.replace(&self.path.join(MARKER), &marker)
    }

    /// Deletes all generations but one.
    pub(crate) fn remove_others(&self, generation: &Generation) -> Result<(), StoreError> {
        let failed = |error| self.failed("cannot delete an old generation", error);
        for entry in fs::read_dir(&self.path).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let name = name.to_string_lossy();
            if is_generation(&name) && name != generation.0 {
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
        let digest = blake3::hash(tenant.as_str().as_bytes()).to_hex();
        let watermarks = self.folder_of(generation).join(WATERMARKS);
        watermarks.join(format!("{digest}.json"))
    }

    /// How far a tenant's documents follow the store; `None` if nothing was written yet.
    pub(crate) fn watermark(
        &self,
        generation: &Generation,
        tenant: &Tenant,
    ) -> Result<Option<Watermark>, StoreError> {
        let path = self.watermark_path(generation, tenant);
        let found: Option<WatermarkFile> = self.read(&path)?;
        Ok(found.map(|found| Watermark {
            seq: found.seq,
            embedded: found.embedded,
        }))
    }

    pub(crate) fn set_watermark(
        &self,
        generation: &Generation,
        tenant: &Tenant,
        to: Watermark,
    ) -> Result<(), StoreError> {
        let file = WatermarkFile {
            tenant: tenant.to_string(),
            seq: to.seq,
            embedded: to.embedded,
        };
        self.replace(&self.watermark_path(generation, tenant), &file)
    }

    /// Waits until no other process writes.
    pub(crate) async fn lock(&self) -> Result<Locked, StoreError> {
        let path = self.path.join(LOCK);
        let mut options = File::options();
        options.create(true).truncate(false).write(true);
        let file = options.open(path);
        let file = file.map_err(|error| self.failed("cannot open the lock", error))?;
        let began = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Locked { _file: file }),
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

    /// Makes the files of a table durable, but for those that are known to be.
    pub(crate) fn sync(
        &self,
        generation: &Generation,
        known: &mut HashSet<PathBuf>,
    ) -> Result<(), StoreError> {
        let mut there = HashSet::new();
        let done = sync_files(&self.table(generation), SYNC_DEPTH, known, &mut there);
        done.map_err(|error| self.failed("cannot make files durable", error))?;
        *known = there;
        Ok(())
    }

    fn read<T: DeserializeOwned>(&self, path: &Path) -> Result<Option<T>, StoreError> {
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => return Err(self.failed("cannot read the folder", error)),
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let found = serde_json::from_slice(&text).map_err(|error| StoreError::Corrupt {
            place: self.place.clone(),
            what: format!("{name}: {error}; delete the folder and run `mnemon index rebuild`"),
        })?;
        Ok(Some(found))
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

    pub(crate) fn foreign(&self, what: String) -> StoreError {
        StoreError::Foreign {
            place: self.place.clone(),
            what,
        }
    }

    pub(crate) fn failed(&self, what: &str, error: io::Error) -> StoreError {
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

fn is_generation(name: &str) -> bool {
    let digits = name.strip_prefix('g').unwrap_or_default();
    digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
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

    #[test]
    fn only_generations_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let folder = folder(place.path());
        folder.prepare().unwrap();
        let (old, new) = (folder.make().unwrap(), folder.make().unwrap());
        for generation in [&old, &new] {
            fs::create_dir(folder.table(generation)).unwrap();
        }
        fs::write(place.path().join("notes.txt"), "mine").unwrap();
        folder.mark_current(Some(&new)).unwrap();
        folder.remove_others(&new).unwrap();
        assert_eq!(folder.current().unwrap(), Some(new));
        assert!(!folder.has(&old) && place.path().join("notes.txt").exists());
    }

    #[test]
    fn a_folder_with_other_files_is_refused() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("notes.txt"), "mine").unwrap();
        let error = folder(place.path()).prepare().unwrap_err();
        assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
        assert!(
            error.to_string().contains("name an empty folder"),
            "{error}"
        );
    }

    #[test]
    fn a_newer_format_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let marker = r#"{"format": 2, "generation": null, "more": 1}"#;
        fs::write(place.path().join(MARKER), marker).unwrap();
        let folder = folder(place.path());
        for error in [folder.current().unwrap_err(), folder.prepare().unwrap_err()] {
            assert!(
                matches!(error, StoreError::TooNew { found: 2, .. }),
                "{error}"
            );
        }
    }

    #[test]
    fn a_damaged_marker_is_reported_with_what_to_do() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join(MARKER), "{\"form").unwrap();
        let error = folder(place.path()).current().unwrap_err();
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
        let held = one.lock().await.unwrap();
        let error = other.lock().await.err().unwrap();
        assert!(matches!(error, StoreError::Busy { .. }), "{error}");
        drop(held);
        other.lock().await.unwrap();
    }
}
