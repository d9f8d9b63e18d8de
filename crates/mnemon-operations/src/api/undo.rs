//! Take a commit back.

use mnemon_core::{Change, Changes, Ctx, Id, Receipt, limits};
use mnemon_engine::Memory;
use serde::{Deserialize, Serialize};

use crate::Error;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// The commit that was taken back.
    pub undone: u64,
    #[serde(flatten)]
    pub receipt: Receipt,
    /// What was put back: up to [`limits::CHANGES`] changes.
    pub changes: Vec<Change>,
}

/// Takes back this commit, or the newest one that touched the record, or else the newest of all that
/// do not merely bring the index of files up to date.
pub async fn run(
    memory: &Memory,
    ctx: &Ctx,
    commit: Option<u64>,
    record: Option<Id>,
) -> Result<Response, Error> {
    let records = memory.records();
    let commit = match commit {
        Some(commit) => Some(commit),
        None => records.last_commit(ctx, record.as_ref()).await?,
    };
    let undone = commit.ok_or(Error::NothingToUndo(record))?;
    let receipt = records.undo(ctx, undone).await?;
    let mine = Changes {
        commit: receipt.commit,
        ..Changes::all_of_tenant(limits::CHANGES)
    };
    let changes = match receipt.commit {
        Some(_) => records.history(ctx, &mine).await?,
        None => Vec::new(),
    };
    Ok(Response {
        undone,
        receipt,
        changes,
    })
}
