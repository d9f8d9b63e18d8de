//! Files and logs below a folder of the disk.

mod sweep;

use std::fs::{self, File as Handle, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use mnemon_core::files::{File, Files, FilesError, Listed, Stamp, Sweep, check_path};
use mnemon_core::limits;
use mnemon_core::log::{Log, Piece};
use sha2::{Digest, Sha256};

use crate::documents::modified;
use crate::private;
pub use sweep::sweep_stale;
use sweep::{sweep_at, sweep_locked};

/// What a file that is being written is called until it is whole. Listings leave such names out.
const UNFINISHED: &str = ".mnemon-unfinished";

/// How often a write is tried again because its folder vanished.
const TRIES: usize = 100;

/// The files below one folder. Names cannot lead out of it, links in it neither.
///
/// A name is resolved to its real place before it is opened. Whoever may replace folders by links
/// at the same moment could still win that race; they can write to the folder anyway.
#[derive(Debug, Clone)]
pub struct Disk {
    root: PathBuf,
    private: bool,
}

impl Disk {
    /// The files below this folder, which is made when something is first written.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            private: false,
        }
    }

    /// The same for files that nobody else may read: new files, and the folders that are made to
    /// hold them, are their owner's only. Otherwise they follow the umask.
    pub fn private(root: impl Into<PathBuf>) -> Self {
        Self {
            private: true,
            ..Self::new(root)
        }
    }

    /// The real place of a name; `None` when a folder on the way is not there.
    fn place(&self, path: &str) -> Result<Option<PathBuf>, FilesError> {
        let root = match fs::canonicalize(&self.root) {
            Ok(root) => root,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(path, error)),
        };
        let mut place = root.clone();
        for part in path.split('/').filter(|part| !part.is_empty()) {
            let next = place.join(part);
            match fs::symlink_metadata(&next) {
                Ok(meta) if meta.is_symlink() => place = followed(&root, &next, path)?,
                // Below something that is not there, nothing can be a link.
                _ => place = next,
            }
        }
        Ok(Some(place))
    }

    /// The real place of a name, with the folder that it is in.
    fn place_to_write(&self, path: &str) -> Result<PathBuf, FilesError> {
        make_folder(&self.root, self.private).map_err(|error| failed(path, error))?;
        let Some(place) = self.place(path)? else {
            return Err(failed(path, io::ErrorKind::NotFound.into()));
        };
        make_folder(parent(&place), self.private).map_err(|error| failed(path, error))?;
        Ok(place)
    }

    fn read_now(&self, path: &str) -> Result<Option<File>, FilesError> {
        match self.place(path)? {
            Some(place) => read_at(path, &place),
            None => Ok(None),
        }
    }

    fn try_write(
        &self,
        path: &str,
        bytes: &[u8],
        unchanged_since: Option<&Stamp>,
    ) -> Result<Stamp, FilesError> {
        let place = self.place_to_write(path)?;
        let lock = turn(parent(&place)).map_err(|error| failed(path, error))?;
        expect(path, &place, unchanged_since)?;
        // A folder that cannot be swept can still be written.
        let _ = sweep_locked(parent(&place), false);
        let unfinished = unfinished(&place);
        // One that replaces another gets that one's mode before it takes its place.
        let private = self.private || unchanged_since.is_some();
        let replaced = write_synced(&unfinished, bytes, private)
            .map_err(|error| failed(path, error))
            .and_then(|()| {
                // A person's editor knows no lock. Syncing took milliseconds; what was saved in the
                // meantime is seen here, and only a few microseconds are left.
                expect(path, &place, unchanged_since)?;
                match put_into_place(&unfinished, &place, unchanged_since.is_none()) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                        Err(conflict(path))
                    }
                    other => other.map_err(|error| failed(path, error)),
                }
            });
        if replaced.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        replaced?;
        drop(lock);
        let meta = fs::metadata(&place).map_err(|error| failed(path, error))?;
        Ok(Stamp {
            digest: digest(bytes),
            modified: modified(&meta),
        })
    }

    fn remove_now(&self, path: &str, unchanged_since: &Stamp) -> Result<(), FilesError> {
        let Some(place) = self.place(path)? else {
            return Err(conflict(path));
        };
        let _lock = match turn(parent(&place)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(conflict(path)),
            other => other.map_err(|error| failed(path, error))?,
        };
        expect(path, &place, Some(unchanged_since))?;
        let removed = fs::remove_file(&place).and_then(|()| sync_folder(parent(&place)));
        removed.map_err(|error| failed(path, error))?;
        self.drop_empty_folders(parent(&place));
        Ok(())
    }

    /// A folder without files is no folder to this port: none is left behind.
    fn drop_empty_folders(&self, folder: &Path) {
        let Ok(root) = fs::canonicalize(&self.root) else {
            return;
        };
        let inside = |folder: &&Path| folder.starts_with(&root) && **folder != *root;
        for folder in folder.ancestors().take_while(inside) {
            // It fails when something is in it, which is what we want.
            if fs::remove_dir(folder).is_err() {
                return;
            }
        }
    }

    fn list_now(&self, folder: &str) -> Result<Vec<Listed>, FilesError> {
        if !folder.is_empty() {
            check_path(folder)?;
        }
        let mut found = Vec::new();
        if let Some(place) = self.place(folder)? {
            self.gather(&place, folder, 0, &mut found)?;
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    fn gather(
        &self,
        place: &Path,
        path: &str,
        depth: usize,
        found: &mut Vec<Listed>,
    ) -> Result<(), FilesError> {
        let entries = match fs::read_dir(place) {
            Ok(entries) => entries,
            Err(error) if is_nothing(&error) => return Ok(()),
            Err(error) => return Err(failed(path, error)),
        };
        for entry in entries {
            let entry = entry.map_err(|error| failed(path, error))?;
            // A name that is no text cannot be asked for either.
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else {
                continue;
            };
            let inner = match path {
                "" => name,
                _ => format!("{path}/{name}"),
            };
            if inner.ends_with(UNFINISHED) || check_path(&inner).is_err() {
                continue;
            }
            // Links are read when they are asked for; a listing that followed them could run in a
            // circle.
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_dir() && depth < limits::FOLDER_DEPTH {
                self.gather(&entry.path(), &inner, depth + 1, found)?;
            } else if meta.is_file() {
                if found.len() == limits::FILES {
                    let (path, most) = (path.to_owned(), limits::FILES);
                    return Err(FilesError::TooMany { path, most });
                }
                found.push(Listed {
                    path: inner,
                    bytes: meta.len(),
                    modified: modified(&meta),
                });
            }
        }
        Ok(())
    }

    fn sweep_now(&self, folder: &str, sweep: Sweep) -> Result<Vec<String>, FilesError> {
        if !folder.is_empty() {
            check_path(folder)?;
        }
        let mut swept = Vec::new();
        if let Some(place) = self.place(folder)? {
            let swept_below = sweep_at(&place, folder, sweep, 0, &mut swept);
            swept_below.map_err(|error| failed(folder, error))?;
        }
        swept.sort();
        Ok(swept)
    }

    fn erase_now(&self, path: &str) -> Result<bool, FilesError> {
        let Some(place) = self.place(path)? else {
            return Ok(false);
        };
        let erased = erase_at(&place).map_err(|error| failed(path, error))?;
        if erased {
            self.drop_empty_folders(parent(&place));
        }
        Ok(erased)
    }

    fn append_now(&self, path: &str, bytes: &[u8]) -> Result<u64, FilesError> {
        check_size(path, bytes.len() as u64)?;
        again(|| {
            let place = self.place_to_write(path)?;
            append_at(&place, bytes, self.private).map_err(|error| failed(path, error))
        })
    }

    fn read_before_now(
        &self,
        path: &str,
        end: Option<u64>,
        most: usize,
    ) -> Result<Option<Piece>, FilesError> {
        let Some(place) = self.place(path)? else {
            return Ok(None);
        };
        // Anything else than a file has no end to read before.
        if !fs::metadata(&place).is_ok_and(|meta| meta.is_file()) {
            return Ok(None);
        }
        match read_before(&place, end, most.min(limits::FILE_BYTES)) {
            Ok(piece) => Ok(Some(piece)),
            Err(error) if is_nothing(&error) => Ok(None),
            Err(error) => Err(failed(path, error)),
        }
    }

    /// Works on a file, on a thread where it may block.
    async fn at_file<T: Send + 'static>(
        &self,
        path: &str,
        work: impl FnOnce(Self, &str) -> Result<T, FilesError> + Send + 'static,
    ) -> Result<T, FilesError> {
        check_path(path)?;
        let path = path.to_owned();
        self.blocking(move |disk| work(disk, &path)).await
    }

    /// Waits for the disk without holding up other tasks; where there is no runtime, there are
    /// none.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(Self) -> Result<T, FilesError> + Send + 'static,
    ) -> Result<T, FilesError> {
        let disk = self.clone();
        let lost = || {
            Err(FilesError::Unavailable {
                path: self.root.display().to_string(),
                what: "internal error: a call panicked".to_owned(),
                source: None,
            })
        };
        let answer = crate::blocking::run(move || work(disk)).await;
        answer.unwrap_or_else(lost)
    }
}

