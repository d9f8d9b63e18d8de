//! Bringing the documents of a tenant up to its store.

use std::collections::{BTreeMap, HashMap};

use mnemon_core::{Grant, Id, StoreError, StoredChange};

use super::{
    Document, DocumentChange, ExternalIndex, Generation, Marked, ServerError, Watermark,
    unavailable,
};

/// Changes that are read and written at once.
pub(super) const PAGE: usize = 1000;
/// Changes that one search writes at the most; the next search goes on.
pub(super) const SEARCH_WRITES: usize = 10_000;
/// How often a step is repeated because another process was following, too.
const CONFLICTS: usize = 20;

/// What following did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Followed {
    /// Documents that were written or deleted.
    pub written: usize,
    /// The number of changes that are left.
    pub behind: u64,
}

/// A page of changes, and where the index stands after it.
struct Step {
    changes: Vec<DocumentChange>,
    to: Watermark,
    newest: u64,
}

impl ExternalIndex {
    /// Brings the tenant's documents up to the store, as far as so many writes go.
    pub(super) async fn follow(
        &self,
        generation: &Generation,
        grant: &Grant,
        most: usize,
    ) -> Result<Followed, ServerError> {
        let _following = self.following.lock().await;
        let followed = self.follow_in(generation, grant, most).await?;
        if followed.written > 0 && followed.behind == 0 {
            self.reconcile_if_counts_differ(generation, grant).await?;
        }
        Ok(followed)
    }

    pub(super) async fn follow_in(
        &self,
        generation: &Generation,
        grant: &Grant,
        most: usize,
    ) -> Result<Followed, ServerError> {
        let tenant = grant.tenant();
        let mut marked = self.server.watermark(generation, tenant).await?;
        let (mut written, mut conflicts) = (0, 0);
        loop {
            let from = marked.watermark;
            let step = self.step(grant, from).await?;
            if step.to == from {
                return Ok(Followed { written, behind: 0 });
            }
            if written >= most {
                let behind = step.newest.saturating_sub(from.seq).max(1);
                return Ok(Followed { written, behind });
            }
            written += step.changes.len();
            if !step.changes.is_empty() {
                let changes = step.changes;
                self.server.write(generation, tenant, changes).await?;
            }
            let next = self.server.mark(generation, tenant, &marked, step.to);
            marked = match next.await? {
                Some(next) => next,
                None if conflicts < CONFLICTS => {
                    conflicts += 1;
                    self.begin_again(generation, grant, from).await?
                }
                None => return Err(self.contended().into()),
            };
        }
    }

    /// Another process has written meanwhile, perhaps newer vectors than this one. So the step is
    /// repeated with what the store holds now.
    async fn begin_again(
        &self,
        generation: &Generation,
        grant: &Grant,
        from: Watermark,
    ) -> Result<Marked, ServerError> {
        let theirs = self.server.watermark(generation, grant.tenant()).await?;
        Ok(Marked {
            watermark: Watermark {
                seq: from.seq.min(theirs.watermark.seq),
                embedded: from.embedded.min(theirs.watermark.embedded),
            },
            token: theirs.token,
        })
    }

    fn contended(&self) -> StoreError {
        let what = "other processes write to the index all the time; try again";
        unavailable(self.place(), what, "the watermark was moved")
    }

    async fn step(&self, grant: &Grant, from: Watermark) -> Result<Step, StoreError> {
        let page = self.store.stored_changes(grant, from.seq, PAGE).await?;
        let late = self.store.embedded_after(grant, from.embedded, PAGE);
        let late = late.await?;
        if page.last_seq < from.seq || late.reached < from.embedded {
            return Err(self.is_ahead());
        }
        let to = Watermark {
            seq: page.reached(),
            embedded: late.reached,
        };
        let changes = page.changes.iter().map(change);
        let late = late.records.iter();
        let late = late.map(|(record, vector)| put(Document::of(record, Some(vector))));
        Ok(Step {
            changes: newest_of_each(changes.chain(late)),
            to,
            newest: page.last_seq,
        })
    }

