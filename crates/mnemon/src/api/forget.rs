//! Forget records, by id or by what they are like.

use mnemon_core::{Ctx, Filter, Id, Invalid, Order, Receipt, limits};
use mnemon_engine::Memory;
use serde::{Deserialize, Serialize};

use super::list;
use crate::Error;

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// These records; or
    pub ids: Vec<Id>,
    /// those that the filter means. A filter that means everything is refused.
    pub filter: Option<Filter>,
    /// Erase them and their history for good, instead of keeping them for undo.
    pub purge: bool,
    /// Makes a retry harmless.
    pub key: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    #[serde(flatten)]
    pub receipt: Receipt,
    /// Whether the filter means more records than one commit may take; ask again for the rest.
    pub more: bool,
}

/// Everything goes in one commit, so that one undo brings it back.
pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let (ids, more) = match (request.ids, request.filter) {
        (ids, None) if !ids.is_empty() => (ids, false),
        (ids, Some(filter)) if ids.is_empty() && !filter.is_empty() => {
            select(memory, ctx, filter).await?
        }
        _ => {
            let what = "say which records are meant: either their ids, or what they are like";
            return Err(Invalid::new("ids", what).into());
        }
    };
    let key = request.key.as_deref();
    let receipt = if request.purge {
        memory.records().purge(ctx, &ids, key).await?
    } else {
        memory.records().forget(ctx, &ids, key).await?
    };
    Ok(Response { receipt, more })
}

/// As many as one commit may take, and whether there are more.
async fn select(memory: &Memory, ctx: &Ctx, filter: Filter) -> Result<(Vec<Id>, bool), Error> {
    let mut ids = Vec::new();
    let mut after = None;
    loop {
        let page = list::Request {
            filter: filter.clone(),
            order: Order::Newest,
            after,
            limit: limits::PAGE,
        };
        let page = list::run(memory, ctx, page).await?;
        ids.extend(page.records.into_iter().map(|record| record.id));
        after = page.next;
        if after.is_none() || ids.len() + limits::PAGE > limits::BATCH_OPS {
            return Ok((ids, after.is_some()));
        }
    }
}
