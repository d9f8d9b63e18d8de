//! Records to be taken elsewhere, page by page: each in its canonical form, oldest first.

use mnemon_core::{Ctx, Filter, Order, limits};
use mnemon_engine::Memory;
use serde::Deserialize;

use super::list;
use crate::Error;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub filter: Filter,
    /// The `next` of the page before.
    #[serde(default)]
    pub after: Option<String>,
}

pub use list::Response;

/// In order of creation: a record that is changed while the export runs keeps its place, so that
/// it comes out once.
pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let page = list::Request {
        filter: request.filter,
        order: Order::Oldest,
        after: request.after,
        limit: limits::PAGE,
    };
    list::run(memory, ctx, page).await
}
