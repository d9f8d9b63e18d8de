//! Everything in an image, for a copy of it.

use super::{Image, Past, Receipted, Row};
use crate::commit::Entry;
use crate::model::Id;
use crate::ports::{StoredChange, StoredPage, StoredReceipt};

impl Image {
    /// Changes after this number, in order.
    pub fn stored_changes(&self, after: u64, limit: usize) -> StoredPage {
        let mut page = StoredPage {
            last_seq: self.last_seq,
            clock: self.clock,
            ..StoredPage::default()
        };
        let from = after.saturating_add(1);
        let rows = self.by_seq.range(from..);
        let mut rows = rows.filter_map(|(_, id)| self.rows.get(id)).peekable();
        let mut past = self.past.range(from..).map(|(_, past)| past).peekable();
        let changes = std::iter::from_fn(|| {
            let next_row = rows.peek().map_or(u64::MAX, |row| row.entry.seq);
            let next_past = past.peek().map_or(u64::MAX, |past| past.entry.seq);
            match next_row < next_past {
                true => rows.next().map(current),
                false => past.next().map(replaced),
            }
        });
        // Reading a map does not fail.
        let filled: Result<(), std::convert::Infallible> = page.fill(changes.map(Ok), limit);
        let Ok(()) = filled;
        page
    }

    /// Receipts after this key, in order.
    pub fn stored_receipts(&self, after: &str, limit: usize) -> Vec<StoredReceipt> {
        let receipts = self.receipts.values();
        let mut kept: Vec<&Receipted> = receipts
            .filter(|kept| kept.key.name.as_str() > after)
            .collect();
        kept.sort_unstable_by(|a, b| a.key.name.cmp(&b.key.name));
        let kept = kept.into_iter().take(limit);
        kept.map(|kept| StoredReceipt {
            key: kept.key.clone(),
            at: kept.at,
            receipt: kept.receipt.clone(),
        })
        .collect()
    }

    /// Whether nothing was ever written.
    pub(in crate::ram) fn is_unused(&self) -> bool {
        self.last_seq == 0 && self.receipts.is_empty()
    }
}

fn current(row: &Row) -> StoredChange {
    let Row { entry, record } = row;
    StoredChange {
        version: record.version,
        expires: record.expires,
        record: Some(Box::new(record.clone())),
        is_current: true,
        ..change(entry, &record.id)
    }
}

fn replaced(past: &Past) -> StoredChange {
    StoredChange {
        version: past.version,
        expires: past.expires,
        record: past.record.clone().map(Box::new),
        ..change(&past.entry, &past.id)
    }
}

fn change(entry: &Entry, id: &Id) -> StoredChange {
    StoredChange {
        seq: entry.seq,
        commit: entry.commit,
        at: entry.at,
        actor: entry.actor.clone(),
        cause: entry.cause.clone(),
        id: id.clone(),
        version: 0,
        expires: None,
        record: None,
        is_current: false,
        vector: None,
    }
}