#[async_trait]
impl Files for Disk {
    async fn read(&self, path: &str) -> Result<Option<File>, FilesError> {
        self.at_file(path, |disk, path| disk.read_now(path)).await
    }

    async fn write(
        &self,
        path: &str,
        bytes: &[u8],
        unchanged_since: Option<&Stamp>,
    ) -> Result<Stamp, FilesError> {
        let (bytes, since) = (bytes.to_vec(), unchanged_since.cloned());
        let write = move |disk: Self, path: &str| {
            check_size(path, bytes.len() as u64)?;
            again(|| disk.try_write(path, &bytes, since.as_ref()))
        };
        self.at_file(path, write).await
    }

    async fn remove(&self, path: &str, unchanged_since: &Stamp) -> Result<(), FilesError> {
        let since = unchanged_since.clone();
        self.at_file(path, move |disk, path| disk.remove_now(path, &since))
            .await
    }

    async fn list(&self, folder: &str) -> Result<Vec<Listed>, FilesError> {
        let folder = folder.to_owned();
        self.blocking(move |disk| disk.list_now(&folder)).await
    }

    async fn changed(&self, folder: &str, known: &[Listed]) -> Result<Vec<String>, FilesError> {
        let now = self.list(folder).await?;
        let new = now.iter().filter(|file| !known.contains(file));
        let old = known.iter().filter(|file| !now.contains(file));
        let mut paths: Vec<String> = new.chain(old).map(|file| file.path.clone()).collect();
        paths.sort();
        paths.dedup();
        Ok(paths)
    }

