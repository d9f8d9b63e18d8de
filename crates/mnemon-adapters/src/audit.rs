//! The audit log of a server: JSON lines, each with the hash of the line before it.
//!
//! ```text
//! {"seq":1,"at":"…","caller":"…","tenant":"…","operation":"…","ids":[…],"count":1,"status":200,"prev":"…","hash":"…"}
//! ```
//!
//! `hash` is the BLAKE3 hash of the bytes of the line before `,"hash"`. A head file beside the log
//! holds the number and the hash of the newest entry, so that a removed tail is noticed, too. The
//! head is written after the log: entries that follow it and continue the chain are valid, because a
//! process may be killed in between. A lock file serialises processes. At a size limit the log is
//! renamed to `NAME.SEQ`, by its first entry, and the chain continues in a new file.
//!
//! The log ends with spaces, which the next entries overwrite: a file system syncs that much sooner
//! than a file that grows.

mod page;
mod prune;
mod read;
#[cfg(test)]
mod tests;
mod verify;

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use mnemon_core::{ErrorKind, Tenant, Time, limits};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::files::{is_still_at, parent, sync_folder};
use crate::private;
pub use page::AuditPage;
pub use prune::OldFiles;
use read::{LINE_BYTES, last_line, rotated};
pub use verify::{Verified, verify_file};

/// What happened: one request, without its contents and queries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEvent {
    pub at: Time,
    /// The prefix of the key, the subject of a token, `local`, or the user of the command line.
    pub caller: String,
    pub tenant: Tenant,
    pub operation: String,
    /// Records, keys or sessions that the operation named or changed. The first ones are stored.
    pub ids: Vec<String>,
    /// How it ended: the status over HTTP, the exit code on the command line.
    pub status: u16,
}

/// An entry of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditEntry {
    pub seq: u64,
    pub at: Time,
    pub caller: String,
    pub tenant: Tenant,
    pub operation: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<String>,
    /// The number of ids, those that are not stored included.
    pub count: usize,
    pub status: u16,
    pub prev: String,
    /// Empty while the hash is computed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hash: String,
}

/// Why the log cannot be read or written, or what is wrong with it.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    #[error("the audit log {} cannot be read or written", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{}, line {line}: {what}", path.display())]
    Broken {
        path: PathBuf,
        line: u64,
        what: String,
    },
    #[error("the audit log {} does not exist", .0.display())]
    Missing(PathBuf),
}

impl AuditError {
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Broken { .. } => ErrorKind::Corrupt,
            Self::Missing(_) => ErrorKind::NotFound,
            Self::File { source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    ErrorKind::Denied
                }
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::Full,
                _ => ErrorKind::Unavailable,
            },
        }
    }
}

/// Number and hash of the newest entry. The chain begins with number 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    seq: u64,
    hash: String,
}

impl Head {
    fn first() -> Self {
        Self {
            seq: 0,
            hash: "0".repeat(HASH),
        }
    }
}

/// Hexadecimal digits of a hash.
const HASH: usize = 64;
/// Spaces at the end are written up to a multiple of this size.
const ROOM_BYTES: u64 = 64 * 1024;
/// What stands before the hash in a line.
const BEFORE_HASH: &str = ",\"hash\":\"";

/// The audit log in a file. Any number of processes may append to it.
#[derive(Debug)]
pub struct AuditLog {
    path: PathBuf,
    most_bytes: u64,
    /// The end of the log as this process wrote it: where the newest entry ends, and that entry.
    written: Mutex<Option<(u64, Head)>>,
    /// Events that wait for the next append, with the callers that wait for it.
    queue: Mutex<Vec<Waiting>>,
}

type Waiting = (AuditEvent, oneshot::Sender<Result<(), Arc<AuditError>>>);

