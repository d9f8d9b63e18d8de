//! The hot lines of a session: the last valid ones of its log.

use mnemon_core::Ctx;
use mnemon_engine::session::SessionId;
use mnemon_engine::tiers::Tiers;
use serde::{Deserialize, Serialize};

use crate::Error;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub session: SessionId,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Response {
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

pub async fn run(tiers: &Tiers, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let boot = tiers.boot(ctx, &request.session).await?;
    let lines = boot.hot.lines().map(|line| Line {
        at: line.offset,
        text: line.line.text(),
    });
    let skipped = boot.skipped.into_iter().map(|line| Skipped {
        at: line.offset,
        why: line.what,
    });
    Ok(Response {
        lines: lines.collect(),
        tokens: tiers.tokens(&boot.hot),
        is_over: tiers.is_over(&boot.hot),
        bytes_read: boot.bytes_read,
        skipped: boot.skipped_count,
        skipped_lines: skipped.collect(),
        gave_up: boot.gave_up,
    })
}
