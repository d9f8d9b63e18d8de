//! Learn from what was tried since the last time: a bounded slice.

use mnemon_core::{Ctx, limits};
use mnemon_engine::Memory;
use mnemon_engine::learn::LearnReport;
use serde::Deserialize;

use crate::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// At most this many steps are read.
    pub limit: usize,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            limit: limits::LEARN_SLICE,
        }
    }
}

pub type Response = LearnReport;

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    Ok(memory.learning().slice(ctx, request.limit).await?)
}
