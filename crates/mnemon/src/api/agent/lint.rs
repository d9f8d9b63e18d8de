//! What the best practices say against an agent's files.

use mnemon_core::Ctx;
use mnemon_engine::agentfiles::{AgentFiles, Warning};
use serde::{Deserialize, Serialize};

use crate::Error;

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub agent: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Response {
    pub warnings: Vec<Warning>,
}

pub async fn run(agents: &AgentFiles, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let warnings = agents.lint(ctx, &request.agent).await?;
    Ok(Response { warnings })
}
