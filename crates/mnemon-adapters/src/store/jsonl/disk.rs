//! The folder on the disk: names, locks, identity, and what its errors mean.

use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use mnemon_core::{StoreError, Tenant};

use crate::files::{is_still_at, sync_folder};
use crate::private;
use crate::store::{foreign, unavailable};

/// How long a call waits for other processes before it gives up.
const PATIENCE: Duration = Duration::from_secs(30);

/// The files of one tenant.
#[derive(Debug, Clone)]
pub(super) struct Paths {
    pub(super) folder: PathBuf,
    pub(super) log: PathBuf,
    /// Where the next log is written before it takes the place of this one.
    pub(super) aside: PathBuf,
    /// Lines that could not be read, kept for people.
    pub(super) bad: PathBuf,
    pub(super) bad_aside: PathBuf,
    lock: PathBuf,
}

impl Paths {
    /// The default tenant's log lies where the original has it, others in folders of their own.
    pub(super) fn of(root: &Path, tenant: &Tenant) -> Self {
        let folder = if *tenant == Tenant::default() {
            root.to_owned()
        } else {
            tenants(root).join(tenant.as_str())
        };
        Self {
            log: folder.join("memory.jsonl"),
            aside: folder.join("memory.jsonl.tmp"),
            bad: folder.join("memory.jsonl.bad"),
            bad_aside: folder.join("memory.jsonl.bad.tmp"),
            lock: folder.join("memory.lock"),
            folder,
        }
    }

    pub(super) fn history(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// History files other than `current`. One is left behind when a rewrite was cut short.
    pub(super) fn histories_but(&self, current: Option<&str>) -> io::Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if generation_of(&name).is_some() && Some(&*name) != current {
                found.push(entry.path());
            }
        }
        found.sort();
        Ok(found)
    }

    /// The file of damaged lines, if there are any.
    pub(super) fn set_aside(&self) -> Option<PathBuf> {
        let metadata = look(&self.bad).ok().flatten()?;
        (metadata.len() > 0).then(|| self.bad.clone())
    }

    /// The folder with a file in it that has just been made or renamed survives a power cut.
    pub(super) fn sync_folder(&self) -> io::Result<()> {
        sync_folder(&self.folder)
    }
}

/// Where the folders of the tenants other than the default one are.
pub(super) fn tenants(root: &Path) -> PathBuf {
    root.join("tenants")
}

/// The name of the history that goes with this generation of the log.
pub(super) fn history_name(generation: u64) -> String {
    format!("history.{generation}.jsonl")
}

/// The generation in the name of a history file.
pub(super) fn generation_of(name: &str) -> Option<u64> {
    let number = name.strip_prefix("history.")?.strip_suffix(".jsonl")?;
    number.parse().ok()
}

/// Which file it is, however it was renamed. It holds as long as the file is kept open: only then
/// its number is not given to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity(Vec<u64>);

impl Identity {
    #[cfg(unix)]
    pub(super) fn of(_path: &Path, metadata: &Metadata) -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt;
        Ok(Self(vec![metadata.dev(), metadata.ino()]))
    }

    /// The beginning of the file: its header counts the rewrites.
    #[cfg(not(unix))]
    pub(super) fn of(path: &Path, _metadata: &Metadata) -> io::Result<Self> {
        use std::io::Read;
        let mut head = Vec::new();
        File::open(path)?.take(128).read_to_end(&mut head)?;
        Ok(Self(head.into_iter().map(u64::from).collect()))
    }
}

