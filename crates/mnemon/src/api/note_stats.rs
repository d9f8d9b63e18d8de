//! How many notes there are.

use mnemon_core::{Ctx, Viewer};
use mnemon_engine::Memory;
use mnemon_engine::notes::NoteCounts;
use serde::Deserialize;

use crate::Error;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Only notes that this viewer may see.
    pub viewer: Viewer,
}

pub type Response = NoteCounts;

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    Ok(memory.notes().stats(ctx, &request.viewer).await?)
}
