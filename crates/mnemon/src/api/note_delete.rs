//! Forget one note.

use mnemon_core::{Ctx, Id};
use mnemon_engine::Memory;
use serde::{Deserialize, Serialize};

use crate::Error;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub id: Id,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    /// Whether there was such a note.
    pub deleted: bool,
    pub id: Id,
}

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    Ok(Response {
        deleted: memory.notes().delete(ctx, &request.id).await?,
        id: request.id,
    })
}
