//! What a node needs to know before it runs.

use mnemon_core::Ctx;
use mnemon_engine::{Memory, MemoryItem, MemoryQuery};
use serde::Serialize;

use crate::Error;

pub type Request = MemoryQuery;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    /// One for each scope, in the order asked: what it says, why it is left out, or its error.
    pub items: Vec<MemoryItem>,
}

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let items = memory.read(ctx, &request).await?;
    Ok(Response { items })
}
