//! The verbs over one store.

pub(crate) mod commit_signal;
pub(crate) mod draft;
pub(crate) mod edit;
pub(crate) mod embedding;
pub(crate) mod error;
pub(crate) mod import;
pub(crate) mod naming;
pub(crate) mod project;
pub(crate) mod safety;
pub(crate) mod session_marks;
pub(crate) mod undo;

pub use commit_signal::NextCommit;
pub use draft::{Draft, Retention};
pub use edit::{Edit, Edited};
pub use embedding::Embedded;
pub use error::Error;
pub use import::OnConflict;
pub use safety::Safety;
pub use undo::INDEX_ACTOR;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use mnemon_core::embed::Embedder;
use mnemon_core::rerank::Reranker;
use mnemon_core::window::Readings;
use mnemon_core::{
    Backend, Batch, Capabilities, Change, Changes, Claim, Claimed, Ctx, Expect, Filter, Grant,
    Hidden, HiddenScan, Id, IdempotencyKey, Ids, Invalid, Limits, Op, Page, Policy, Receipt,
    Record, Right, Scan, SearchIndex, SessionCount, Store, StoreError, Tally, Upkept, Viewer,
};

use crate::records::commit_signal::CommitSignal;
use crate::records::draft::{check_alive, intent};
use crate::records::safety::TakenOut;

/// Everything that is remembered in one store, under one policy. A clone is another handle on the
/// same store.
#[derive(Clone)]
pub struct Records {
    pub(crate) store: Arc<dyn Store>,
    /// Finds the records of the store.
    pub(crate) index: Arc<dyn SearchIndex>,
    /// All stores of the memory, each once: records may be derived from others on another store.
    pub(crate) backends: Arc<[Backend]>,
    pub(crate) policy: Policy,
    /// The model that places new records, then those whose vectors may still be about.
    pub(crate) embedders: Vec<Arc<dyn Embedder>>,
    pub(crate) reranker: Option<Arc<dyn Reranker>>,
    pub(crate) ids: Arc<Ids>,
    pub(crate) retention: Retention,
    pub(crate) safety: Safety,
    /// What marks the entries of this project's files; those of others are not found. `None` finds
    /// those of all projects.
    pub(crate) project_tag: Option<String>,
    /// Whether something was searched for here, so that it may come back as an echo.
    pub(crate) recalled: Arc<AtomicBool>,
    /// What messages say, read once for all summaries of their conversation.
    pub(crate) readings: Arc<Readings>,
    /// Wakes listeners of the change feed.
    pub(crate) signal: Arc<CommitSignal>,
}

