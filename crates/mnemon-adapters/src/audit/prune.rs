//! Removing old files of an audit log so that the rest can still be verified.
//!
//! Before files are removed, an entry is written with the number and the hash of the last entry in
//! them. A log that begins later than entry 1 is complete if its newest such entry says so. A process
//! that is killed between both leaves files that the next pruning removes.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

use mnemon_core::Time;

use super::read::{end_of_entries, first_seq, last_line, rotated};
use super::verify::check_line;
use super::{AuditEntry, AuditError, AuditEvent, AuditLog, Head, failed, parent, sync_folder};

/// The operation of an entry that allows earlier ones to be missing.
pub(super) const PRUNE: &str = "audit prune";

/// Full files of which every entry is old.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OldFiles {
    pub paths: Vec<PathBuf>,
    /// Numbers of the first and the last entry in them.
    pub entries: Option<(u64, u64)>,
    /// The newest entry in them.
    last: Option<Head>,
}

impl AuditLog {
    /// Files that hold only entries before this time. The log is verified first: a damaged one is
    /// evidence, and none of its files may be removed.
    pub fn old_files(&self, before: Time) -> Result<OldFiles, AuditError> {
        self.verify()?;
        let mut old = OldFiles::default();
        let rotated = rotated(&self.path).map_err(|source| failed(&self.path, source))?;
        for path in rotated {
            let read = last_entry(&path).and_then(|last| Ok((first_seq(&path)?, last)));
            let (Some(first), Some(last)) = read.map_err(|source| failed(&path, source))? else {
                break;
            };
            if last.at >= before {
                break;
            }
            let first = old.entries.map_or(first, |(first, _)| first);
            old.entries = Some((first, last.seq));
            old.last = Some(Head {
                seq: last.seq,
                hash: last.hash,
            });
            old.paths.push(path);
        }
        Ok(old)
    }

    /// Appends the entry of a pruning, with `event` as its time, caller and tenant, and then removes
    /// the files.
    pub fn prune(&self, old: &OldFiles, event: AuditEvent) -> Result<(), AuditError> {
        let Some(last) = &old.last else {
            return Ok(());
        };
        let event = AuditEvent {
            operation: PRUNE.to_owned(),
            ids: vec![last.seq.to_string(), last.hash.clone()],
            ..event
        };
        self.append(&[event])?;
        for path in &old.paths {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(failed(path, error));
                }
                _ => {}
            }
        }
        sync_folder(parent(&self.path)).map_err(|source| failed(&self.path, source))
    }
}

/// The entry up to which earlier ones may be missing, if this one is of a pruning.
pub(super) fn pruned_up_to(entry: &AuditEntry) -> Option<Head> {
    match entry.ids.as_slice() {
        [seq, hash] if entry.operation == PRUNE => Some(Head {
            seq: seq.parse().ok()?,
            hash: hash.clone(),
        }),
        _ => None,
    }
}

fn last_entry(path: &PathBuf) -> io::Result<Option<AuditEntry>> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    let end = end_of_entries(&mut file, size)?;
    let (_, line) = last_line(&mut file, end)?;
    Ok(line.and_then(|line| check_line(&line).ok()))
}

#[cfg(test)]
mod tests {
    use mnemon_core::Tenant;
    use tempfile::TempDir;

    use super::super::read::rotated_path;
    use super::*;

    fn event(second: i64) -> AuditEvent {
        AuditEvent {
            at: Time::from_millis(second * 1000).unwrap(),
            caller: "ann".to_owned(),
            tenant: Tenant::default(),
            operation: "note add".to_owned(),
            ids: Vec::new(),
            status: 200,
        }
    }

    /// A log of nine entries, with two in each file: entry N is of the second N.
    fn log() -> (TempDir, AuditLog) {
        let folder = tempfile::tempdir().unwrap();
        let log = AuditLog::at(folder.path().join("audit.jsonl")).with_file_limit(400);
        for second in 1..=9 {
            log.append(&[event(second)]).unwrap();
        }
        assert_eq!(rotated(&log.path).unwrap().len(), 4, "two entries in each");
        (folder, log)
    }

    fn before(second: i64) -> Time {
        Time::from_millis(second * 1000).unwrap()
    }

    fn is_broken(log: &AuditLog) -> bool {
        matches!(log.verify(), Err(AuditError::Broken { line: 1, .. }))
    }

    #[test]
    fn old_files_are_removed_and_the_rest_can_be_verified() {
        let (_folder, log) = log();
        // The second file ends with entry 4, of the second 4.
        assert_eq!(log.old_files(before(4)).unwrap().entries, Some((1, 2)));
        let old = log.old_files(before(5)).unwrap();
        assert_eq!((old.paths.len(), old.entries), (2, Some((1, 4))));
        log.prune(&old, event(10)).unwrap();
        let verified = log.verify().unwrap();
        assert_eq!((verified.first, verified.last), (Some(5), Some(10)));
        let newest = log.tail(1).unwrap().remove(0);
        assert_eq!((newest.operation.as_str(), newest.count), (PRUNE, 2));
        // Again, up to the file that is being written, which stays.
        let old = log.old_files(before(99)).unwrap();
        assert_eq!(old.entries, Some((5, 8)));
        log.prune(&old, event(11)).unwrap();
        let verified = log.verify().unwrap();
        assert_eq!((verified.first, verified.last), (Some(9), Some(11)));
    }

    #[test]
    fn files_that_nobody_pruned_are_missing() {
        let (_folder, log) = log();
        std::fs::remove_file(rotated_path(&log.path, 1)).unwrap();
        assert!(is_broken(&log), "no entry says so");
        let refused = log.old_files(before(5)).unwrap_err();
        assert!(matches!(refused, AuditError::Broken { .. }), "{refused}");
        let (_folder, log) = self::log();
        let old = log.old_files(before(3)).unwrap();
        log.prune(&old, event(10)).unwrap();
        std::fs::remove_file(rotated_path(&log.path, 3)).unwrap();
        assert!(is_broken(&log), "more are missing than were pruned");
    }

    #[test]
    fn a_pruning_that_was_cut_off_is_no_damage_and_the_next_one_completes_it() {
        let (_folder, log) = log();
        let old = log.old_files(before(5)).unwrap();
        let kept = std::fs::read(&old.paths[1]).unwrap();
        log.prune(&old, event(10)).unwrap();
        std::fs::write(&old.paths[1], &kept).unwrap();
        assert_eq!(log.verify().unwrap().first, Some(3));
        let left = log.old_files(before(5)).unwrap();
        assert_eq!(left.entries, Some((3, 4)));
        log.prune(&left, event(11)).unwrap();
        assert_eq!(log.verify().unwrap().first, Some(5));
        // Another file in its place is not what was pruned.
        let altered = String::from_utf8(kept).unwrap().replace("ann", "bob");
        std::fs::write(&old.paths[1], altered).unwrap();
        assert!(log.verify().is_err());
    }
}
