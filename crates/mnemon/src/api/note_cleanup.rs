//! Erase what has expired.

use mnemon_core::Ctx;
use mnemon_engine::Memory;
use mnemon_engine::notes::Cleaned;
use serde::Deserialize;

use crate::Error;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {}

pub type Response = Cleaned;

pub async fn run(memory: &Memory, ctx: &Ctx, _request: Request) -> Result<Response, Error> {
    Ok(memory.notes().cleanup(ctx).await?)
}
