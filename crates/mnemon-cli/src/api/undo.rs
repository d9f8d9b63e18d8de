//! Take a commit back.

use mnemon_core::{Change, Changes, Ctx, Id, Receipt, limits};
use mnemon_engine::Memory;
use serde::{Deserialize, Serialize};

use crate::Error;

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// This commit; otherwise
    pub commit: Option<u64>,
    /// the newest one that touched this record; otherwise the newest of all that do not merely
    /// bring the index of files up to date.
    pub record: Option<Id>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    /// The commit that was taken back.
    pub undone: u64,
    #[serde(flatten)]
    pub receipt: Receipt,
    /// What was put back: up to [`limits::CHANGES`] changes.
    pub changes: Vec<Change>,
}

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let commit = match request.commit {
        Some(commit) => Some(commit),
        None => {
            memory
                .records()
                .last_commit(ctx, request.record.as_ref())
                .await?
        }
    };
    let Some(undone) = commit else {
        return Err(Error::NothingToUndo(request.record));
    };
    let receipt = memory.records().undo(ctx, undone).await?;
    let mine = Changes {
        commit: receipt.commit,
        ..Changes::all_of_tenant(limits::CHANGES)
    };
    let changes = match receipt.commit {
        Some(_) => memory.records().history(ctx, &mine).await?,
        None => Vec::new(),
    };
    Ok(Response {
        undone,
        receipt,
        changes,
    })
}
