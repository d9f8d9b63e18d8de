//! A look at a folder from outside, and what can be mended in it.

use std::fs::{self, OpenOptions};
use std::path::Path;

use mnemon_core::{StoreError, Tenant};

use super::disk::{self, read_failed};
use super::folder::Folder;
use super::line::FORMAT;
use super::state::State;
use crate::health::Finding;

/// Looks at every tenant's log without changing anything.
pub(crate) fn examine(root: &Path) -> Vec<Finding> {
    let folders = match folders(root) {
        Ok(folders) => folders,
        Err(error) => return vec![Finding::bad("integrity", error.to_string())],
    };
    if folders.is_empty() {
        return vec![Finding::good("integrity", "nothing has been written yet")];
    }
    folders.iter().flat_map(Folder::examine).collect()
}

/// Does what [`examine`] proposed, and says what it did.
pub(crate) fn repair(root: &Path) -> Result<Vec<String>, StoreError> {
    let mut done = Vec::new();
    for folder in folders(root)? {
        done.extend(folder.repair()?);
    }
    Ok(done)
}

/// The folders that hold a log.
pub(super) fn folders(root: &Path) -> Result<Vec<Folder>, StoreError> {
    let mut found = vec![Folder::new(root, Tenant::default())];
    let tenants = disk::tenants(root);
    if tenants.is_dir() {
        let failed = |error| read_failed(&tenants, error);
        for entry in fs::read_dir(&tenants).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            // What is not a tenant's name is not ours.
            if let Ok(tenant) = name.to_string_lossy().parse::<Tenant>() {
                found.push(Folder::new(root, tenant));
            }
        }
    }
    found.retain(Folder::is_there);
    found.sort_by(|a, b| a.paths.log.cmp(&b.paths.log));
    Ok(found)
}

impl Folder {
    fn examine(&self) -> Vec<Finding> {
        let place = self.paths.log.display();
        let mut state = self.state_mut();
        if let Err(error) = self.refresh(&mut state) {
            let check = match error {
                StoreError::TooNew { .. } => "format",
                _ => "integrity",
            };
            return vec![Finding::bad(check, error.to_string())];
        }
        vec![
            self.lines(&state),
            self.tail(&state),
            Finding::good("format", format!("{place}: format {FORMAT}")),
            self.dead(&state),
            self.left_behind(&state),
            self.permissions(),
        ]
        .into_iter()
        .chain(self.set_aside())
        .collect()
    }

    /// Damaged lines that a rewrite has taken out of the log.
    fn set_aside(&self) -> Option<Finding> {
        let file = self.paths.set_aside()?;
        let bytes = fs::read(&file).unwrap_or_default();
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
        Some(Finding::warning(
            "set aside",
            format!(
                "{} holds {lines} damaged lines that were removed from the log: check them, \
                 then delete the file",
                file.display()
            ),
        ))
    }

    fn lines(&self, state: &State) -> Finding {
        let place = self.paths.log.display();
        let lines = state.log.as_ref().map_or(0, |log| log.reached.mark.lines);
        let records = state.image.len();
        let seen = format!("{place}: {records} records in {lines} lines");
        let bad = state.notices.skipped_total;
        if bad == 0 {
            return Finding::good("integrity", seen);
        }
        let named = state.notices.skipped.iter().map(|bad| {
            let (file, line, why) = (bad.file.display(), bad.line, &bad.why);
            format!("{file}:{line}: {why}")
        });
        let named: Vec<String> = named.collect();
        let more = match bad - named.len() as u64 {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        Finding::mendable(
            "integrity",
            format!("{seen}; {bad} cannot be used: {}{more}", named.join("; ")),
            format!("move them to {}", self.paths.bad.display()),
        )
    }

    fn tail(&self, state: &State) -> Finding {
        let place = self.paths.log.display();
        match state.log.as_ref().map_or(0, |log| log.reached.torn) {
            0 => Finding::good("tail", format!("{place}: the last write is complete")),
            torn => Finding::harmless(
                "tail",
                format!("{place}: ends in {torn} bytes of a write that was never acknowledged"),
                "cut them off (the next write does so, too)",
            ),
        }
    }

    fn dead(&self, state: &State) -> Finding {
        let place = self.paths.log.display();
        let lines = state.log.as_ref().map_or(0, |log| log.reached.mark.lines);
        let dead = state.dead_lines();
        let share = dead * 100 / lines.max(1);
        Finding::good(
            "compaction",
            format!("{place}: {dead} of {lines} lines are dead ({share} %)"),
        )
    }

    fn left_behind(&self, state: &State) -> Finding {
        let left = self.leftovers(state);
        let Some(first) = left.first() else {
            let folder = self.paths.folder.display();
            return Finding::good("leftovers", format!("{folder}: nothing is left behind"));
        };
        let more = left.len() - 1;
        Finding::harmless(
            "leftovers",
            format!(
                "an interrupted rewrite left {} behind, and {more} more files",
                first.display()
            ),
            "remove them",
        )
    }

    fn permissions(&self) -> Finding {
        let place = self.paths.log.display();
        match OpenOptions::new().append(true).open(&self.paths.log) {
            Ok(_) => Finding::good("permissions", format!("{place} can be written")),
            Err(error) => {
                Finding::bad("permissions", format!("{place} cannot be written: {error}"))
            }
        }
    }

    fn repair(&self) -> Result<Vec<String>, StoreError> {
        let mut state = self.state_mut();
        // Looked at first: a writer sweeps leftovers as soon as it holds the lock.
        self.refresh(&mut state)?;
        let mut done = Vec::new();
        for path in self.leftovers(&state) {
            done.push(format!("removed {}", path.display()));
        }
        let _lock = self.hold(&mut state)?;
        let swept = self.sweep(&state);
        swept.map_err(|error| disk::write_failed(&self.paths.folder, error))?;
        let bad = state.notices.skipped_total;
        let torn = state.log.as_ref().map_or(0, |log| log.reached.torn);
        if bad == 0 && torn == 0 {
            return Ok(done);
        }
        self.rewrite(&mut state, &[])?;
        if bad > 0 {
            let place = self.paths.bad.display();
            done.push(format!("moved {bad} lines that cannot be used to {place}"));
        }
        if torn > 0 {
            let place = self.paths.log.display();
            done.push(format!("cut {torn} unfinished bytes off {place}"));
        }
        Ok(done)
    }
}
