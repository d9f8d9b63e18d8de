//! Which records have left an image, for indexes that follow it: numbers, no content.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::model::limits::Limits;

/// Numbers of different images never meet: an index that followed an image which was then read
/// anew must not take the new one's log for a continuation.
static IMAGES: AtomicU64 = AtomicU64::new(0);

/// The `seq`s of the records that left last, numbered in the order they left.
#[derive(Debug, Clone)]
pub(in crate::ram) struct Removals {
    log: VecDeque<u64>,
    newest: u64,
}

impl Default for Removals {
    fn default() -> Self {
        Self {
            log: VecDeque::new(),
            newest: IMAGES.fetch_add(1, Ordering::Relaxed) << 32,
        }
    }
}

/// How an image came to be is no part of what it is.
impl PartialEq for Removals {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Removals {
    pub(super) fn push(&mut self, seq: u64) {
        self.newest += 1;
        self.log.push_back(seq);
        self.trim(Limits::DEFAULT.removal_log);
    }

    /// Keeps no more than so many.
    pub(super) fn trim(&mut self, most: usize) {
        let over = self.log.len().saturating_sub(most);
        self.log.drain(..over);
    }

    pub(in crate::ram) fn newest(&self) -> u64 {
        self.newest
    }

    /// The removals after this one, as far as the log reaches back.
    pub(in crate::ram) fn since(&self, number: u64) -> impl Iterator<Item = u64> {
        let missed = self.newest.saturating_sub(number);
        let missed = usize::try_from(missed).unwrap_or(usize::MAX);
        let seen = self.log.len().saturating_sub(missed);
        self.log.iter().skip(seen).copied()
    }
}
