//! Log a decision.

use mnemon_core::Ctx;
use mnemon_engine::agentfiles::{AgentFiles, Decision};
use serde::{Deserialize, Serialize};

use crate::Error;

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub agent: String,
    pub decision: Decision,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Response {
    pub file: String,
}

pub async fn run(agents: &AgentFiles, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let file = agents
        .decide(ctx, &request.agent, &request.decision)
        .await?;
    Ok(Response { file })
}
