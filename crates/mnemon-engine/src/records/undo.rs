//! Undo of a commit of any size.
//!
//! A commit is reverted in as many batches as it takes, under one number. Nothing is written before
//! it is known that no record was changed since. An undo that was interrupted goes on when it is
//! called again: what it has reverted is found in the history under its number.

use std::collections::{HashMap, HashSet};

use mnemon_core::{
    Batch, Cause, Change, Changes, CommitGroup, Ctx, Expect, Grant, Id, Op, Receipt, Record, Right,
    StoreError,
};

use crate::records::in_batches;
use crate::records::session_marks::{is_log_mark, is_purge_mark};
use crate::records::{Error, Records};

/// Who acts, for the history, where records are made from files on the side.
pub const INDEX_ACTOR: &str = "mnemon:index";

/// The same call, made on the side to bring an index of files up to date: it is no part of the
/// command that the caller may undo.
pub(crate) fn as_index(ctx: &Ctx) -> Ctx {
    Ctx {
        actor: INDEX_ACTOR.to_owned(),
        ..ctx.ungrouped().as_one_commit()
    }
}

/// How one record goes back to what it was before a commit.
struct Reversal {
    id: Id,
    /// The first change of the record in the commit, and the version that it made.
    seq: u64,
    first_version: u64,
    before: Option<Record>,
    before_known: bool,
    /// The version that is there now; `None` when there is none.
    version: Option<u64>,
}

impl Reversal {
    fn expect(&self) -> Expect {
        self.version.map_or(Expect::Absent, Expect::Version)
    }

    fn conflict(&self, current: Option<u64>) -> Error {
        let expected = match self.version {
            Some(version) => format!("version {version}"),
            None => "no record".to_owned(),
        };
        let id = self.id.clone();
        StoreError::Conflict {
            id,
            expected,
            current,
        }
        .into()
    }
}

impl Records {
    /// Undoes a commit: removes what it added, restores what it changed or deleted. Refused, and
    /// nothing is changed, when a record was changed again since. One that was interrupted goes on.
    /// Undoing the undo does the change again.
    pub async fn undo(&self, ctx: &Ctx, commit: u64) -> Result<Receipt, Error> {
        let group = CommitGroup::default();
        let ctx = Ctx {
            group: Some(group.clone()),
            ..ctx.clone()
        };
        let grant = self.policy.check(&ctx, Right::Write)?;
        let reversals = self.reversals(&grant, commit).await?;
        let follow_up = self.follow_up(&ctx, commit, &reversals).await?;
        let (reversals, begun) = self.unreverted(&grant, commit, reversals).await?;
        if let Some(begun) = begun {
            let place = (ctx.tenant.clone(), self.store_number());
            group.begun().await.insert(place, begun);
        }
        // First what the history tells an interrupted undo by.
        let mut ops = operations(reversals);
        ops.extend(follow_up);
        let mut undone = Receipt {
            commit: begun,
            ..Receipt::default()
        };
        for ops in in_batches(ops, grant.limits()) {
            let batch = Batch {
                undoes: Some(commit),
                ..Batch::from(ops)
            };
            let receipt = self.apply(&ctx, &grant, batch).await?;
            undone.commit = undone.commit.or(receipt.commit);
            undone.items.extend(receipt.items);
            undone.cascaded.extend(receipt.cascaded);
            undone.evicted.extend(receipt.evicted);
        }
        Ok(undone)
    }

    /// The newest commit that touched this record. Without one the newest commit of a caller:
    /// commits that only bring the index of files up to date are skipped, since nobody asked for
    /// them and the next search makes them again. For an undo that was interrupted it is the commit
    /// that is being undone, so that undoing the answer finishes it.
    pub async fn last_commit(&self, ctx: &Ctx, id: Option<&Id>) -> Result<Option<u64>, Error> {
        let mut page = Changes {
            id: id.cloned(),
            limit: 1,
            ..Changes::all_of_tenant(0)
        };
        loop {
            let changes = self.history(ctx, &page).await?;
            let meant = |change: &&Change| id.is_some() || change.actor != INDEX_ACTOR;
            if let Some(change) = changes.iter().find(meant) {
                return self.unfinished(ctx, change).await.map(Some);
            }
            if changes.len() < page.limit {
                return Ok(None);
            }
            page.before = changes.last().map(|change| change.seq);
            page.limit = self.policy.limits.changes;
        }
    }

    /// The commit of a change; if it is an undo that has not reverted everything, what it undoes.
    async fn unfinished(&self, ctx: &Ctx, change: &Change) -> Result<u64, Error> {
        let Cause::Undone(undone) = change.cause else {
            return Ok(change.commit);
        };
        let grant = self.policy.check(ctx, Right::Read)?;
        let left = async {
            let reversals = self.reversals(&grant, undone).await?;
            self.unreverted(&grant, undone, reversals).await
        };
        match left.await {
            Ok((left, begun)) if !left.is_empty() && begun == Some(change.commit) => Ok(undone),
            Err(Error::Store(error)) if !matches!(error, StoreError::Conflict { .. }) => {
                Err(error.into())
            }
            // It is done, or cannot be finished any more.
            _ => Ok(change.commit),
        }
    }