    async fn sweep(&self, folder: &str, sweep: Sweep) -> Result<Vec<String>, FilesError> {
        let folder = folder.to_owned();
        self.blocking(move |disk| disk.sweep_now(&folder, sweep))
            .await
    }
}

#[async_trait]
impl Log for Disk {
    async fn append(&self, path: &str, bytes: &[u8]) -> Result<u64, FilesError> {
        let bytes = bytes.to_vec();
        self.at_file(path, move |disk, path| disk.append_now(path, &bytes))
            .await
    }

    async fn read_before(
        &self,
        path: &str,
        end: Option<u64>,
        most: usize,
    ) -> Result<Option<Piece>, FilesError> {
        self.at_file(path, move |disk, path| {
            disk.read_before_now(path, end, most)
        })
        .await
    }

    async fn erase(&self, path: &str) -> Result<bool, FilesError> {
        self.at_file(path, |disk, path| disk.erase_now(path)).await
    }
}

/// A folder that became empty may be taken away between the moment we made it and the moment we
/// use it: then it is made again.
fn again<T>(mut work: impl FnMut() -> Result<T, FilesError>) -> Result<T, FilesError> {
    for _ in 0..TRIES {
        match work() {
            Err(FilesError::Unavailable {
                source: Some(error),
                ..
            }) if error.kind() == io::ErrorKind::NotFound => {}
            done => return done,
        }
    }
    work()
}

