//! Taking a commit back.

use std::collections::HashMap;

use mnemon_core::{Batch, Change, Changes, Ctx, Expect, Grant, Id, Op, Receipt, Right, limits};

use crate::{Error, Memory};

impl Memory {
    /// Takes a commit back: what it wrote goes, what it changed or deleted is as it was. Refused
    /// when a record was changed again since. Undoing the undo does it again.
    pub async fn undo(&self, ctx: &Ctx, commit: u64) -> Result<Receipt, Error> {
        let grant = self.policy.check(ctx, Right::Write)?;
        let changes = self.changes_of(&grant, commit).await?;
        if changes.is_empty() {
            return Err(Error::NoCommit(commit));
        }
        let mut batch = Batch::from(reversals(commit, changes)?);
        batch.undoes = Some(commit);
        Ok(self.store.apply(&grant, batch).await?)
    }

    /// The newest commit, or the newest one that touched this record.
    pub async fn last_commit(&self, ctx: &Ctx, id: Option<&Id>) -> Result<Option<u64>, Error> {
        let newest = Changes {
            id: id.cloned(),
            limit: 1,
            ..Changes::default()
        };
        let changes = self.history(ctx, &newest).await?;
        Ok(changes.first().map(|change| change.commit))
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
    let mut newest: HashMap<Id, (u64, bool)> = HashMap::new();
    for change in &changes {
        let there = (change.version, change.after.is_some());
        newest.entry(change.id.clone()).or_insert(there);
    }
    let mut ops: HashMap<Id, Op> = HashMap::new();
    let mut order: Vec<Id> = Vec::new();
    for change in changes {
        let Some((version, present)) = newest.get(&change.id).copied() else {
            continue;
        };
        let expect = if present {
            Expect::Version(version)
        } else {
            Expect::Absent
        };
        if !order.contains(&change.id) {
            order.push(change.id.clone());
        }
        let id = change.id.clone();
        let op = match change.before {
            Some(record) => Op::put_if(record, expect),
            None if change.before_known => Op::Delete { id, expect },
            None => return Err(Error::Lost { commit, id }),
        };
        ops.insert(change.id, op);
    }
    // The last one written was made from the earlier ones: take it back first.
    Ok(order.iter().filter_map(|id| ops.remove(id)).collect())
}
