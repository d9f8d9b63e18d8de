//! Taking a commit back.

use std::collections::HashMap;

use mnemon_core::{Batch, Change, Changes, Ctx, Expect, Grant, Id, Op, Receipt, Right, limits};

use crate::session_marks::is_purge_mark;
use crate::{Error, Records};

/// Who acts, for the history, where records are made from files on the side.
const INDEX_ACTOR: &str = "mnemon:index";

/// The same call, made on the side to bring an index of files up to date.
pub(crate) fn as_index(ctx: &Ctx) -> Ctx {
    Ctx {
        actor: INDEX_ACTOR.to_owned(),
        ..ctx.clone()
    }
}

impl Records {
    /// Takes a commit back: what it wrote goes, what it changed or deleted is as it was. Refused
    /// when a record was changed again since. Undoing the undo does it again.
    pub async fn undo(&self, ctx: &Ctx, commit: u64) -> Result<Receipt, Error> {
        let grant = self.policy.check(ctx, Right::Write)?;
        let changes = self.changes_of(&grant, commit).await?;
        if changes.is_empty() {
            return Err(Error::NoCommit(commit));
        }
        if changes
            .iter()
            .filter_map(|c| c.after.as_ref())
            .any(is_purge_mark)
        {
            return Err(Error::PurgeMark(commit));
        }
        let mut batch = Batch::from(reversals(commit, changes)?);
        batch.undoes = Some(commit);
        self.apply(ctx, &grant, batch).await
    }

    /// The newest commit that touched this record. Without one the newest commit of a caller:
    /// commits that only bring the index of files up to date are skipped, since nobody asked for
    /// them and the next search makes them again.
    pub async fn last_commit(&self, ctx: &Ctx, id: Option<&Id>) -> Result<Option<u64>, Error> {
        let mut page = Changes {
            id: id.cloned(),
            limit: 1,
            ..Changes::default()
        };
        loop {
            let changes = self.history(ctx, &page).await?;
            let meant = |change: &&Change| id.is_some() || change.actor != INDEX_ACTOR;
            if let Some(change) = changes.iter().find(meant) {
                return Ok(Some(change.commit));
            }
            if changes.len() < page.limit {
                return Ok(None);
            }
            page.before = changes.last().map(|change| change.seq);
            page.limit = limits::CHANGES;
        }
    }

    async fn changes_of(&self, grant: &Grant, commit: u64) -> Result<Vec<Change>, Error> {
        let mut all: Vec<Change> = Vec::new();
        loop {
            let page = Changes {
                commit: Some(commit),
                before: all.last().map(|change| change.seq),
                limit: limits::CHANGES,
                ..Changes::default()
            };
            let page = self.store.changes(grant, &page).await?;
            let last = page.len() < limits::CHANGES;
            all.extend(page);
            if last {
                return Ok(all);
            }
        }
    }
}

/// What puts every record of a commit back to what it was before. `changes` come newest first; a
/// record changed twice in one commit goes back to what it was before the first of them.
fn reversals(commit: u64, changes: Vec<Change>) -> Result<Vec<Op>, Error> {
    let mut newest: HashMap<Id, Expect> = HashMap::new();
    let mut oldest: HashMap<Id, Change> = HashMap::new();
    for change in changes {
        let there = match change.after {
            Some(_) => Expect::Version(change.version),
            None => Expect::Absent,
        };
        newest.entry(change.id.clone()).or_insert(there);
        oldest.insert(change.id.clone(), change);
    }
    let mut ordered: Vec<Change> = oldest.into_values().collect();
    ordered.sort_by_key(|change| change.seq);
    let (mut puts, mut deletes) = (Vec::new(), Vec::new());
    for change in ordered {
        let id = change.id;
        let expect = newest.get(&id).copied().unwrap_or_default();
        match change.before {
            Some(record) => puts.push((record.seq, Op::put_if(record, expect))),
            None if change.before_known => deletes.push(Op::Delete { id, expect }),
            None => return Err(Error::Lost { commit, id }),
        }
    }
    // The last one written may have been made from earlier ones: it goes first, so that it is not
    // taken along. What comes back is written in the order it once was.
    deletes.reverse();
    puts.sort_by_key(|(seq, _)| *seq);
    deletes.extend(puts.into_iter().map(|(_, op)| op));
    Ok(deletes)
}
