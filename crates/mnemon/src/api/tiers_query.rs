//! Ask what left the windows, the pages and all that is known: the tool `query_memory`.

use mnemon_core::{Ctx, Invalid, limits};
use mnemon_engine::tiers::{Excerpt, Tiers};
use serde::{Deserialize, Serialize};

use crate::Error;

/// Excerpts that are shown when nobody says.
pub const LIMIT: usize = 5;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
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
    if request.query.trim().is_empty() {
        return Err(Invalid::new("query", "is empty; ask for something").into());
    }
    let (limit, most) = (request.limit, limits::HITS);
    if !(1..=most).contains(&limit) {
        let what = format!("is {limit}, it must lie between 1 and {most}");
        return Err(Invalid::new("limit", what).into());
    }
    Ok(Response {
        excerpts: tiers.query_memory(ctx, &request.query, limit).await?,
    })
}
