//! Connections for reading, which follow the file when it is replaced.

use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use mnemon_core::StoreError;
use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::errors::PATIENCE;
use super::identity::{FileId, FileIds};
use super::schema::{self, OPEN_TRIES};

/// How many reads of one handle run at once; more wait their turn.
const READERS: usize = 8;
/// How long the writer waits for reads that are under way before it opens the file anew.
const READS_END: Duration = Duration::from_secs(2);

/// What a read is given.
pub(super) struct Reader<'a> {
    pub(super) connection: &'a Connection,
    pub(super) place: &'a str,
    /// Counts how often the file was found replaced: what was learnt from an older one is void.
    pub(super) generation: u64,
    /// The database file that the connection has open.
    pub(super) main: Option<FileId>,
}

pub(super) struct Pool {
    path: PathBuf,
    pub(super) place: String,
    /// Whether the file can be written; otherwise nobody here makes or migrates it.
    writable: bool,
    openings: Mutex<Openings>,
    /// Told when a connection is given back.
    given_back: Condvar,
    pub(super) turns: Semaphore,
}

/// The connections of the current generation.
#[derive(Default)]
struct Openings {
    found: Found,
    /// The files that the connections of this generation have open.
    ids: FileIds,
    generation: u64,
    /// The generation whose file was made and brought to the current format.
    prepared: u64,
    idle: Vec<Connection>,
    busy: usize,
    /// Whether the writer is about to open the file anew: nobody may open a connection.
    closing: bool,
}

/// What tells one file from another, and of a file that is read as if it never changed, whether it
/// did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Found {
    main: Option<FileId>,
    content: Option<(u64, Option<SystemTime>)>,
}

/// Keeps new readers waiting while the writer opens the file anew.
pub(super) struct Closed<'a> {
    pool: &'a Pool,
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.pool.lock().closing = false;
        self.pool.given_back.notify_all();
    }
}

struct Taken {
    connection: Connection,
    generation: u64,
    main: Option<FileId>,
}

impl Pool {
    pub(super) fn new(path: &Path, writable: bool, ids: FileIds) -> Self {
        let pool = Self {
            path: path.to_owned(),
            place: path.display().to_string(),
            writable,
            openings: Mutex::new(Openings {
                found: Found {
                    main: ids.main,
                    content: None,
                },
                ids,
                ..Openings::default()
            }),
            given_back: Condvar::new(),
            turns: Semaphore::new(READERS),
        };
        if !writable {
            let found = pool.look();
            pool.lock().found = found;
        }
        pool
    }

    /// Reads on a connection of its own.
    pub(super) fn with<T>(
        &self,
        work: impl FnOnce(&Reader<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let taken = match self.take_idle() {
            Some(taken) => taken,
            None => self.open()?,
        };
        self.lend(taken, work)
    }

    /// The same on a connection that is idle; `None` if none is.
    pub(super) fn with_idle<T>(&self, work: impl FnOnce(&Reader<'_>) -> T) -> Option<T> {
        let taken = self.take_idle()?;
        Some(self.lend(taken, work))
    }

    /// Closes the idle connections, waits a while for the others, and lets nobody open one until
    /// the answer is dropped.
    pub(super) fn close(&self) -> Closed<'_> {
        let mut openings = self.lock();
        openings.renew();
        openings.closing = true;
        let wait = self
            .given_back
            .wait_timeout_while(openings, READS_END, |it| it.busy > 0);
        drop(wait.unwrap_or_else(PoisonError::into_inner));
        Closed { pool: self }
    }

    /// The connections, once the writer has opened the file anew.
    fn opened(&self) -> Result<MutexGuard<'_, Openings>, StoreError> {
        let wait = self
            .given_back
            .wait_timeout_while(self.lock(), PATIENCE, |it| it.closing);
        let (openings, waited) = wait.unwrap_or_else(PoisonError::into_inner);
        match waited.timed_out() {
            false => Ok(openings),
            true => Err(StoreError::Busy {
                place: self.place.clone(),
                seconds: PATIENCE.as_secs(),
            }),
        }
    }

    fn lend<T>(&self, taken: Taken, work: impl FnOnce(&Reader<'_>) -> T) -> T {
        let reader = Reader {
            connection: &taken.connection,
            place: &self.place,
            generation: taken.generation,
            main: taken.main,
        };
        let result = work(&reader);
        let mut openings = self.lock();
        openings.busy = openings.busy.saturating_sub(1);
        if openings.generation == taken.generation {
            openings.idle.push(taken.connection);
        } else {
            // Closed before the writer is told: it opens the file anew.
            drop(taken.connection);
        }
        drop(openings);
        self.given_back.notify_all();
        result
    }

    fn take_idle(&self) -> Option<Taken> {
        let found = self.look();
        let mut openings = self.lock();
        if openings.found != found {
            openings.renew();
            openings.found = found;
            return None;
        }
        let connection = openings.idle.pop()?;
        openings.busy += 1;
        Some(Taken {
            connection,
            generation: openings.generation,
            main: found.main,
        })
    }

    /// Opens one more connection, to the file that is there now.
    fn open(&self) -> Result<Taken, StoreError> {
        for _ in 0..OPEN_TRIES {
            let mut openings = self.opened()?;
            let found = self.look();
            if openings.found != found {
                openings.renew();
                openings.found = found;
            }
            let connection = self.connect(&mut openings)?;
            let found = self.look();
            if openings.found == found {
                openings.busy += 1;
                return Ok(Taken {
                    connection,
                    generation: openings.generation,
                    main: found.main,
                });
            }
        }
        Err(schema::never_stays(&self.place))
    }

    fn connect(&self, openings: &mut Openings) -> Result<Connection, StoreError> {
        if !self.writable {
            return schema::open_read_only(&self.path);
        }
        if openings.prepared == openings.generation {
            return schema::open_reader(&self.path);
        }
        // Another file is there, of whatever format, or none.
        openings.ids.remove_orphaned_log(&self.path);
        let prepared = schema::open_known(&self.path)?;
        let reader = schema::open_reader(&self.path)?;
        openings.ids = prepared.ids;
        openings.found.main = prepared.ids.main;
        openings.prepared = openings.generation;
        Ok(reader)
    }

    fn look(&self) -> Found {
        let metadata = std::fs::metadata(&self.path).ok();
        let content = metadata
            .as_ref()
            .filter(|_| !self.writable)
            .map(|metadata| (metadata.len(), metadata.modified().ok()));
        Found {
            main: metadata.as_ref().map(FileId::from),
            content,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Openings> {
        self.openings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Openings {
    /// Begins a new generation: connections of the one before are closed, now or when they are
    /// given back.
    fn renew(&mut self) {
        self.generation += 1;
        self.idle.clear();
    }
}