impl AuditLog {
    /// The log in this file, which is made with the first entry.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            most_bytes: limits::AUDIT_FILE_BYTES,
            written: Mutex::default(),
            queue: Mutex::default(),
        }
    }

    /// The same with another limit for the size of a file.
    #[must_use]
    pub fn with_file_limit(mut self, bytes: u64) -> Self {
        self.most_bytes = bytes;
        self
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// That the log can be opened for writing.
    pub fn check(&self) -> Result<(), AuditError> {
        let opened = private::make_folder(parent(&self.path)).and_then(|()| self.open());
        opened.map(drop).map_err(|source| self.failed(source))
    }

    /// Appends an entry and returns when it is on the disk. Entries that arrive while others are
    /// being written are written and synced together.
    pub async fn record(self: &Arc<Self>, event: AuditEvent) -> Result<(), Arc<AuditError>> {
        let (sender, written) = oneshot::channel();
        let is_first = {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            queue.push((event, sender));
            queue.len() == 1
        };
        if is_first {
            let log = self.clone();
            crate::blocking::start(move || log.append_queued());
        }
        written.await.unwrap_or_else(|_| {
            let lost = io::Error::other("internal error: an append panicked");
            Err(Arc::new(self.failed(lost)))
        })
    }

    /// Appends all that waits once it is this thread's turn.
    fn append_queued(&self) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *queue)
        };
        let (events, senders): (Vec<AuditEvent>, Vec<_>) = waiting.into_iter().unzip();
        let done = self.append_next(&events, &mut written).map_err(Arc::new);
        for sender in senders {
            // A caller that was cancelled no longer waits.
            let _ = sender.send(done.clone());
        }
    }

    /// Appends entries, in order, and syncs them to the disk. It blocks: call it where that is
    /// allowed. Several entries cost as much as one.
    pub fn append(&self, events: &[AuditEvent]) -> Result<(), AuditError> {
        if events.is_empty() {
            return Ok(());
        }
        // A panic in here cannot leave half a change: the value is replaced as a whole.
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        self.append_next(events, &mut written)
    }

    fn append_next(
        &self,
        events: &[AuditEvent],
        written: &mut Option<(u64, Head)>,
    ) -> Result<(), AuditError> {
        let known = written.take();
        let done = self.append_locked(events, known);
        *written = Some(done.map_err(|source| self.failed(source))?);
        Ok(())
    }

    /// Where the newest entry ends, and that entry.
    fn append_locked(
        &self,
        events: &[AuditEvent],
        known: Option<(u64, Head)>,
    ) -> io::Result<(u64, Head)> {
        let _lock = self.lock()?;
        let mut file = self.open()?;
        let mut size = file.metadata()?.len();
        let head = self.head()?;
        // Another process may have written since: then there is another head, or, if it was killed
        // before it wrote the head, an entry where we left spaces.
        let is_end = |file: &mut File, end| Ok::<_, io::Error>(read::byte_at(file, end)? == b' ');
        let (mut end, mut head) = match known {
            Some((end, known))
                if head.as_ref() == Some(&known) && end < size && is_end(&mut file, end)? =>
            {
                (end, known)
            }
            _ => {
                let end = read::end_of_entries(&mut file, size)?;
                self.resume(&mut file, end, head)?
            }
        };
        if end >= self.most_bytes {
            file.set_len(end)?;
            drop(file);
            self.rotate(&head)?;
            file = self.open()?;
            (size, end) = (0, 0);
        }
        let mut lines = String::new();
        for event in events {
            let (line, hash) = line(event, &head).map_err(io::Error::other)?;
            lines.push_str(&line);
            let seq = head.seq + 1;
            head = Head { seq, hash };
        }
        let next = end + lines.len() as u64;
        if next >= size {
            let room = ROOM_BYTES - next % ROOM_BYTES;
            lines.extend(std::iter::repeat_n(
                ' ',
                usize::try_from(room).unwrap_or_default(),
            ));
        }
        let at = SeekFrom::Start(end);
        let written = file.seek(at).and_then(|_| file.write_all(lines.as_bytes()));
        if let Err(error) = written.and_then(|()| file.sync_data()) {
            // What was not acknowledged is taken back, as far as the disk allows.
            let _ = file.set_len(end);
            return Err(error);
        }
        if end == 0 {
            sync_folder(parent(&self.path))?;
        }
        self.write_head(&head)?;
        Ok((next, head))
    }

    /// Where to go on: the length of the entries without an unfinished line, and the entry that is
    /// followed. If entries are missing or damaged, the chain goes on behind the head, and the gap
    /// stays visible.
    fn resume(&self, file: &mut File, length: u64, head: Option<Head>) -> io::Result<(u64, Head)> {
        let head = match head {
            Some(head) => head,
            // Written before the first entry, so that a missing head always means that it was
            // removed.
            None if length == 0 && rotated(&self.path)?.is_empty() => {
                let head = Head::first();
                self.write_head(&head)?;
                head
            }
            None => Head::first(),
        };
        let (mut end, last) = last_line(file, length)?;
        if length - end > LINE_BYTES {
            // No entry is that long: the file is damaged, and its bytes stay for an examination.
            file.set_len(length)?;
            file.seek(SeekFrom::Start(length))?;
            file.write_all(b"\n")?;
            end = length + 1;
        } else if end < length {
            file.set_len(end)?;
        }
        let last = match last {
            Some(last) => Some(last),
            None => match rotated(&self.path)?.pop() {
                Some(path) => {
                    let mut older = File::open(path)?;
                    let length = older.metadata()?.len();
                    last_line(&mut older, length)?.1
                }
                None => None,
            },
        };
        let last = last.and_then(|line| verify::check_line(&line).ok());
        let last = last.map(|entry| Head {
            seq: entry.seq,
            hash: entry.hash,
        });
        let newer = last.filter(|last| last.seq > head.seq);
        Ok((end, newer.unwrap_or(head)))
    }

    fn rotate(&self, head: &Head) -> io::Result<()> {
        // The head first, so that it is never older than a file that is full.
        self.write_head(head)?;
        let first = read::first_seq(&self.path)?.unwrap_or(head.seq);
        fs::rename(&self.path, read::rotated_path(&self.path, first))?;
        sync_folder(parent(&self.path))
    }

    fn open(&self) -> io::Result<File> {
        let mut options = private::options();
        options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&self.path)
    }

    fn head(&self) -> io::Result<Option<Head>> {
        match fs::read(head_path(&self.path)) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// In place: the few bytes fit into one sector, so that they change together. Renaming a new file
    /// would make the next sync wait for it.
    fn write_head(&self, head: &Head) -> io::Result<()> {
        let mut options = private::options();
        let mut file = options
            .write(true)
            .create(true)
            .truncate(false)
            .open(head_path(&self.path))?;
        let bytes = serde_json::to_vec(head)?;
        file.write_all(&bytes)?;
        let length = bytes.len() as u64;
        match file.metadata()?.len() > length {
            true => file.set_len(length),
            false => Ok(()),
        }
    }

    /// Held until the file is dropped. A lock file that was replaced while we waited does not count.
    fn lock(&self) -> io::Result<File> {
        private::make_folder(parent(&self.path))?;
        let path = beside(&self.path, "lock");
        loop {
            let mut options = private::options();
            let file = options
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path)?;
            file.lock()?;
            if is_still_at(&file, &path)? {
                return Ok(file);
            }
        }
    }

    fn failed(&self, source: io::Error) -> AuditError {
        failed(&self.path, source)
    }
}

