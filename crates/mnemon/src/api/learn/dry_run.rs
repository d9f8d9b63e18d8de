//! What would be learnt; nothing is written.

use mnemon_core::Ctx;
use mnemon_engine::Memory;
use mnemon_engine::learn::LearnReport;
use serde::Deserialize;

use crate::Error;

/// How many steps are read when nobody says.
pub const LIMIT: usize = 100_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// At most this many steps are read.
    pub limit: usize,
}

impl Default for Request {
    fn default() -> Self {
        Self { limit: LIMIT }
    }
}

pub type Response = LearnReport;

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    Ok(memory.learning().dry_run(ctx, request.limit).await?)
}
