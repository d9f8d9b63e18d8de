//! Forget one note.

use mnemon_core::{Ctx, Id, Viewer};
use mnemon_engine::Memory;
use serde::{Deserialize, Serialize};

use crate::Error;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub id: Id,
    /// Who forgets it; a note that they may not see is not there.
    pub viewer: Viewer,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    /// Whether there was such a note.
    pub deleted: bool,
    pub id: Id,
}

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    Ok(Response {
        deleted: memory
            .notes()
            .delete(ctx, &request.viewer, &request.id)
            .await?,
        id: request.id,
    })
}
