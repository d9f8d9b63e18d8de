//! Stores with a known defect. A simulation that does not find them proves nothing.

use std::collections::HashMap;
use std::sync::Mutex;

use async_trait::async_trait;
use mnemon_core::embed::ModelId;
use mnemon_core::{
    Answer, Backend, Batch, Capabilities, Change, Changes, Ctx, Embedding, Expect, Fate, Filter,
    Grant, Hidden, HiddenScan, Id, IndexCapabilities, Op, Page, Policy, Probe, Receipt, Record,
    Right, Scan, SearchIndex, SessionWindow, Store, StoreError, Tally, Upkept,
};

use super::UNIQUE;

/// What is wrong with a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// Now and then an acknowledged record is not there.
    LostWrite,
    /// A batch that is refused leaves its first operation behind.
    PartialBatch,
    /// Deleting a source leaves the records that were derived from it.
    CascadeForgotten,
    /// A purge hides the record and keeps its history.
    PurgeKeepsHistory,
    /// Records are shown after they have expired.
    ExpiredShown,
    /// A list of one user's records shows those of all users.
    OtherUserShown,
    /// A get of an id that is not there answers with another tenant's record.
    OtherTenantShown,
    /// A retry with an idempotency key is applied again.
    KeyForgotten,
    /// Version preconditions are not looked at.
    PreconditionIgnored,
    /// Now and then the answer is the receipt of the batch before.
    ReceiptOfAnother,
    /// A cache goes on showing records that were deleted.
    DeletedShown,
    /// An undo leaves out one of the records.
    UndoIncomplete,
    /// The strongest note is evicted instead of the weakest.
    StrongestEvicted,
    /// Now and then a batch is written twice, as if its acknowledgement had been lost.
    WrittenTwice,
    /// The search index does not see new records.
    IndexBehind,
    /// The last record of a page is left out.
    PageGap,
    /// Deleted records are still counted.
    CountWrong,
}

impl Defect {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::LostWrite,
        Self::PartialBatch,
        Self::CascadeForgotten,
        Self::PurgeKeepsHistory,
        Self::ExpiredShown,
        Self::OtherUserShown,
        Self::OtherTenantShown,
        Self::KeyForgotten,
        Self::PreconditionIgnored,
        Self::ReceiptOfAnother,
        Self::DeletedShown,
        Self::UndoIncomplete,
        Self::StrongestEvicted,
        Self::WrittenTwice,
        Self::IndexBehind,
        Self::PageGap,
        Self::CountWrong,
    ];
}

/// A store with a defect.
pub struct Planted {
    inner: Backend,
    defect: Defect,
    memory: Mutex<Memory>,
}

/// What the defects need to remember.
#[derive(Default)]
struct Memory {
    applied: u64,
    last: Option<Receipt>,
    /// Records as they were given, by their content, which is unique.
    given: HashMap<String, Record>,
    cached: HashMap<(String, Id), Record>,
    deleted: u64,
}

impl Planted {
    /// The store with this defect.
    #[must_use]
    pub fn new(inner: Backend, defect: Defect) -> Self {
        Self {
            inner,
            defect,
            memory: Mutex::default(),
        }
    }

    /// The batch as the defective store understands it.
    fn altered(&self, mut batch: Batch) -> Batch {
        match self.defect {
            Defect::KeyForgotten => batch.key = None,
            Defect::UndoIncomplete if batch.undoes.is_some() && batch.ops.len() > 1 => {
                batch.ops.pop();
            }
            _ => {}
        }
        for op in &mut batch.ops {
            self.alter(op);
        }
        batch
    }

    fn alter(&self, op: &mut Op) {
        match (self.defect, &mut *op) {
            (Defect::PreconditionIgnored, Op::Put { expect, .. } | Op::Delete { expect, .. }) => {
                *expect = Expect::Anything
            }
            (Defect::PurgeKeepsHistory, Op::Purge { id }) => *op = Op::delete(id.clone()),
            // Only texts that are unique can be disguised.
            (_, Op::Put { record, .. }) if !record.content.starts_with(UNIQUE) => {}
            (Defect::CascadeForgotten, Op::Put { record, .. }) => {
                self.give(record);
                record.derived_from.clear();
            }
            (Defect::ExpiredShown, Op::Put { record, .. }) => {
                self.give(record);
                record.expires = None;
            }
            (Defect::StrongestEvicted, Op::Put { record, .. }) => {
                self.give(record);
                record.importance = 1.0 - record.importance;
            }
            _ => {}
        }
    }

