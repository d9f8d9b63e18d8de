//! Whether an audit log is complete and unchanged.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use mnemon_core::Time;
use serde::Serialize;

use super::prune::pruned_up_to;
use super::read::{LINE_BYTES, rotated};
use super::{AuditEntry, AuditError, AuditLog, BEFORE_HASH, HASH, Head, failed, head_path};

/// What a log holds that was found to be complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verified {
    pub entries: u64,
    pub files: usize,
    /// Numbers of the first and the last entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<u64>,
    /// The time of the last entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_at: Option<Time>,
    /// Whether the log ends with a part of a line: a process was killed while it wrote. The entry
    /// was not acknowledged, and the next one takes its place.
    pub unfinished: bool,
}

/// A walk along the chain.
struct Chain {
    /// The entry before the next line; `None` if any may come.
    before: Option<Head>,
    /// The entry before the first one, as that one names it.
    start: Option<Head>,
    /// The last entry of each file.
    ends: Vec<Head>,
    /// The entry up to which earlier ones were pruned, by the newest entry of a pruning.
    pruned: Option<Head>,
    /// The newest entry, as its head file says.
    head: Option<Head>,
    verified: Verified,
}

/// The files of a log at one moment.
struct Snapshot {
    head: Option<Head>,
    /// Files that no longer change.
    rotated: Vec<PathBuf>,
    current: Option<File>,
}

impl AuditLog {
    /// Reads the whole log: all files, in order, and the head. Processes may append meanwhile.
    pub fn verify(&self) -> Result<Verified, AuditError> {
        let snapshot = self
            .snapshot()
            .map_err(|source| failed(&self.path, source))?;
        let Snapshot {
            head,
            rotated,
            current,
        } = snapshot;
        if rotated.is_empty() && current.is_none() && !head_path(&self.path).is_file() {
            return Err(AuditError::Missing(self.path.clone()));
        }
        let mut chain = Chain::new(head);
        let first = rotated.first().unwrap_or(&self.path).clone();
        for path in rotated {
            let file = File::open(&path).map_err(|source| failed(&path, source))?;
            chain.follow(&path, file)?;
            if chain.verified.unfinished {
                let what = "the file ends with a part of an entry";
                return Err(broken(&path, chain.verified.entries, what));
            }
        }
        if let Some(file) = current {
            chain.follow(&self.path, file)?;
        }
        check_start(&first, &chain)?;
        self.check_end(&chain)?;
        Ok(chain.verified)
    }

    /// An open file stays the same one when it is renamed, so that the lock is needed only here.
    fn snapshot(&self) -> io::Result<Snapshot> {
        let lock = self.path.is_file().then(|| self.lock()).transpose();
        // A log that may only be read is verified without the lock.
        let _lock = lock.unwrap_or_default();
        let current = match File::open(&self.path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        Ok(Snapshot {
            head: self.head()?,
            rotated: rotated(&self.path)?,
            current,
        })
    }

    /// The log reaches to its head. Entries after it continue the chain.
    fn check_end(&self, chain: &Chain) -> Result<(), AuditError> {
        let lines = chain.verified.entries;
        let Some(head) = &chain.head else {
            let name = head_path(&self.path);
            let what = format!("its head {} is missing or damaged", name.display());
            return Err(broken(&self.path, lines, &what));
        };
        let last = chain.verified.last.unwrap_or(0);
        if head.seq > last {
            let seq = head.seq;
            let what = format!("the log ends with entry {last}, but entry {seq} was written");
            return Err(broken(&self.path, lines, &what));
        }
        Ok(())
    }
}

/// Reads one file of a log, for example an archived one: the chain within it, without its head.
pub fn verify_file(path: &Path) -> Result<Verified, AuditError> {
    if !path.is_file() {
        return Err(AuditError::Missing(path.to_owned()));
    }
    let file = File::open(path).map_err(|source| failed(path, source))?;
    let mut chain = Chain::new(None);
    chain.follow(path, file)?;
    Ok(chain.verified)
}

/// The log begins with entry 1, or earlier entries were pruned.
fn check_start(path: &Path, chain: &Chain) -> Result<(), AuditError> {
    match &chain.start {
        Some(start) if *start != Head::first() && !chain.is_pruned_to(start) => {
            let seq = start.seq + 1;
            let what = match seq {
                1 => "the entry does not begin the chain".to_owned(),
                _ => format!("entry 1 is missing; this is entry {seq}"),
            };
            Err(broken(path, 1, &what))
        }
        _ => Ok(()),
    }
}

impl Chain {
    fn new(head: Option<Head>) -> Self {
        Self {
            before: None,
            start: None,
            ends: Vec::new(),
            pruned: None,
            head,
            verified: Verified {
                entries: 0,
                files: 0,
                first: None,
                last: None,
                last_at: None,
                unfinished: false,
            },
        }
    }

