//! The end of a session, all files or none.

use mnemon_core::Ctx;
use mnemon_engine::agentfiles::{AgentFiles, Ended, SessionEnd};
use serde::Deserialize;

use crate::Error;

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub agent: String,
    pub session: SessionEnd,
}

pub type Response = Ended;

pub async fn run(agents: &AgentFiles, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    Ok(agents.end(ctx, &request.agent, &request.session).await?)
}
