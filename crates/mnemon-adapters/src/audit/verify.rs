//! Whether an audit log is complete and unchanged.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use mnemon_core::Time;
use serde::Serialize;

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
    verified: Verified,
}

impl AuditLog {
    /// Reads the whole log: all files, in order, and the head.
    pub fn verify(&self) -> Result<Verified, AuditError> {
        // Nobody appends meanwhile, so that the log and its head belong together.
        let there = self.path.is_file();
        let lock = there.then(|| self.lock()).transpose();
        // A log that may only be read is verified without the lock.
        let _lock = lock.unwrap_or_default();
        let mut paths = rotated(&self.path).map_err(|source| failed(&self.path, source))?;
        let older = paths.len();
        if there {
            paths.push(self.path.clone());
        }
        if paths.is_empty() && !head_path(&self.path).is_file() {
            return Err(AuditError::Missing(self.path.clone()));
        }
        let mut chain = Chain::new(Some(Head::first()));
        for (number, path) in paths.iter().enumerate() {
            chain.follow(path)?;
            if chain.verified.unfinished && number < older {
                let what = "the file ends with a part of an entry";
                return Err(broken(path, chain.verified.entries, what));
            }
        }
        self.check_head(&chain)?;
        Ok(chain.verified)
    }

    /// The newest entry is at least as new as the head, and the head is one of the chain.
    fn check_head(&self, chain: &Chain) -> Result<(), AuditError> {
        let lines = chain.verified.entries;
        let head = self.head().map_err(|source| failed(&self.path, source))?;
        let Some(head) = head else {
            let name = head_path(&self.path);
            let what = format!("its head {} is missing or damaged", name.display());
            return Err(broken(&self.path, lines, &what));
        };
        let last = chain.verified.last.unwrap_or(0);
        if head.seq > last {
            let what = format!(
                "the log ends with entry {last}, but entry {} was written",
                head.seq
            );
            return Err(broken(&self.path, lines, &what));
        }
        // An entry behind the head continues the chain, so that its hash covers the head's.
        let hash = chain.before.as_ref().map(|before| &before.hash);
        if head.seq == last && Some(&head.hash) != hash {
            return Err(broken(
                &self.path,
                lines,
                "the last entry is not the one that was written",
            ));
        }
        Ok(())
    }
}

/// Reads one file of a log, for example an archived one: the chain within it, without its head.
pub fn verify_file(path: &Path) -> Result<Verified, AuditError> {
    if !path.is_file() {
        return Err(AuditError::Missing(path.to_owned()));
    }
    let mut chain = Chain::new(None);
    chain.follow(path)?;
    Ok(chain.verified)
}

impl Chain {
    fn new(before: Option<Head>) -> Self {
        Self {
            before,
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

    fn follow(&mut self, path: &Path) -> Result<(), AuditError> {
        let unreadable = |source| failed(path, source);
        let mut file = BufReader::new(File::open(path).map_err(unreadable)?);
        self.verified.files += 1;
        for number in 1.. {
            let mut line = Vec::new();
            let mut bounded = (&mut file).take(LINE_BYTES);
            bounded.read_until(b'\n', &mut line).map_err(unreadable)?;
            if line.is_empty() {
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
        Ok(())
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
        }
        self.before = Some(Head {
            seq: entry.seq,
            hash: entry.hash.clone(),
        });
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
