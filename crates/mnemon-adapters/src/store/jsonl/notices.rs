//! What was noticed while reading: nothing is left out silently.

use std::path::PathBuf;

use serde::Serialize;

/// How many skipped lines are told one by one; the rest is only counted.
const TOLD: usize = 20;

/// What a store noticed about its files.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Notices {
    /// The first lines that could not be used.
    pub skipped: Vec<Skipped>,
    /// How many there are in all.
    pub skipped_total: u64,
    /// Bytes of an unfinished write at the end of a log. They were never acknowledged; the next
    /// write cuts them off.
    pub torn_bytes: u64,
    /// Bytes of unfinished writes that this store has cut off.
    pub cut_bytes: u64,
    /// Why the last automatic compaction did not happen.
    pub not_compacted: Option<String>,
    /// Files of damaged lines that were taken out of a log. They are reported until somebody has
    /// looked at them and deleted them.
    pub set_aside: Vec<PathBuf>,
}

/// A line that could not be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Skipped {
    pub file: PathBuf,
    /// From 1.
    pub line: u64,
    pub why: String,
}

impl Notices {
    pub(super) fn skip(&mut self, skipped: Skipped) {
        self.skipped_total += 1;
        if self.skipped.len() < TOLD {
            self.skipped.push(skipped);
        }
    }

    pub(super) fn join(&mut self, other: &Self) {
        let room = TOLD.saturating_sub(self.skipped.len());
        let told = other.skipped.iter().take(room).cloned();
        self.skipped.extend(told);
        self.skipped_total += other.skipped_total;
        self.torn_bytes += other.torn_bytes;
        self.cut_bytes += other.cut_bytes;
        self.set_aside.extend(other.set_aside.iter().cloned());
        if self.not_compacted.is_none() {
            self.not_compacted.clone_from(&other.not_compacted);
        }
    }

    /// The notices as sentences for people; none when all is well.
    pub fn sentences(&self) -> Vec<String> {
        let mut told: Vec<String> = self
            .skipped
            .iter()
            .map(|bad| {
                let (file, line, why) = (bad.file.display(), bad.line, &bad.why);
                format!("{file}:{line} was skipped: {why}")
            })
            .collect();
        let more = self.skipped_total - told.len() as u64;
        if more > 0 {
            told.push(format!("{more} more lines were skipped"));
        }
        if self.torn_bytes > 0 {
            let bytes = self.torn_bytes;
            told.push(format!(
                "{bytes} bytes of an unfinished write are ignored; the next write cuts them off"
            ));
        }
        if self.cut_bytes > 0 {
            let bytes = self.cut_bytes;
            told.push(format!("{bytes} bytes of an unfinished write were cut off"));
        }
        for file in &self.set_aside {
            let file = file.display();
            told.push(format!(
                "{file} holds damaged lines that were removed from the log: check them, then \
                 delete the file"
            ));
        }
        if let Some(why) = &self.not_compacted {
            told.push(format!("the log was not compacted: {why}"));
        }
        told
    }
}