    fn give(&self, record: &Record) {
        let mut memory = self.memory.lock().unwrap();
        let given = memory.given.entry(record.content.clone());
        given.or_insert_with(|| record.clone());
    }

    /// The record as it was given, so that only what the store does with it is wrong.
    fn disguised(&self, mut record: Record) -> Record {
        let memory = self.memory.lock().unwrap();
        if let Some(given) = memory.given.get(&record.content) {
            match self.defect {
                Defect::CascadeForgotten => record.derived_from = given.derived_from.clone(),
                Defect::ExpiredShown => record.expires = given.expires,
                _ => record.importance = given.importance,
            }
        }
        record
    }

    /// The receipt as a right store would have written it, as far as the defect can know.
    fn disguise(&self, asked: &Batch, mut receipt: Receipt) -> Receipt {
        if self.defect == Defect::PurgeKeepsHistory {
            for (op, item) in asked.ops.iter().zip(&mut receipt.items) {
                if matches!(op, Op::Purge { .. }) && item.fate == Fate::Deleted {
                    item.fate = Fate::Purged;
                }
            }
            let purges = |op: &Op| matches!(op, Op::Purge { .. });
            if asked.ops.iter().all(purges) {
                receipt.commit = None;
            }
        }
        for op in asked.ops.iter().skip(receipt.items.len()) {
            let fate = Fate::Deleted;
            let id = op.id().clone();
            receipt.items.push(mnemon_core::Outcome { id, fate });
        }
        receipt
    }

    async fn after(
        &self,
        grant: &Grant,
        asked: &Batch,
        receipt: Receipt,
    ) -> Result<Receipt, StoreError> {
        let (count, last) = {
            let mut memory = self.memory.lock().unwrap();
            memory.applied += 1;
            let gone = |item: &&mnemon_core::Outcome| item.fate == Fate::Deleted;
            memory.deleted += receipt.items.iter().filter(gone).count() as u64;
            (memory.applied, memory.last.replace(receipt.clone()))
        };
        match self.defect {
            Defect::LostWrite if count % 20 == 0 => {
                if let Some(Op::Put { record, .. }) = asked.ops.last() {
                    let lose = Batch::of(Op::Purge {
                        id: record.id.clone(),
                    });
                    let ctx = Ctx::new(grant.tenant().clone(), "defect", grant.now());
                    let purge = Policy::default().check(&ctx, Right::Purge)?;
                    self.inner.store.apply(&purge, lose).await?;
                }
                Ok(receipt)
            }
            Defect::WrittenTwice if count % 20 == 0 => {
                let again = Batch {
                    key: None,
                    ..asked.clone()
                };
                // The second time a precondition may refuse it.
                let _ = self.inner.store.apply(grant, again).await;
                Ok(receipt)
            }
            Defect::ReceiptOfAnother if count % 20 == 0 => Ok(last.unwrap_or(receipt)),
            _ => Ok(receipt),
        }
    }

    fn remember(&self, grant: &Grant, record: &Record) {
        if self.defect == Defect::DeletedShown {
            let key = (grant.tenant().to_string(), record.id.clone());
            let mut memory = self.memory.lock().unwrap();
            memory.cached.insert(key, record.clone());
        }
    }

    async fn missing(&self, grant: &Grant, id: &Id) -> Result<Option<Record>, StoreError> {
        match self.defect {
            Defect::DeletedShown => {
                let key = (grant.tenant().to_string(), id.clone());
                let memory = self.memory.lock().unwrap();
                let cached = memory.cached.get(&key).cloned();
                Ok(cached.filter(|record| record.is_live(grant.now())))
            }
            Defect::OtherTenantShown => {
                let ctx = Ctx::new("acme".parse()?, "defect", grant.now());
                let other = Policy::default().check(&ctx, Right::Read)?;
                let found = self
                    .inner
                    .store
                    .get(&other, std::slice::from_ref(id))
                    .await?;
                Ok(found.into_iter().flatten().next())
            }
            _ => Ok(None),
        }
    }
}

#[async_trait]
impl SearchIndex for Planted {
    fn capabilities(&self) -> IndexCapabilities {
        self.inner.index.capabilities()
    }

