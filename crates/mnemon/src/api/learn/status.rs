//! How learning stands.

use mnemon_core::Ctx;
use mnemon_engine::Memory;
use mnemon_engine::learn::LearnStatus;

use crate::Error;

pub type Response = LearnStatus;

pub async fn run(memory: &Memory, ctx: &Ctx) -> Result<Response, Error> {
    Ok(memory.learning().status(ctx).await?)
}
