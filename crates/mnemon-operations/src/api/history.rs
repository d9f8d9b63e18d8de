//! Who changed what when, before and after.

use mnemon_core::{Change, Changes, Ctx, limits};
use mnemon_engine::Memory;
use serde::{Deserialize, Serialize};

use crate::Error;

/// How many changes a page has when nobody says.
pub const LIMIT: usize = 20;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// Newest first.
    pub changes: Vec<Change>,
    /// Where the next page begins; absent when this is the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// A page of changes, always fewer than [`limits::CHANGES`].
pub async fn run(memory: &Memory, ctx: &Ctx, asked: Changes) -> Result<Response, Error> {
    let limit = asked.limit.clamp(1, limits::CHANGES - 1);
    let one_more = Changes {
        limit: limit + 1,
        ..asked
    };
    let mut changes = memory.records().history(ctx, &one_more).await?;
    let more = changes.len() > limit;
    changes.truncate(limit);
    let next = changes.last().filter(|_| more).map(|last| last.seq);
    Ok(Response { changes, next })
}
