//! The housekeeping that is due.

use mnemon_core::{Ctx, Upkept};
use mnemon_engine::Memory;
use serde::Deserialize;

use crate::Error;

/// How many pieces of work one call does when nobody says.
pub const LIMIT: usize = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// At most this many records, versions and receipts are cleared away.
    pub limit: usize,
}

impl Default for Request {
    fn default() -> Self {
        Self { limit: LIMIT }
    }
}

/// What was done.
pub type Response = Upkept;

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    Ok(memory.upkeep(ctx, request.limit).await?)
}
