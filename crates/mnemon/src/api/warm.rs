//! Read what searches need before somebody searches.

use mnemon_core::Ctx;
use mnemon_engine::Memory;
use serde::{Deserialize, Serialize};

use crate::Error;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Response {}

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let Request {} = request;
    memory.records().warm(ctx).await?;
    Ok(Response {})
}