    /// What puts every record of a commit back, in the order of their first changes. A record that
    /// was changed twice goes back to what it was before the first change. Of what the commit wrote
    /// only the numbers are held in memory.
    async fn reversals(&self, grant: &Grant, commit: u64) -> Result<Vec<Reversal>, Error> {
        let mut reversals: HashMap<Id, Reversal> = HashMap::new();
        self.each_change(grant, commit, |change| {
            if change.after.as_ref().is_some_and(is_purge_mark) {
                return Err(Error::PurgeMark(commit));
            }
            if change.after.as_ref().is_some_and(is_log_mark) {
                return Ok(());
            }
            let version = change.after.as_ref().map(|_| change.version);
            // Changes come newest first. A gap between two versions was written by another commit,
            // between two batches of this one.
            if let Some(newer) = reversals.get(&change.id)
                && newer.first_version != change.version + 1
            {
                return Err(newer.conflict(Some(newer.first_version - 1)));
            }
            let reversal = reversals
                .entry(change.id.clone())
                .or_insert_with(|| Reversal {
                    id: change.id,
                    seq: 0,
                    first_version: 0,
                    before: None,
                    before_known: false,
                    version,
                });
            reversal.seq = change.seq;
            reversal.first_version = change.version;
            reversal.before = change.before;
            reversal.before_known = change.before_known;
            Ok(())
        })
        .await?;
        if reversals.is_empty() {
            return Err(Error::NoCommit(commit));
        }
        let mut reversals: Vec<Reversal> = reversals.into_values().collect();
        reversals.sort_by_key(|one| one.seq);
        let is_lost = |one: &&Reversal| one.before.is_none() && !one.before_known;
        if let Some(lost) = reversals.iter().find(is_lost) {
            let id = lost.id.clone();
            return Err(Error::Lost { commit, id });
        }
        // What the commit both added and deleted is gone already.
        reversals.retain(|one| one.before.is_some() || one.version.is_some());
        Ok(reversals)
    }

    /// Tells every change of a commit, newest first.
    pub(crate) async fn each_change(
        &self,
        grant: &Grant,
        commit: u64,
        mut tell: impl FnMut(Change) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut page = Changes {
            commit: Some(commit),
            limit: grant.limits().changes,
            ..Changes::all_of_tenant(0)
        };
        loop {
            let changes = self.store.changes(grant, &page).await?;
            let is_last = changes.len() < page.limit;
            page.before = changes.last().map(|change| change.seq);
            changes.into_iter().try_for_each(&mut tell)?;
            if is_last {
                return Ok(());
            }
        }
    }

    /// The reversals that are left to do, and the number of the undo that has done the others.
    /// Refused if a record is neither as the commit left it nor as that undo did.
    async fn unreverted(
        &self,
        grant: &Grant,
        commit: u64,
        reversals: Vec<Reversal>,
    ) -> Result<(Vec<Reversal>, Option<u64>), Error> {
        let ids: Vec<Id> = reversals.iter().map(|one| one.id.clone()).collect();
        let mut versions: Vec<Option<u64>> = Vec::with_capacity(ids.len());
        for ids in ids.chunks(grant.limits().page) {
            let found = self.store.get(grant, ids).await?.into_iter();
            versions.extend(found.map(|record| record.map(|record| record.version)));
        }
        let mut earlier: Option<EarlierUndo> = None;
        let mut left = Vec::new();
        for (reversal, version) in reversals.into_iter().zip(versions) {
            if version == reversal.version {
                left.push(reversal);
                continue;
            }
            if earlier.is_none() {
                earlier = self.earlier_undo(grant, commit, &reversal.id).await?;
            }
            let undone = earlier
                .as_ref()
                .and_then(|undo| undo.left.get(&reversal.id));
            if undone != Some(&version) {
                return Err(reversal.conflict(version));
            }
        }
        Ok((left, earlier.map(|undo| undo.commit)))
    }

    /// The undo of this commit that was the last to change the record.
    async fn earlier_undo(
        &self,
        grant: &Grant,
        commit: u64,
        id: &Id,
    ) -> Result<Option<EarlierUndo>, Error> {
        let newest = Changes {
            id: Some(id.clone()),
            limit: 1,
            ..Changes::all_of_tenant(0)
        };
        let newest = self.store.changes(grant, &newest).await?;
        let Some(newest) = newest.first() else {
            return Ok(None);
        };
        let mut undo = EarlierUndo {
            commit: newest.commit,
            left: HashMap::new(),
        };
        let mut is_undo = false;
        self.each_change(grant, newest.commit, |change| {
            is_undo |= change.cause == Cause::Undone(commit);
            let version = change.after.map(|_| change.version);
            undo.left.entry(change.id).or_insert(version);
            Ok(())
        })
        .await?;
        Ok(is_undo.then_some(undo))
    }

    /// Operations on records that were derived since from those that the undo deletes. What was
    /// there before the commit, or goes back to what it was, keeps its sources.
    async fn follow_up(
        &self,
        ctx: &Ctx,
        commit: u64,
        reversals: &[Reversal],
    ) -> Result<Vec<Op>, Error> {
        let deletes = reversals.iter().filter(|one| one.before.is_none());
        let deleted: Vec<Id> = deletes.map(|one| one.id.clone()).collect();
        let reverted: HashSet<&Id> = reversals.iter().map(|one| &one.id).collect();
        let stays = |record: &Record| record.seq < commit || reverted.contains(&record.id);
        self.derived_since(ctx, deleted, &stays).await
    }
}

/// The operations that revert records: the newest go first, then the others come back in the order
/// in which they were once written.
fn operations(reversals: Vec<Reversal>) -> Vec<Op> {
    let (mut deletes, mut puts) = (Vec::new(), Vec::new());
    for reversal in reversals.into_iter().rev() {
        let expect = reversal.expect();
        let id = reversal.id;
        match reversal.before {
            Some(record) => puts.push((record.seq, Op::put_if(record, expect))),
            None => deletes.push(Op::Delete { id, expect }),
        }
    }
    puts.sort_by_key(|(seq, _)| *seq);
    deletes.extend(puts.into_iter().map(|(_, op)| op));
    deletes
}

/// An undo that was interrupted: its number, and the version of each record that it left.
struct EarlierUndo {
    commit: u64,
    left: HashMap<Id, Option<u64>>,
}
