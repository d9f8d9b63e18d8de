//! A page of records.

use mnemon_core::{Ctx, Filter, Kind, Order, Record, Scan};
use mnemon_engine::Memory;
use serde::{Deserialize, Serialize};

use crate::Error;

/// How many records a page has when nobody says.
pub const LIMIT: usize = 50;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Without kinds: all but the records that only hold a state of ours, which have no words.
    pub filter: Filter,
    pub order: Order,
    /// The `next` of the page before.
    pub after: Option<String>,
    /// At most this many, and never more than [`mnemon_core::limits::PAGE`].
    pub limit: usize,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            filter: Filter::all_of_tenant(),
            order: Order::default(),
            after: None,
            limit: LIMIT,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    pub records: Vec<Record>,
    /// Where the next page begins; absent when this is the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let after = request.after.map(|text| text.parse()).transpose()?;
    let mut filter = request.filter;
    if filter.kinds.is_empty() {
        let kinds = Kind::ALL.iter().copied();
        filter.kinds = kinds.filter(|kind| *kind != Kind::Session).collect();
    }
    let scan = Scan {
        order: request.order,
        after,
        ..Scan::new(filter, request.limit)
    };
    let page = memory.records().list(ctx, &scan).await?;
    Ok(Response {
        records: page.records,
        next: page.next.map(|cursor| cursor.to_string()),
    })
}