/// Where the link leads, if that is below the root.
fn followed(root: &Path, link: &Path, path: &str) -> Result<PathBuf, FilesError> {
    let outside = |what: &str| FilesError::Outside {
        path: path.to_owned(),
        what: what.to_owned(),
    };
    let real = fs::canonicalize(link).map_err(|_| outside("it is a broken link"))?;
    match real.starts_with(root) {
        true => Ok(real),
        false => Err(outside("a link in it leads out of the root")),
    }
}

fn read_at(path: &str, place: &Path) -> Result<Option<File>, FilesError> {
    // Asked before it is opened: opening a pipe would wait for somebody to write.
    let meta = match fs::metadata(place) {
        Ok(meta) if meta.is_file() => meta,
        Ok(_) => return Ok(None),
        Err(error) if is_nothing(&error) => return Ok(None),
        Err(error) => return Err(failed(path, error)),
    };
    check_size(path, meta.len())?;
    let handle = Handle::open(place).map_err(|error| failed(path, error))?;
    let mut bytes = Vec::new();
    // One byte more than is allowed tells a file that grows while it is read.
    let mut bounded = handle.take(limits::FILE_BYTES as u64 + 1);
    bounded
        .read_to_end(&mut bytes)
        .map_err(|error| failed(path, error))?;
    check_size(path, bytes.len() as u64)?;
    let stamp = Stamp {
        digest: digest(&bytes),
        modified: modified(&meta),
    };
    Ok(Some(File { bytes, stamp }))
}

/// The file holds what the stamp says, or is not there if there is none.
fn expect(path: &str, place: &Path, stamp: Option<&Stamp>) -> Result<(), FilesError> {
    let there = read_at(path, place)?.map(|file| file.stamp.digest);
    match there.as_ref() == stamp.map(|stamp| &stamp.digest) {
        true => Ok(()),
        false => Err(conflict(path)),
    }
}

/// Where a file is written before it is moved to its place in one step.
fn unfinished(place: &Path) -> PathBuf {
    parent(place).join(format!(".{:016x}{UNFINISHED}", fastrand::u64(..)))
}

/// Moves a file to its place. A new one never replaces one that somebody made meanwhile without
/// our lock.
fn put_into_place(unfinished: &Path, place: &Path, is_new: bool) -> io::Result<()> {
    if is_new {
        match fs::hard_link(unfinished, place) {
            Ok(()) => fs::remove_file(unfinished)?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
            // Not every file system has links.
            Err(_) => fs::rename(unfinished, place)?,
        }
    } else {
        let permissions = fs::metadata(place)?.permissions();
        fs::set_permissions(unfinished, permissions)?;
        fs::rename(unfinished, place)?;
    }
    sync_folder(parent(place))
}

/// Options for a file that is its owner's only, or follows the umask.
fn options(private: bool) -> OpenOptions {
    match private {
        true => private::options(),
        false => OpenOptions::new(),
    }
}

fn write_synced(place: &Path, bytes: &[u8], private: bool) -> io::Result<()> {
    let mut handle = options(private).write(true).create_new(true).open(place)?;
    handle.write_all(bytes)?;
    handle.sync_all()
}

/// Takes a log away when no writer is at it; whether it was there.
fn erase_at(place: &Path) -> io::Result<bool> {
    match fs::metadata(place) {
        Ok(meta) if meta.is_file() => {}
        Ok(_) => return Ok(false),
        Err(error) if is_nothing(&error) => return Ok(false),
        Err(error) => return Err(error),
    }
    let handle = match OpenOptions::new().read(true).open(place) {
        Err(error) if is_nothing(&error) => return Ok(false),
        other => other?,
    };
    handle.lock()?;
    match fs::remove_file(place) {
        Err(error) if is_nothing(&error) => return Ok(false),
        other => other?,
    }
    sync_folder(parent(place))?;
    Ok(true)
}

/// The log, locked. One that was erased while we waited for the lock is not written to: what was
/// appended to it would be lost.
fn locked_log(place: &Path, private: bool) -> io::Result<Handle> {
    loop {
        let handle = options(private)
            .read(true)
            .append(true)
            .create(true)
            .open(place)?;
        // Writers take turns; the lock goes with the handle.
        handle.lock()?;
        if is_still_at(&handle, place)? {
            return Ok(handle);
        }
    }
}

