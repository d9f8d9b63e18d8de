//! Find notes: the one with an id, or those that answer best.

use mnemon_core::rank::Recipe;
use mnemon_core::{Ctx, Invalid, limits};
use mnemon_engine::Memory;
use mnemon_engine::notes::{FoundNotes, NoteFilter, NoteQuery};
use serde::Deserialize;

use crate::Error;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// An id, or what to look for.
    pub query: String,
    pub filter: NoteFilter,
    /// At most this many, from 1 to [`limits::NOTE_HITS`]; unset is what the configuration says.
    pub limit: Option<usize>,
    /// What scores less is left out; unset or 0 is what the configuration says.
    pub min_score: Option<f64>,
    pub recipe: Option<Recipe>,
    /// Whether to show the beginning of each content; unset is what the configuration says.
    pub include_content: Option<bool>,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            query: String::new(),
            filter: NoteFilter::all_of_tenant(),
            limit: None,
            min_score: None,
            recipe: None,
            include_content: None,
        }
    }
}

/// Ids, summaries and what describes the notes.
pub type Response = FoundNotes;

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let most = limits::NOTE_HITS;
    if let Some(limit) = request.limit.filter(|limit| !(1..=most).contains(limit)) {
        let what = format!("is {limit}; from 1 to {most} is allowed");
        return Err(Invalid::new("limit", what).into());
    }
    let query = NoteQuery {
        text: request.query,
        filter: request.filter,
        limit: request.limit,
        min_score: request.min_score,
        recipe: request.recipe,
        include_content: request.include_content,
    };
    Ok(memory.notes().search(ctx, &query).await?)
}
