//! How many notes there are.

use mnemon_core::Ctx;
use mnemon_engine::Memory;
use mnemon_engine::notes::NoteCounts;
use serde::Deserialize;

use crate::Error;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {}

pub type Response = NoteCounts;

pub async fn run(memory: &Memory, ctx: &Ctx, _request: Request) -> Result<Response, Error> {
    Ok(memory.notes().stats(ctx).await?)
}
