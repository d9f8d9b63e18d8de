//! Look records up by id.

use mnemon_core::{Ctx, Id, Record, Viewer};
use mnemon_engine::Memory;
use serde::{Deserialize, Serialize};

use crate::Error;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// Those that are there, in the order asked.
    pub records: Vec<Record>,
    /// Those that are not.
    pub missing: Vec<Id>,
}

/// Only records that this viewer may see.
pub async fn run(
    memory: &Memory,
    ctx: &Ctx,
    viewer: &Viewer,
    ids: Vec<Id>,
) -> Result<Response, Error> {
    let found = memory.records().get_seen_by(ctx, viewer, &ids).await?;
    let missing = ids
        .into_iter()
        .zip(&found)
        .filter(|(_, record)| record.is_none())
        .map(|(id, _)| id);
    Ok(Response {
        missing: missing.collect(),
        records: found.into_iter().flatten().collect(),
    })
}
