//! Look records up by id.

use mnemon_core::{Ctx, Id, Record, Viewer};
use mnemon_engine::Memory;
use serde::{Deserialize, Serialize};

use crate::Error;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub ids: Vec<Id>,
    /// Only records that this viewer may see.
    pub viewer: Viewer,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    /// Those that are there, in the order asked.
    pub records: Vec<Record>,
    /// Those that are not.
    pub missing: Vec<Id>,
}

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let (viewer, ids) = (&request.viewer, &request.ids);
    let found = memory.records().get_seen_by(ctx, viewer, ids).await?;
    let missing = request
        .ids
        .into_iter()
        .zip(&found)
        .filter(|(_, record)| record.is_none())
        .map(|(id, _)| id);
    Ok(Response {
        missing: missing.collect(),
        records: found.into_iter().flatten().collect(),
    })
}