    fn follow(&mut self, path: &Path, file: File) -> Result<(), AuditError> {
        let unreadable = |source| failed(path, source);
        let mut file = BufReader::new(file);
        self.verified.files += 1;
        for number in 1.. {
            let mut line = Vec::new();
            let mut bounded = (&mut file).take(LINE_BYTES);
            bounded.read_until(b'\n', &mut line).map_err(unreadable)?;
            // The end, or the spaces there.
            if line.iter().all(|byte| *byte == b' ') {
                break;
            }
            if line.len() as u64 == LINE_BYTES {
                return Err(broken(path, number, "the line is too long for an entry"));
            }
            if line.pop() != Some(b'\n') {
                self.verified.unfinished = true;
                break;
            }
            let entry = check_line(&line).map_err(|what| broken(path, number, &what))?;
            self.step(&entry)
                .map_err(|what| broken(path, number, &what))?;
        }
        self.ends.extend(self.before.clone());
        Ok(())
    }

    /// Whether entries up to this one may be missing. A pruning that was cut off has left some of its
    /// files, which end with the entry that it names.
    fn is_pruned_to(&self, start: &Head) -> bool {
        self.pruned.as_ref().is_some_and(|pruned| {
            pruned == start || pruned.seq > start.seq && self.ends.contains(pruned)
        })
    }

    fn step(&mut self, entry: &AuditEntry) -> Result<(), String> {
        if let Some(before) = &self.before {
            let expected = before.seq + 1;
            if entry.seq != expected {
                let seq = entry.seq;
                return Err(format!("entry {expected} is missing; this is entry {seq}"));
            }
            if entry.prev != before.hash {
                return Err("the entry does not follow the one before it".to_owned());
            }
        } else {
            self.start = Some(Head {
                seq: entry.seq.saturating_sub(1),
                hash: entry.prev.clone(),
            });
        }
        self.pruned = pruned_up_to(entry).or(self.pruned.take());
        let this = Head {
            seq: entry.seq,
            hash: entry.hash.clone(),
        };
        let head = self.head.as_ref();
        if head.is_some_and(|head| head.seq == this.seq && *head != this) {
            return Err("the entry is not the one that was written".to_owned());
        }
        self.before = Some(this);
        let verified = &mut self.verified;
        verified.entries += 1;
        verified.first.get_or_insert(entry.seq);
        verified.last = Some(entry.seq);
        verified.last_at = Some(entry.at);
        Ok(())
    }
}

/// The entry of a line, if its hash is right.
pub(super) fn check_line(line: &[u8]) -> Result<AuditEntry, String> {
    let altered = || "the entry was altered: its hash does not match".to_owned();
    let entry: AuditEntry =
        serde_json::from_slice(line).map_err(|error| format!("it is not an entry: {error}"))?;
    let tail = BEFORE_HASH.len() + HASH + 2;
    let split = line.len().checked_sub(tail);
    let (body, end) = split
        .and_then(|at| line.split_at_checked(at))
        .ok_or_else(altered)?;
    let hash = blake3::hash(body).to_hex();
    let expected = format!("{BEFORE_HASH}{hash}\"}}");
    match expected.as_bytes() == end && entry.hash == hash.as_str() {
        true => Ok(entry),
        false => Err(altered()),
    }
}

fn broken(path: &Path, line: u64, what: &str) -> AuditError {
    let path: PathBuf = path.to_owned();
    let what = what.to_owned();
    AuditError::Broken { path, line, what }
}