impl Records {
    /// How many there may be of something.
    pub fn limits(&self) -> &'static Limits {
        self.policy.limits
    }

    /// What the store can do.
    pub fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    /// Remembers the drafts, all or none. With a key a retry is harmless. Secrets are kept out, and
    /// what came from the memory itself is kept out of notes, facts, decisions and rules.
    pub async fn add(
        &self,
        ctx: &Ctx,
        drafts: Vec<Draft>,
        key: Option<&str>,
    ) -> Result<Receipt, Error> {
        let key = key.map(|key| intent(key, &drafts)).transpose()?;
        self.add_with_key(ctx, drafts, key).await
    }

    pub(crate) async fn add_with_key(
        &self,
        ctx: &Ctx,
        mut drafts: Vec<Draft>,
        key: Option<IdempotencyKey>,
    ) -> Result<Receipt, Error> {
        let mut taken = TakenOut::default();
        for draft in &mut drafts {
            unecho(draft, &mut taken)?;
        }
        let absent = drafts.into_iter().map(|draft| (draft, Expect::Absent));
        let receipt = self.put(ctx, absent.collect(), key).await?;
        ctx.notices.extend(taken.sentences());
        Ok(receipt)
    }

    /// Writes the drafts, each if what is there under its id is as expected; all or none. Whatever
    /// comes from outside comes through here: secrets are taken out, or refused.
    pub async fn put(
        &self,
        ctx: &Ctx,
        mut drafts: Vec<(Draft, Expect)>,
        key: Option<IdempotencyKey>,
    ) -> Result<Receipt, Error> {
        let mut taken = TakenOut::default();
        for (draft, _) in &mut drafts {
            self.safety.screen(draft, &mut taken)?;
        }
        let receipt = self.put_screened(ctx, drafts, key).await?;
        ctx.notices.extend(taken.sentences());
        Ok(receipt)
    }

    /// The same for text that lies in a file or a log already: its secrets are masked, whatever the
    /// policy, since a refusal would only keep it from being found.
    pub(crate) async fn put_masking(
        &self,
        ctx: &Ctx,
        mut drafts: Vec<(Draft, Expect)>,
    ) -> Result<Receipt, Error> {
        let safety = self.safety.never_refusing();
        for (draft, _) in &mut drafts {
            safety.screen(draft, &mut TakenOut::default())?;
        }
        self.put_screened(ctx, drafts, None).await
    }

    /// Writes drafts without screening them: only for drafts that were screened before, or that
    /// repeat to the byte what is stored.
    pub(crate) async fn put_screened(
        &self,
        ctx: &Ctx,
        drafts: Vec<(Draft, Expect)>,
        key: Option<IdempotencyKey>,
    ) -> Result<Receipt, Error> {
        let grant = self.policy.check(ctx, Right::Write)?;
        self.check_key(key.as_ref())?;
        let ops = drafts.into_iter().map(|(draft, expect)| {
            let record = draft.into_record(ctx, &self.ids, self.retention);
            check_alive(&record, ctx)?;
            Ok(Op::put_if(record, expect))
        });
        let ops: Vec<Op> = ops.collect::<Result<_, Invalid>>()?;
        let batch = Batch::from(ops).with_key(key);
        self.apply(ctx, &grant, batch).await
    }

    /// Within a command the first batch begins its commit, and the others continue it.
    async fn apply_in_group(
        &self,
        ctx: &Ctx,
        grant: &Grant,
        mut batch: Batch,
    ) -> Result<Receipt, StoreError> {
        let Some(group) = &ctx.group else {
            return self.commit(grant, batch).await;
        };
        let mut begun = group.begun().await;
        let place = (ctx.tenant.clone(), self.store_number());
        batch.continues = begun.get(&place).copied();
        if batch.continues.is_some() {
            drop(begun);
            return self.commit(grant, batch).await;
        }
        let receipt = self.commit(grant, batch).await?;
        begun.extend(receipt.commit.map(|commit| (place, commit)));
        Ok(receipt)
    }

    /// Applies the batch as it is, and wakes listeners of the change feed.
    pub(crate) async fn commit(&self, grant: &Grant, batch: Batch) -> Result<Receipt, StoreError> {
        let receipt = self.store.apply(grant, batch).await?;
        self.signal.announce(grant.tenant());
        Ok(receipt)
    }

    /// Claims a job of the tenant of `ctx`, which may be the system tenant, for one process.
    pub async fn claim(&self, ctx: &Ctx, claim: &Claim<'_>) -> Result<Claimed, Error> {
        let grant = match ctx.tenant.is_system() {
            true => self.policy.check_system(ctx, Right::Write)?,
            false => self.policy.check(ctx, Right::Write)?,
        };
        Ok(self.store.claim(&grant, claim).await?)
    }

    /// A number that tells the stores of one process apart.
    pub(crate) fn store_number(&self) -> usize {
        Arc::as_ptr(&self.store).cast::<()>().addr()
    }

    /// The same verbs over each store of the memory.
    pub(crate) fn on_all_stores(&self) -> Vec<Self> {
        let all = self.backends.iter().map(|backend| Self {
            store: backend.store.clone(),
            index: backend.index.clone(),
            ..self.clone()
        });
        all.collect()
    }

    /// Applies the batch, with vectors for the records that it puts: every write of the engine.
    pub(crate) async fn apply(
        &self,
        ctx: &Ctx,
        grant: &Grant,
        mut batch: Batch,
    ) -> Result<Receipt, Error> {
        let puts: Vec<&Record> = batch
            .ops
            .iter()
            .filter_map(|op| match op {
                Op::Put { record, .. } => Some(record.as_ref()),
                _ => None,
            })
            .collect();
        batch.vectors = self.vectors(ctx, &puts).await;
        // What is erased is erased from memory as well.
        if batch.ops.iter().any(|op| matches!(op, Op::Purge { .. })) {
            self.readings.clear();
        }
        let mut receipt = self.apply_in_group(ctx, grant, batch).await?;
        ctx.notices.extend(receipt.notices.drain(..));
        Ok(receipt)
    }

    /// Replaces a record by a changed version of itself; refused if somebody changed it meanwhile.
    /// What is kept out of a new record is kept out of a changed one.
    pub async fn update(&self, ctx: &Ctx, mut record: Record) -> Result<Receipt, Error> {
        let mut taken = TakenOut::default();
        let mut said = Draft {
            kind: Some(record.kind),
            ..Draft::note(std::mem::take(&mut record.content))
        };
        unecho(&mut said, &mut taken)?;
        record.content = said.content;
        self.safety.screen_record(&mut record, &mut taken)?;
        let receipt = self.update_screened(ctx, record).await?;
        ctx.notices.extend(taken.sentences());
        Ok(receipt)
    }

    /// The same without screening: only for a change that adds no text.
    pub(crate) async fn update_screened(
        &self,
        ctx: &Ctx,
        mut record: Record,
    ) -> Result<Receipt, Error> {
        let grant = self.policy.check(ctx, Right::Write)?;
        let expect = Expect::Version(record.version);
        record.updated = ctx.now;
        let batch = Batch::of(Op::put_if(record, expect));
        self.apply(ctx, &grant, batch).await
    }

    /// The records with these ids; `None` where there is none.
    pub async fn get(&self, ctx: &Ctx, ids: &[Id]) -> Result<Vec<Option<Record>>, Error> {
        let grant = self.policy.check(ctx, Right::Read)?;
        Ok(self.store.get(&grant, ids).await?)
    }

    /// The record with this id.
    pub async fn find(&self, ctx: &Ctx, id: &Id) -> Result<Option<Record>, Error> {
        let found = self.get(ctx, std::slice::from_ref(id)).await?;
        Ok(found.into_iter().flatten().next())
    }

    /// The same for any number of ids, page by page.
    pub(crate) async fn get_all(
        &self,
        ctx: &Ctx,
        ids: &[Id],
    ) -> Result<Vec<Option<Record>>, Error> {
        let grant = self.policy.check(ctx, Right::Read)?;
        self.get_granted(&grant, ids).await
    }

    /// The same under a grant, a page at a time.
    pub(crate) async fn get_granted(
        &self,
        grant: &Grant,
        ids: &[Id],
    ) -> Result<Vec<Option<Record>>, Error> {
        let mut found = Vec::with_capacity(ids.len());
        for page in ids.chunks(self.limits().page) {
            found.extend(self.store.get(grant, page).await?);
        }
        Ok(found)
    }

    /// The same for a viewer: a record that they may not see is none to them.
    pub async fn get_seen_by(
        &self,
        ctx: &Ctx,
        viewer: &Viewer,
        ids: &[Id],
    ) -> Result<Vec<Option<Record>>, Error> {
        let seen = |record: &Record| viewer.sees(&record.audience());
        let found = self.get_all(ctx, ids).await?.into_iter();
        Ok(found.map(|record| record.filter(seen)).collect())
    }

    /// A page of records.
    pub async fn list(&self, ctx: &Ctx, scan: &Scan) -> Result<Page, Error> {
        let grant = self.policy.check(ctx, Right::Read)?;
        Ok(self.store.scan(&grant, scan).await?)
    }

    /// Reads page after page, until there is no other one or `take` wants no more. Whether there
    /// is another one.
    pub async fn each_page(
        &self,
        ctx: &Ctx,
        mut scan: Scan,
        mut take: impl FnMut(Vec<Record>) -> bool,
    ) -> Result<bool, Error> {
        loop {
            let page = self.list(ctx, &scan).await?;
            match (take(page.records), page.next) {
                (true, Some(next)) => scan.after = Some(next),
                (_, next) => return Ok(next.is_some()),
            }
        }
    }

    /// The sessions of the records that the filter means, the one that was used last first.
    pub(crate) async fn sessions(
        &self,
        ctx: &Ctx,
        filter: &Filter,
    ) -> Result<Vec<SessionCount>, Error> {
        let grant = self.policy.check(ctx, Right::Read)?;
        Ok(self.store.sessions(&grant, filter).await?)
    }

    /// A page of records that no list shows any more, although a version of them matches.
    pub async fn hidden(&self, ctx: &Ctx, scan: &HiddenScan) -> Result<Vec<Hidden>, Error> {
        let grant = self.policy.check(ctx, Right::Read)?;
        Ok(self.store.hidden(&grant, scan).await?)
    }

    /// A key is kept with its receipt, so that it is screened like an id.
    pub(crate) fn check_key(&self, key: Option<&IdempotencyKey>) -> Result<(), Invalid> {
        key.map_or(Ok(()), |key| self.safety.check_identifier("key", &key.name))
    }

    /// What was changed, newest first.
    pub async fn history(&self, ctx: &Ctx, changes: &Changes) -> Result<Vec<Change>, Error> {
        let grant = self.policy.check(ctx, Right::Read)?;
        Ok(self.store.changes(&grant, changes).await?)
    }

    /// How much there is.
    pub async fn stats(&self, ctx: &Ctx) -> Result<Tally, Error> {
        let grant = self.policy.check(ctx, Right::Read)?;
        Ok(self.store.tally(&grant).await?)
    }

    /// How many records wait for a vector of the current model, counted up to a page. Records that
    /// mean nothing to the model never get one, and count.
    pub async fn without_vector(&self, ctx: &Ctx) -> Result<usize, Error> {
        let grant = self.policy.check(ctx, Right::Read)?;
        let Some(embedder) = self.embedders.first() else {
            return Ok(0);
        };
        let (model, most) = (embedder.model(), self.limits().page);
        // Vectors that are made anew cannot be missing, and the dimension of a model that was not
        // asked yet is not known.
        if !self.store.capabilities().keeps_vectors || model.dimension == 0 {
            return Ok(0);
        }
        Ok(self.store.lacking(&grant, model, 0, most).await?.len())
    }

    /// Does at most `limit` pieces of the housekeeping that is due.
    pub async fn upkeep(&self, ctx: &Ctx, limit: usize) -> Result<Upkept, Error> {
        let grant = self.policy.check(ctx, Right::Write)?;
        Ok(self.store.upkeep(&grant, limit).await?)
    }

    /// The same for a caller who knows that the clock is right, however far it is ahead of the
    /// newest write.
    pub async fn upkeep_accepting_clock(&self, ctx: &Ctx, limit: usize) -> Result<Upkept, Error> {
        let grant = self.policy.check(ctx, Right::Write)?.accept_clock();
        Ok(self.store.upkeep(&grant, limit).await?)
    }
}

/// Leaves out of a draft what came from the memory itself.
fn unecho(draft: &mut Draft, taken: &mut TakenOut) -> Result<(), Invalid> {
    let mut own = TakenOut::default();
    Safety::unecho(draft, &mut own);
    if own.recalled && draft.content.is_empty() {
        let what = "contains only text recalled from memory; nothing new to store";
        return Err(Invalid::new("content", what));
    }
    taken.recalled |= own.recalled;
    Ok(())
}

/// The operations in as few batches as their limits allow, in order.
pub(crate) fn in_batches(ops: Vec<Op>, limits: &Limits) -> Vec<Vec<Op>> {
    let mut batches: Vec<Vec<Op>> = Vec::new();
    let mut bytes = 0;
    for op in ops {
        let weight = match &op {
            Op::Put { record, .. } => record.weight(),
            Op::Delete { .. } | Op::Purge { .. } => 0,
        };
        bytes += weight;
        match batches.last_mut() {
            Some(batch) if batch.len() < limits.batch_ops && bytes <= limits.batch_bytes => {
                batch.push(op);
            }
            _ => {
                bytes = weight;
                batches.push(vec![op]);
            }
        }
    }
    batches
}