    fn is_ahead(&self) -> StoreError {
        let what = "the index has seen changes that the store does not have, as after the store was \
                    restored from a backup; run `mnemon index rebuild`";
        unavailable(self.place(), what, "the watermark is ahead of the store")
    }

    /// Expired records are erased without a change, and a change may be dropped before an index has
    /// seen it. Then the index has more documents than the store has records.
    async fn reconcile_if_counts_differ(
        &self,
        generation: &Generation,
        grant: &Grant,
    ) -> Result<(), ServerError> {
        let tenant = grant.tenant();
        let documents = self.server.count(generation, tenant).await?;
        if documents != self.store.tally(grant).await?.records() {
            self.reconcile(generation, grant).await?;
        }
        Ok(())
    }

    /// Compares all documents with all records, and corrects what differs.
    async fn reconcile(&self, generation: &Generation, grant: &Grant) -> Result<(), ServerError> {
        let tenant = grant.tenant();
        let marked = self.server.watermark(generation, tenant).await?;
        let found = self.differences(generation, grant, marked.watermark);
        let found = found.await?;
        let has_puts = !found.puts.is_empty();
        let leftover = found.leftover.into_iter();
        let leftover = leftover.map(|(id, seq)| DocumentChange::Delete { id, seq: seq + 1 });
        let changes = found.puts.into_iter().chain(leftover).collect();
        for changes in chunks(changes) {
            self.server.write(generation, tenant, changes).await?;
        }
        if has_puts {
            // Vectors that came late are not in the changes of every store.
            let to = Watermark {
                embedded: 0,
                ..marked.watermark
            };
            self.server.mark(generation, tenant, &marked, to).await?;
            self.follow_in(generation, grant, usize::MAX).await?;
        }
        Ok(())
    }

    pub(super) async fn entries(
        &self,
        generation: &Generation,
        grant: &Grant,
    ) -> Result<HashMap<Id, u64>, ServerError> {
        let mut all = HashMap::new();
        let mut after: Option<Id> = None;
        loop {
            let tenant = grant.tenant();
            let page = self
                .server
                .entries(generation, tenant, after.as_ref(), PAGE);
            let page = page.await?;
            let is_last = page.len() < PAGE;
            after = page.last().map(|entry| entry.id.clone());
            all.extend(page.into_iter().map(|entry| (entry.id, entry.seq)));
            if is_last {
                return Ok(all);
            }
        }
    }
}

fn put(document: Document) -> DocumentChange {
    DocumentChange::Put(Box::new(document))
}

/// What a change of the store means for the record's document.
pub(super) fn change(change: &StoredChange) -> DocumentChange {
    match &change.record {
        Some(record) if change.is_current => put(Document::of(record, change.vector.as_ref())),
        // The record was deleted, or a later change has a newer version of it.
        _ => DocumentChange::Delete {
            id: change.id.clone(),
            seq: change.seq,
        },
    }
}

/// Each id once, with its newest change.
fn newest_of_each(changes: impl Iterator<Item = DocumentChange>) -> Vec<DocumentChange> {
    let mut newest: BTreeMap<Id, DocumentChange> = BTreeMap::new();
    for change in changes {
        let known = newest.get(change.id()).map(DocumentChange::version);
        if known.is_none_or(|known| known <= change.version()) {
            newest.insert(change.id().clone(), change);
        }
    }
    newest.into_values().collect()
}

fn chunks(mut changes: Vec<DocumentChange>) -> Vec<Vec<DocumentChange>> {
    let mut chunks = Vec::new();
    while !changes.is_empty() {
        let rest = changes.split_off(changes.len().min(PAGE));
        chunks.push(std::mem::replace(&mut changes, rest));
    }
    chunks
}
