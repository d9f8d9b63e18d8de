//! Bring in records that were exported.

use mnemon_core::{Ctx, Receipt, Record};
use mnemon_engine::{Memory, OnConflict};
use serde::Deserialize;

use crate::Error;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Written all or none, under their own ids, into the caller's tenant.
    pub records: Vec<Record>,
    #[serde(default)]
    pub on_conflict: OnConflict,
}

/// The fate of each record, in order. One that was already there unchanged is a duplicate.
pub type Response = Receipt;

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let (records, on_conflict) = (request.records, request.on_conflict);
    Ok(memory.records().import(ctx, records, on_conflict).await?)
}
