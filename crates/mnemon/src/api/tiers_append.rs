//! Add a line to the frozen log of a session.

use mnemon_core::Ctx;
use mnemon_engine::session::SessionId;
use mnemon_engine::tiers::{Said, Tiers};
use serde::{Deserialize, Serialize};

use crate::Error;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub session: SessionId,
    pub said: Said,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    /// Where in the log it stands.
    pub at: u64,
    /// Lines in view.
    pub hot: usize,
    /// Lines that left the view, and are found by a query from now on.
    pub pushed_out: usize,
}

pub async fn run(tiers: &Tiers, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    request.said.check()?;
    let mut hot = tiers.boot(ctx, &request.session).await?.hot;
    let done = tiers.append(ctx, &mut hot, request.said).await?;
    let last = hot.newest(1);
    Ok(Response {
        at: last.first().map_or(0, |line| line.offset),
        hot: hot.lines().count(),
        pushed_out: done.pushed_out,
    })
}
