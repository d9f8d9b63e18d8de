//! Who changed what when, before and after.

use mnemon_core::{Change, Changes, Ctx, Id, Viewer, limits};
use mnemon_engine::Memory;
use serde::{Deserialize, Serialize};

use crate::Error;

/// How many changes a page has when nobody says.
pub const LIMIT: usize = 20;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Only changes that this viewer may see.
    pub viewer: Viewer,
    /// Only changes of this record.
    pub id: Option<Id>,
    /// Only changes of this commit.
    pub commit: Option<u64>,
    /// The `next` of the page before.
    pub before: Option<u64>,
    /// At most this many, and always fewer than [`limits::CHANGES`].
    pub limit: usize,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            viewer: Viewer::Tenant,
            id: None,
            commit: None,
            before: None,
            limit: LIMIT,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    /// Newest first.
    pub changes: Vec<Change>,
    /// Where the next page begins; absent when this is the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let limit = request.limit.clamp(1, limits::CHANGES - 1);
    let one_more = Changes {
        viewer: request.viewer,
        id: request.id,
        commit: request.commit,
        before: request.before,
        limit: limit + 1,
    };
    let mut changes = memory.records().history(ctx, &one_more).await?;
    let more = changes.len() > limit;
    changes.truncate(limit);
    let next = changes.last().filter(|_| more).map(|last| last.seq);
    Ok(Response { changes, next })
}
