//! Find records again.

use mnemon_core::rank::Recipe;
use mnemon_core::{Ctx, Filter};
use mnemon_engine::{Hit, Memory, Query};
use serde::{Deserialize, Serialize};

use crate::Error;

/// How many records are found when nobody says.
pub const LIMIT: usize = 10;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// What to look for; may be empty for the recipe `recent` only.
    pub query: String,
    pub filter: Filter,
    pub recipe: Recipe,
    /// At most this many, and never more than [`mnemon_core::limits::HITS`].
    pub limit: usize,
    /// Leave out hits that score less, from 0 to 1; 0 shows all.
    pub min_score: Option<f64>,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            query: String::new(),
            filter: Filter::all_of_tenant(),
            recipe: Recipe::default(),
            limit: LIMIT,
            min_score: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    pub recipe: Recipe,
    /// The best first.
    pub hits: Vec<Hit>,
}

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let query = Query {
        explain: true,
        may_run_inline: true,
        recipe: request.recipe,
        limit: request.limit,
        min_score: request.min_score,
        ..Query::new(request.query, request.filter)
    };
    let hits = memory.search(ctx, &query).await?;
    Ok(Response {
        recipe: query.recipe,
        hits,
    })
}
