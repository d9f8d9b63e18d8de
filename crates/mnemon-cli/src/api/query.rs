//! Passages from everything that a viewer may see.

use mnemon_core::{Ctx, Invalid, Viewer, limits};
use mnemon_engine::{Memory, Passage, PassageQuery};

use crate::Error;

/// Passages that a query shows when nobody says.
pub const LIMIT: usize = 5;

#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub viewer: Viewer,
    pub text: String,
    pub limit: usize,
    /// The project that is asked about, as the store knows it; without one, all of them.
    pub project: Option<String>,
}

/// Searches conversations, summaries, pages and knowledge; the best passages first. `pages` are
/// those of a project that are not in the store. Nothing is written.
pub async fn run(
    memory: &Memory,
    ctx: &Ctx,
    request: &Request,
    pages: Option<&Memory>,
) -> Result<Vec<Passage>, Error> {
    if request.text.trim().is_empty() {
        return Err(Invalid::new("query", "is empty; write at least one word").into());
    }
    let most = limits::HITS;
    if !(1..=most).contains(&request.limit) {
        let what = format!("is {}, it must be from 1 to {most}", request.limit);
        return Err(Invalid::new("limit", what).into());
    }
    let query = PassageQuery {
        viewer: &request.viewer,
        text: &request.text,
        limit: request.limit,
        pages,
        project: request.project.as_deref(),
    };
    Ok(memory.passages(ctx, &query).await?)
}
