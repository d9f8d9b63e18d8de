//! Move what is too long to the archive.

use mnemon_core::Ctx;
use mnemon_engine::agentfiles::{AgentFiles, Ended};
use serde::Deserialize;

use crate::Error;

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub agent: String,
}

pub type Response = Ended;

pub async fn run(agents: &AgentFiles, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    Ok(agents.archive(ctx, &request.agent).await?)
}