    async fn find(&self, grant: &Grant, probe: &Probe) -> Result<Answer, StoreError> {
        let mut found = self.inner.index.find(grant, probe).await?;
        if self.defect == Defect::IndexBehind {
            let newest = self.inner.store.tally(grant).await?.seq;
            let is_old = |seq: u64| seq + 3 < newest;
            let matches = &mut found.matches;
            matches.retain(|found| found.features.as_ref().is_some_and(|of| is_old(of.seq)));
        }
        Ok(found)
    }

    async fn speakers(
        &self,
        grant: &Grant,
        audience: &Filter,
        words: &[&str],
    ) -> Result<Vec<String>, StoreError> {
        self.inner.index.speakers(grant, audience, words).await
    }
}

#[async_trait]
impl Store for Planted {
    fn capabilities(&self) -> Capabilities {
        self.inner.store.capabilities()
    }

    async fn apply(&self, grant: &Grant, batch: Batch) -> Result<Receipt, StoreError> {
        let altered = self.altered(batch.clone());
        match self.inner.store.apply(grant, altered).await {
            Ok(receipt) => {
                let receipt = self.disguise(&batch, receipt);
                self.after(grant, &batch, receipt).await
            }
            Err(error @ StoreError::Conflict { .. }) if self.defect == Defect::PartialBatch => {
                if let Some(Op::Put { record, .. }) = batch.ops.first() {
                    let first = Batch::of(Op::put((**record).clone()));
                    self.inner.store.apply(grant, first).await?;
                }
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    async fn get(&self, grant: &Grant, ids: &[Id]) -> Result<Vec<Option<Record>>, StoreError> {
        let mut answer = Vec::with_capacity(ids.len());
        for (id, found) in ids.iter().zip(self.inner.store.get(grant, ids).await?) {
            let found = found.map(|record| self.disguised(record));
            if let Some(record) = &found {
                self.remember(grant, record);
            }
            answer.push(match found {
                Some(record) => Some(record),
                None => self.missing(grant, id).await?,
            });
        }
        Ok(answer)
    }

    async fn scan(&self, grant: &Grant, scan: &Scan) -> Result<Page, StoreError> {
        let mut scan = scan.clone();
        if self.defect == Defect::OtherUserShown {
            scan.filter = Filter::all_of_tenant();
        }
        let mut page = self.inner.store.scan(grant, &scan).await?;
        if self.defect == Defect::PageGap && page.next.is_some() {
            page.records.pop();
        }
        let records = std::mem::take(&mut page.records);
        page.records = records
            .into_iter()
            .map(|record| self.disguised(record))
            .collect();
        Ok(page)
    }

    async fn hidden(&self, grant: &Grant, scan: &HiddenScan) -> Result<Vec<Hidden>, StoreError> {
        let mut answer = self.inner.store.hidden(grant, scan).await?;
        for hidden in &mut answer {
            hidden.record = self.disguised(hidden.record.clone());
        }
        Ok(answer)
    }

    async fn changes(&self, grant: &Grant, changes: &Changes) -> Result<Vec<Change>, StoreError> {
        let mut answer = self.inner.store.changes(grant, changes).await?;
        for change in &mut answer {
            for version in [&mut change.before, &mut change.after] {
                *version = version.take().map(|record| self.disguised(record));
            }
        }
        Ok(answer)
    }

    async fn tally(&self, grant: &Grant) -> Result<Tally, StoreError> {
        let mut tally = self.inner.store.tally(grant).await?;
        if self.defect == Defect::CountWrong
            && let Some(group) = tally.groups.first_mut()
        {
            group.count += self.memory.lock().unwrap().deleted;
        }
        Ok(tally)
    }

    async fn upkeep(&self, grant: &Grant, limit: usize) -> Result<Upkept, StoreError> {
        self.inner.store.upkeep(grant, limit).await
    }

    async fn lacking(
        &self,
        grant: &Grant,
        model: &ModelId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        self.inner.store.lacking(grant, model, after, limit).await
    }

    async fn embed(
        &self,
        grant: &Grant,
        vectors: Vec<(u64, Embedding)>,
    ) -> Result<usize, StoreError> {
        self.inner.store.embed(grant, vectors).await
    }

    async fn neighbours(
        &self,
        grant: &Grant,
        ids: &[Id],
        reach: usize,
    ) -> Result<Vec<Option<SessionWindow>>, StoreError> {
        self.inner.store.neighbours(grant, ids, reach).await
    }
}
