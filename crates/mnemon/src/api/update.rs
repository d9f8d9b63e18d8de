//! Replace a record by a changed version of itself.

use mnemon_core::{Ctx, Receipt, Record};
use mnemon_engine::Memory;
use serde::Deserialize;

use crate::Error;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The record as `get` gave it, with the changes made. Its version must still be the newest.
    pub record: Record,
}

/// The fate of the record.
pub type Response = Receipt;

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    Ok(memory.records().update(ctx, request.record).await?)
}
