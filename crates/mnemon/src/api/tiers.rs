//! A session's frozen log, its hot lines and its pages.

use std::sync::Arc;

use mnemon_core::llm::Llm;
use mnemon_core::{Ctx, Invalid, limits};
use mnemon_engine::session::SessionId;
use mnemon_engine::tiers::{Excerpt, Said, Summariser, Tiers};
use serde::Serialize;

use crate::Error;

/// Excerpts that a query shows when nobody says.
pub const LIMIT: usize = 5;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Appended {
    /// Where in the log it stands.
    pub at: u64,
    /// Lines in view.
    pub hot: usize,
    /// Lines that left the view, and are found by a query from now on.
    pub pushed_out: usize,
}

/// Adds a line to the frozen log of a session.
pub async fn append(
    tiers: &Tiers,
    ctx: &Ctx,
    session: &SessionId,
    said: Said,
) -> Result<Appended, Error> {
    said.check()?;
    let mut hot = tiers.boot(ctx, session).await?.hot;
    let done = tiers.append(ctx, &mut hot, said).await?;
    let last = hot.newest(1);
    Ok(Appended {
        at: last.first().map_or(0, |line| line.offset),
        hot: hot.lines().count(),
        pushed_out: done.pushed_out,
    })
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Booted {
    /// In words, oldest first.
    pub lines: Vec<Line>,
    pub tokens: usize,
    /// Whether the older half is due to become a page.
    pub is_over: bool,
    /// How much of the log was read.
    pub bytes_read: u64,
    /// How many lines on the way are no lines.
    pub skipped: u64,
    /// Which they are, the last one first; at most a hundred are named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped_lines: Vec<Skipped>,
    /// Whether the search for valid lines was given up.
    pub gave_up: bool,
}

/// A line in view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    pub at: u64,
    pub text: String,
}

/// A line that is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Skipped {
    pub at: u64,
    pub why: String,
}

/// The hot lines of a session: the last valid ones of its log.
pub async fn boot(tiers: &Tiers, ctx: &Ctx, session: &SessionId) -> Result<Booted, Error> {
    let boot = tiers.boot(ctx, session).await?;
    let lines = boot.hot.lines().map(|line| Line {
        at: line.offset,
        text: line.line.text(),
    });
    let skipped = boot.skipped.into_iter().map(|line| Skipped {
        at: line.offset,
        why: line.what,
    });
    Ok(Booted {
        lines: lines.collect(),
        tokens: tiers.tokens(&boot.hot),
        is_over: tiers.is_over(&boot.hot),
        bytes_read: boot.bytes_read,
        skipped: boot.skipped_count,
        skipped_lines: skipped.collect(),
        gave_up: boot.gave_up,
    })
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Compressed {
    /// The page; none when the window is small enough.
    pub history: Option<String>,
    /// How many lines went into it.
    pub lines: usize,
    pub tokens_before: usize,
    pub tokens_after: usize,
    /// What the model is shown now: links, then lines.
    pub window: Vec<String>,
}

/// Makes a page of the older half of a session's window, if it is over its threshold.
pub async fn compress(
    tiers: &Tiers,
    llm: Option<Arc<dyn Llm>>,
    ctx: &Ctx,
    session: &SessionId,
) -> Result<Compressed, Error> {
    let mut hot = tiers.boot(ctx, session).await?.hot;
    let before = tiers.tokens(&hot);
    let summariser = Summariser::with(llm, ctx);
    let done = tiers.compress_if_needed(ctx, &mut hot, &summariser).await?;
    let (history, lines) = done.map_or((None, 0), |done| (Some(done.history), done.lines));
    Ok(Compressed {
        history,
        lines,
        tokens_before: before,
        tokens_after: tiers.tokens(&hot),
        window: hot.texts(),
    })
}

/// Asks what left the windows, the pages and all that is known, the best first: the tool
/// `query_memory`.
pub async fn query(
    tiers: &Tiers,
    ctx: &Ctx,
    query: &str,
    limit: usize,
) -> Result<Vec<Excerpt>, Error> {
    if query.trim().is_empty() {
        return Err(Invalid::new("query", "is empty; ask for something").into());
    }
    let most = limits::HITS;
    if !(1..=most).contains(&limit) {
        let what = format!("is {limit}, it must lie between 1 and {most}");
        return Err(Invalid::new("limit", what).into());
    }
    Ok(tiers.query_memory(ctx, query, limit).await?)
}