fn failed(path: &Path, source: io::Error) -> AuditError {
    AuditError::File {
        path: path.to_owned(),
        source,
    }
}

fn head_path(path: &Path) -> PathBuf {
    beside(path, "head")
}

/// `audit.jsonl` and `head` are `audit.jsonl.head`.
fn beside(path: &Path, what: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(what);
    path.with_file_name(name)
}

/// The line of an event that follows this entry, and its hash.
fn line(event: &AuditEvent, before: &Head) -> serde_json::Result<(String, String)> {
    let short = |text: &str| -> String { text.chars().take(limits::AUDIT_TEXT_CHARS).collect() };
    let ids = event.ids.iter().take(limits::AUDIT_IDS);
    let entry = AuditEntry {
        seq: before.seq + 1,
        at: event.at,
        caller: short(&event.caller),
        tenant: event.tenant.clone(),
        operation: short(&event.operation),
        ids: ids.map(|id| short(id)).collect(),
        count: event.ids.len(),
        status: event.status,
        prev: before.hash.clone(),
        hash: String::new(),
    };
    let mut line = serde_json::to_string(&entry)?;
    line.pop();
    let hash = blake3::hash(line.as_bytes()).to_hex().to_string();
    line.push_str(BEFORE_HASH);
    line.push_str(&hash);
    line.push_str("\"}\n");
    Ok((line, hash))
}
