//! What became of records that were exported elsewhere.

use mnemon_core::{Fate, Id, Receipt};
use serde::{Deserialize, Serialize};

/// What became of all lines together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Response {
    pub records: u64,
    pub stored: u64,
    pub replaced: u64,
    /// Already there, unchanged.
    pub duplicate: u64,
    /// A different record was there and was kept.
    pub skipped: u64,
    pub evicted: Vec<Id>,
    pub commit: Option<u64>,
}

impl Response {
    pub fn add(&mut self, receipt: Receipt) {
        self.commit = self.commit.or(receipt.commit);
        self.evicted.extend(receipt.evicted);
        for item in receipt.items {
            self.records += 1;
            match item.fate {
                Fate::Updated { .. } => self.replaced += 1,
                Fate::Duplicate { .. } => self.duplicate += 1,
                Fate::Rejected { .. } => self.skipped += 1,
                _ => self.stored += 1,
            }
        }
    }
}
