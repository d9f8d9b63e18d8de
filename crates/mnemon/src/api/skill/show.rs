//! One skill or rule, with all that it rests on.

use mnemon_core::{Ctx, Id};
use mnemon_engine::Memory;
use mnemon_engine::learn::Lesson;
use serde::Deserialize;

use crate::Error;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub id: Id,
}

pub type Response = Lesson;

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    Ok(memory.learning().lesson(ctx, &request.id).await?)
}
