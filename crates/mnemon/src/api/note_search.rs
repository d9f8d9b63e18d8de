//! Find notes: the one with an id, or those that answer best.

use mnemon_core::Ctx;
use mnemon_core::rank::Recipe;
use mnemon_engine::Memory;
use mnemon_engine::notes::{FoundNotes, NoteFilter, NoteQuery};
use serde::Deserialize;

use crate::Error;

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// An id, or what to look for.
    pub query: String,
    pub filter: NoteFilter,
    /// At most this many, and never more than [`mnemon_core::limits::NOTE_HITS`]; unset or 0 is
    /// what the configuration says.
    pub limit: Option<usize>,
    /// What scores less is left out; unset or 0 is what the configuration says.
    pub min_score: Option<f64>,
    pub recipe: Option<Recipe>,
    /// Whether to show the beginning of each content; unset is what the configuration says.
    pub include_content: Option<bool>,
}

/// Ids, summaries and what describes the notes.
pub type Response = FoundNotes;

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
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
