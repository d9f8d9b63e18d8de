//! Excerpts from what left a session's window, from its library, and from all that is known.

use mnemon_core::Ctx;
use mnemon_engine::tiers::{Excerpt, Tiers};
use serde::{Deserialize, Serialize};

use crate::Error;

/// How many excerpts there are when nobody says.
pub const LIMIT: usize = 5;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub query: String,
    #[serde(default = "limit")]
    pub limit: usize,
}

fn limit() -> usize {
    LIMIT
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    /// The best first.
    pub excerpts: Vec<Excerpt>,
}

pub async fn run(tiers: &Tiers, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let excerpts = tiers
        .query_memory(ctx, &request.query, request.limit)
        .await?;
    Ok(Response { excerpts })
}
