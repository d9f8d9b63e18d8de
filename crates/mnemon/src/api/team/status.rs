//! How a team stands.

use mnemon_core::Ctx;
use mnemon_engine::agentfiles::{AgentFiles, TeamStatus};
use serde::Deserialize;

use crate::Error;

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub team: String,
}

pub type Response = TeamStatus;

pub async fn run(agents: &AgentFiles, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    Ok(agents.team_status(ctx, &request.team).await?)
}
