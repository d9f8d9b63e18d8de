//! Make a page of the older half of a session's window, if it is over its threshold.

use std::sync::Arc;

use mnemon_core::Ctx;
use mnemon_core::llm::Llm;
use mnemon_engine::session::SessionId;
use mnemon_engine::tiers::{Summariser, Tiers};
use serde::{Deserialize, Serialize};

use crate::Error;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub session: SessionId,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Response {
    /// The page; none when the window is small enough.
    pub history: Option<String>,
    /// How many lines went into it.
    pub lines: usize,
    pub tokens_before: usize,
    pub tokens_after: usize,
    /// What the model is shown now: links, then lines.
    pub window: Vec<String>,
}

pub async fn run(
    tiers: &Tiers,
    llm: Option<Arc<dyn Llm>>,
    ctx: &Ctx,
    request: Request,
) -> Result<Response, Error> {
    let mut hot = tiers.boot(ctx, &request.session).await?.hot;
    let before = tiers.tokens(&hot);
    let summariser = Summariser::with(llm, ctx);
    let done = tiers.compress_if_needed(ctx, &mut hot, &summariser).await?;
    let (history, lines) = done.map_or((None, 0), |done| (Some(done.history), done.lines));
    Ok(Response {
        history,
        lines,
        tokens_before: before,
        tokens_after: tiers.tokens(&hot),
        window: hot.texts(),
    })
}
