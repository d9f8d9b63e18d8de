//! A page of records.

use mnemon_core::{Ctx, Cursor, Kind, Record, Scan};
use mnemon_engine::Memory;
use serde::{Deserialize, Serialize};

use crate::Error;

/// How many records a page has when nobody says.
pub const LIMIT: usize = 50;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Response {
    pub records: Vec<Record>,
    /// Where the next page begins; absent when this is the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Cursor>,
}

/// Without kinds in its filter: all but the records that only hold a state of ours, which have no
/// words.
pub async fn run(memory: &Memory, ctx: &Ctx, mut scan: Scan) -> Result<Response, Error> {
    if scan.filter.kinds.is_empty() {
        let kinds = Kind::ALL.iter().copied();
        scan.filter.kinds = kinds.filter(|kind| *kind != Kind::Session).collect();
    }
    let page = memory.records().list(ctx, &scan).await?;
    Ok(Response {
        records: page.records,
        next: page.next,
    })
}
