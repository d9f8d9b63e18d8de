//! Comparing an index with its store.

use std::collections::HashSet;

use mnemon_core::{Grant, Id, StoreError, StoredChange};

use super::follow::{PAGE, change};
use super::{DocumentChange, ExternalIndex, Generation, REBUILDS, ServerError, Watermark};

/// Ids that a comparison names at the most.
const EXAMPLES: usize = 10;

/// How index and store differ, after the index was brought up to the store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Comparison {
    /// Records of the store.
    pub records: u64,
    /// Records without a document, which no search finds.
    pub missing: u64,
    /// Documents of another version than their record, which no search shows.
    pub outdated: u64,
    /// Documents without a record. No search shows them, and a rebuild removes them: records
    /// that expire leave them behind.
    pub leftover: u64,
    /// Vectors of the store that were compared; `None` if the server does not return vectors.
    pub vectors: Option<u64>,
    /// Records whose vector in the index is missing or another one, so that they are not found by
    /// their meaning, or by a wrong one.
    pub misplaced: u64,
    /// Some of the records that are missing, outdated or misplaced.
    pub examples: Vec<Id>,
}

impl Comparison {
    /// Whether every record can be found.
    pub fn is_complete(&self) -> bool {
        self.missing == 0 && self.outdated == 0 && self.misplaced == 0
    }
}

/// What has to be done so that documents and records agree.
#[derive(Default)]
pub(super) struct Differences {
    pub(super) records: u64,
    pub(super) missing: u64,
    pub(super) puts: Vec<DocumentChange>,
    /// Each with the number of its version.
    pub(super) leftover: Vec<(Id, u64)>,
}

impl ExternalIndex {
    /// Brings the tenant's documents up to the store, and compares all of them with its records. It
    /// corrects nothing.
    pub async fn compare(&self, grant: &Grant) -> Result<Comparison, StoreError> {
        for _ in 0..REBUILDS {
            let done = self.compare_once(grant).await;
            if let Some(found) = self.settle(done).await? {
                return Ok(found);
            }
        }
        Err(self.rebuilt_again())
    }

    async fn compare_once(&self, grant: &Grant) -> Result<Comparison, ServerError> {
        let generation = self.generation().await?;
        let _following = self.following.lock().await;
        self.follow_in(&generation, grant, usize::MAX).await?;
        let marked = self.server.watermark(&generation, grant.tenant()).await?;
        let found = self
            .differences(&generation, grant, marked.watermark)
            .await?;
        let differing: HashSet<&Id> = found.puts.iter().map(DocumentChange::id).collect();
        let vectors = self
            .compare_vectors(&generation, grant, marked.watermark, &differing)
            .await?;
        let examples = found.puts.iter().map(DocumentChange::id);
        let examples = examples.chain(&vectors.misplaced).take(EXAMPLES);
        Ok(Comparison {
            records: found.records,
            missing: found.missing,
            outdated: found.puts.len() as u64 - found.missing,
            leftover: found.leftover.len() as u64,
            examples: examples.cloned().collect(),
            vectors: vectors.compared,
            misplaced: vectors.misplaced.len() as u64,
        })
    }

    /// How documents and records differ, as far as the index follows the store.
    pub(super) async fn differences(
        &self,
        generation: &Generation,
        grant: &Grant,
        followed: Watermark,
    ) -> Result<Differences, ServerError> {
        let mut left = self.entries(generation, grant).await?;
        let mut found = Differences::default();
        let mut after = 0;
        loop {
            let page = self.store.stored_changes(grant, after, PAGE).await?;
            // Later changes are followed like any other.
            let seen = |change: &&StoredChange| change.seq <= followed.seq;
            for current in page.changes.iter().filter(seen).filter(|it| it.is_current) {
                found.records += 1;
                match left.remove(&current.id) {
                    Some(seq) if seq == current.seq => {}
                    document => {
                        found.missing += u64::from(document.is_none());
                        found.puts.push(change(current));
                    }
                }
            }
            after = page.reached();
            if !page.more {
                break;
            }
        }
        let leftover = left.into_iter();
        let leftover = leftover.filter(|(_, seq)| *seq <= followed.seq);
        found.leftover = leftover.collect();
        Ok(found)
    }
}
