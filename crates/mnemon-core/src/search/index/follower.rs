//! Keeps an index up to a store through a feed of changes.
//!
//! A store numbers its changes, its late embeddings and its removals. An index remembers the
//! numbers that it has seen, and asks for what came after them, so that following costs what
//! changed. The log of removals may be short: an index that is further behind notices by the count
//! of records, and compares all numbers.

use std::io;

use super::{Doc, Index, StoredVector, Terms, wrong_vector};
use crate::ports::StoreError;

/// How far an index has followed its store. Every number only grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cursor {
    /// The newest change.
    pub seq: u64,
    /// The newest vector that was given to a record after it was written.
    pub embedded: u64,
    /// The newest removal.
    pub removed: u64,
    /// How many records there were.
    pub records: usize,
}

impl Cursor {
    /// Whether nothing that the other cursor has seen is new to this one.
    pub fn has_seen(&self, other: &Self) -> bool {
        let numbers = |cursor: &Self| [cursor.seq, cursor.embedded, cursor.removed];
        let (ours, theirs) = (numbers(self), numbers(other));
        if ours == theirs {
            return self.records == other.records;
        }
        ours.iter()
            .zip(theirs)
            .all(|(ours, theirs)| *ours >= theirs)
    }
}

/// One tenant's records at one moment, as changes since an earlier moment.
pub trait Feed {
    /// Where a cursor stands that has seen everything.
    fn newest(&self) -> Cursor;

    /// Tells the delta, in this order: the records written after `cursor.seq` that are there now,
    /// by `seq`, each with its vector; vectors given after `cursor.embedded` to records up to
    /// `cursor.seq`; removals after `cursor.removed`, as far as the log reaches back.
    fn since(&self, cursor: Cursor, delta: &mut Delta<'_>) -> Result<(), StoreError>;

    /// The `seq`s of all records that are there, in order.
    fn present(&self) -> Result<Vec<u64>, StoreError>;
}

/// Takes what a feed tells, piece by piece: a first load streams a million records through it.
#[derive(Debug)]
pub struct Delta<'a> {
    index: &'a mut Index,
    changes: usize,
    embedded: usize,
}

impl Delta<'_> {
    /// A record that was written.
    pub fn add(
        &mut self,
        doc: &Doc<'_>,
        terms: &Terms,
        vector: Option<&StoredVector>,
    ) -> Result<(), StoreError> {
        self.changes += 1;
        let added = self.index.add(doc, terms, vector);
        added.map_err(|error| wrong_vector(&error))
    }

    /// A vector that a record was given, in place of the one it had.
    pub fn embed(&mut self, seq: u64, vector: &StoredVector) -> Result<(), StoreError> {
        self.changes += 1;
        self.embedded += 1;
        let embedded = self.index.embed(seq, vector);
        embedded.map_err(|error| wrong_vector(&error))
    }

    /// A record that was replaced, deleted, purged or evicted, or has expired.
    pub fn remove(&mut self, seq: u64) {
        self.changes += 1;
        self.index.remove(seq);
    }

    /// Removes every record that is not among these, which are in order.
    fn keep_only(&mut self, present: &[u64]) {
        let mut present = present.iter().peekable();
        for seq in self.index.seqs() {
            while present.next_if(|there| **there < seq).is_some() {}
            if present.peek() != Some(&&seq) {
                self.remove(seq);
            }
        }
    }
}

/// An index, and how far it has followed its store.
#[derive(Debug, Clone, Default)]
pub struct TrackedIndex {
    index: Index,
    cursor: Cursor,
}

impl TrackedIndex {
    /// An index as it was when the store stood at this cursor.
    pub fn at(cursor: Cursor, index: Index) -> Self {
        let records = index.len();
        let cursor = Cursor { records, ..cursor };
        Self { index, cursor }
    }

    pub fn index(&self) -> &Index {
        &self.index
    }

    pub fn cursor(&self) -> Cursor {
        self.cursor
    }

    /// Whether the index shows everything of this moment; it may show a later one.
    pub fn has_followed(&self, feed: &dyn Feed) -> bool {
        self.cursor.has_seen(&feed.newest())
    }

    /// Brings the index to the feed's moment. Returns the number of changes that it took. After an
    /// error the index may show a part of them, and follows again from where it was.
    pub fn follow(&mut self, feed: &dyn Feed) -> Result<usize, StoreError> {
        let newest = feed.newest();
        if self.cursor.seq > newest.seq {
            // The store was put back to an earlier state, and may have another future.
            *self = Self::default();
        }
        let mut delta = Delta {
            index: &mut self.index,
            changes: 0,
            embedded: 0,
        };
        feed.since(self.cursor, &mut delta)?;
        if delta.index.len() != newest.records {
            let present = feed.present()?;
            delta.keep_only(&present);
            if delta.index.len() != present.len() {
                // A record is there that was written before the cursor, and is not in the index.
                *delta.index = Index::new();
                feed.since(Cursor::default(), &mut delta)?;
            }
        }
        if delta.embedded > 0 {
            delta.index.drop_unused_models();
        }
        self.cursor = newest;
        Ok(delta.changes)
    }

    /// The same index without the remains of removed records.
    pub fn compacted(&self) -> io::Result<Self> {
        let mut bytes = Vec::new();
        self.index.save(&mut bytes)?;
        let index = Index::load(&mut bytes.as_slice(), bytes.len() as u64)?;
        Ok(Self {
            index,
            cursor: self.cursor,
        })
    }
}

#[cfg(test)]
mod tests;
