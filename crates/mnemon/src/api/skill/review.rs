//! What a person says about a skill or a rule: approve, reject, retire, pin, unpin, edit.

use mnemon_core::{Ctx, Id};
use mnemon_engine::Memory;
use mnemon_engine::learn::{Lesson, Review};
use serde::Deserialize;

use crate::Error;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub id: Id,
    pub review: Review,
}

/// As it is now.
pub type Response = Lesson;

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let learning = memory.learning();
    learning.review(ctx, &request.id, request.review).await?;
    Ok(learning.lesson(ctx, &request.id).await?)
}