/// Whether the path still leads to the open file.
#[cfg(unix)]
pub(crate) fn is_still_at(handle: &Handle, place: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let ours = handle.metadata()?;
    match fs::metadata(place) {
        Ok(there) => Ok((there.dev(), there.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Elsewhere a file that is open cannot be taken away.
#[cfg(not(unix))]
pub(crate) fn is_still_at(_handle: &Handle, _place: &Path) -> io::Result<bool> {
    Ok(true)
}

fn append_at(place: &Path, bytes: &[u8], private: bool) -> io::Result<u64> {
    let mut handle = locked_log(place, private)?;
    let before = handle.seek(SeekFrom::End(0))?;
    let mut whole = Vec::with_capacity(bytes.len() + 1);
    if before > 0 {
        let mut last = [0];
        handle.seek(SeekFrom::End(-1))?;
        handle.read_exact(&mut last)?;
        if last != *b"\n" {
            whole.push(b'\n');
        }
    }
    whole.extend_from_slice(bytes);
    let written = handle.write_all(&whole).and_then(|()| handle.sync_data());
    if let Err(error) = written {
        // What was not acknowledged is taken back, as far as the disk lets us.
        let _ = handle.set_len(before);
        return Err(error);
    }
    if before == 0 {
        sync_folder(parent(place))?;
    }
    Ok(before + whole.len() as u64)
}

fn read_before(place: &Path, end: Option<u64>, most: usize) -> io::Result<Piece> {
    let mut handle = Handle::open(place)?;
    let length = handle.metadata()?.len();
    let end = end.unwrap_or(length).min(length);
    let start = end.saturating_sub(most as u64);
    handle.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    handle.take(end - start).read_to_end(&mut bytes)?;
    Ok(Piece { start, bytes })
}

/// Writers of one folder take turns, also between processes.
#[cfg(unix)]
fn turn(folder: &Path) -> io::Result<Handle> {
    let handle = Handle::open(folder)?;
    handle.lock()?;
    Ok(handle)
}

/// Elsewhere a folder cannot be locked: writers of one process still take turns.
#[cfg(not(unix))]
fn turn(_folder: &Path) -> io::Result<std::sync::MutexGuard<'static, ()>> {
    static ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    Ok(ONE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner))
}

/// Makes the folder of a store, and those above it that are missing; they are their owner's only.
pub(crate) fn make_store_folder(folder: &Path) -> io::Result<()> {
    make_synced(folder, private::make_folder)
}

/// Makes the folder; a private one is its owner's only, those above it follow the umask.
fn make_folder(folder: &Path, private: bool) -> io::Result<()> {
    make_synced(folder, |folder| match private {
        true => fs::create_dir_all(parent(folder)).and_then(|()| private::make_folder(folder)),
        false => fs::create_dir_all(folder),
    })
}

/// Makes the folder, and sees to it that it survives a power cut.
fn make_synced(folder: &Path, make: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let missing: Vec<&Path> = folder.ancestors().take_while(|dir| !dir.is_dir()).collect();
    make(folder)?;
    missing
        .into_iter()
        .try_for_each(|dir| sync_folder(parent(dir)))
}

pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(unix)]
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    Handle::open(folder)?.sync_all()
}

/// Elsewhere a folder cannot be opened as a file; the file system orders its own entries.
#[cfg(not(unix))]
pub(crate) fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// Whether the error says that there is no such file.
fn is_nothing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn check_size(path: &str, bytes: u64) -> Result<(), FilesError> {
    let most = limits::FILE_BYTES as u64;
    match bytes > most {
        true => Err(FilesError::TooLarge {
            path: path.to_owned(),
            bytes,
            most,
        }),
        false => Ok(()),
    }
}

fn digest(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(bytes)
        .iter()
        .fold(String::with_capacity(64), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
}

fn conflict(path: &str) -> FilesError {
    let path = path.to_owned();
    FilesError::Conflict { path }
}

fn failed(path: &str, source: io::Error) -> FilesError {
    FilesError::Unavailable {
        path: path.to_owned(),
        what: source.to_string(),
        source: Some(source),
    }
}