/// The file's metadata, if there is a file.
pub(super) fn look(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Makes a file for its owner only, or empties the one that is there.
pub(super) fn create(path: &Path) -> io::Result<File> {
    let mut options = private::options();
    options.write(true).create(true).truncate(true).open(path)
}

/// Removes the file if it is there. Whether it was.
pub(super) fn remove(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether the path still leads to the open file: nobody deleted it or put another in its place.
pub(super) fn is_at(file: &File, path: &Path) -> bool {
    is_still_at(file, path).unwrap_or(false)
}

/// Locks a log that is about to take its place, so that nobody uses it before the rewrite has
/// ended, whatever became of the lock file. Nobody else can hold it yet.
pub(super) fn hold_next_log(path: &Path) -> Option<File> {
    let file = open_log(path).ok().flatten().filter(|_| cfg!(unix))?;
    file.try_lock().ok()?;
    Some(file)
}

/// A lock among processes, on a file of its own: the log itself is replaced by compaction. It is
/// let go when it is dropped, or when the process ends in whatever way.
///
/// Somebody may delete the lock file, and then the next process makes and locks another. So a
/// writer holds a lock on the log, too, where that does not keep others from reading it.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
    _log: Option<File>,
}

impl Lock {
    /// Nobody else writes, and nobody who uses the same lock file reads.
    pub(super) fn exclusive(paths: &Paths) -> Result<Self, StoreError> {
        let failed = |error| write_failed(&paths.lock, error);
        let lock = locked(&paths.lock, Mode::Exclusive, || {
            open_lock(&paths.lock).map(Some).map_err(failed)
        })?;
        let log = match cfg!(unix) {
            true => locked(&paths.log, Mode::Exclusive, || open_log(&paths.log))?,
            false => None,
        };
        let gone = || StoreError::Internal("the lock file was not opened".to_owned());
        Ok(Self {
            _file: lock.ok_or_else(gone)?,
            _log: log,
        })
    }

    /// Like [`Lock::exclusive`], but gives up at once when somebody is there.
    pub(super) fn try_exclusive(paths: &Paths) -> Option<Self> {
        let file = open_lock(&paths.lock).ok()?;
        file.try_lock().ok()?;
        let log = match cfg!(unix) {
            true => open_log(&paths.log).ok()?,
            false => None,
        };
        if let Some(log) = &log {
            log.try_lock().ok()?;
        }
        is_at(&file, &paths.lock).then_some(Self {
            _file: file,
            _log: log,
        })
    }

    /// Nobody writes. `None` where there is no lock file that can be opened: no writer of ours has
    /// been here, or it is not for us to wait for one; what is half written is then not read.
    pub(super) fn shared(paths: &Paths) -> Result<Option<Self>, StoreError> {
        let lock = locked(&paths.lock, Mode::Shared, || {
            Ok(File::open(&paths.lock).ok())
        })?;
        Ok(lock.map(|file| Self {
            _file: file,
            _log: None,
        }))
    }
}

/// Opens the log for its lock; `None` while there is none.
fn open_log(path: &Path) -> Result<Option<File>, StoreError> {
    // For writing, too: network file systems let nobody else lock a file exclusively.
    match OpenOptions::new().read(true).append(true).open(path) {
        Ok(file) if file.metadata().is_ok_and(|meta| meta.is_file()) => Ok(Some(file)),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(write_failed(path, error)),
    }
}

/// Locks the file that is at the path. If another is there by the time it is locked, that one.
fn locked(
    path: &Path,
    mode: Mode,
    open: impl Fn() -> Result<Option<File>, StoreError>,
) -> Result<Option<File>, StoreError> {
    let started = Instant::now();
    while started.elapsed() < PATIENCE {
        let Some(file) = open()? else {
            return Ok(None);
        };
        let file = wait(file, path, mode)?;
        if is_at(&file, path) {
            return Ok(Some(file));
        }
    }
    Err(busy(path))
}

fn open_lock(path: &Path) -> io::Result<File> {
    let mut options = private::options();
    options.read(true).write(true).create(true).truncate(false);
    options.open(path)
}

#[derive(Clone, Copy)]
enum Mode {
    Exclusive,
    Shared,
}

fn wait(file: File, path: &Path, mode: Mode) -> Result<File, StoreError> {
    let tried = match mode {
        Mode::Exclusive => file.try_lock(),
        Mode::Shared => file.try_lock_shared(),
    };
    match tried {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => wait_patiently(file, path, mode),
        Err(TryLockError::Error(error)) => Err(read_failed(path, error)),
    }
}

/// The system's wait knows no time limit, so a thread waits. If it gets the lock too late, nobody
/// takes the file from it and the lock is let go at once.
fn wait_patiently(file: File, path: &Path, mode: Mode) -> Result<File, StoreError> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let waiting = std::thread::Builder::new().name("memory.lock".to_owned());
    let spawned = waiting.spawn(move || {
        let locked = match mode {
            Mode::Exclusive => file.lock(),
            Mode::Shared => file.lock_shared(),
        };
        // The receiver may have given up; then the file is closed here.
        let _ = sender.send(locked.map(|()| file));
    });
    spawned.map_err(|error| read_failed(path, error))?;
    match receiver.recv_timeout(PATIENCE) {
        Ok(locked) => locked.map_err(|error| read_failed(path, error)),
        Err(RecvTimeoutError::Timeout) => Err(busy(path)),
        Err(RecvTimeoutError::Disconnected) => Err(StoreError::Internal(
            "the thread of the lock has ended".to_owned(),
        )),
    }
}

fn busy(path: &Path) -> StoreError {
    StoreError::Busy {
        place: path.display().to_string(),
        seconds: PATIENCE.as_secs(),
    }
}

/// What a failure to write means to the caller.
pub(super) fn write_failed(path: &Path, error: io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => read_failed(path, error),
        _ => {
            let what = error.to_string();
            crate::store::write_failed(path, &what, error)
        }
    }
}

/// What a failure to read means to the caller.
pub(super) fn read_failed(path: &Path, error: io::Error) -> StoreError {
    let place = path.display().to_string();
    match error.kind() {
        io::ErrorKind::NotADirectory => foreign(place, "its folder is a file"),
        io::ErrorKind::IsADirectory => foreign(place, "the file is a folder"),
        _ => unavailable(place, error.to_string(), error),
    }
}
