//! Add a pattern that was learnt.

use mnemon_core::Ctx;
use mnemon_engine::agentfiles::{AgentFiles, Learning};
use serde::{Deserialize, Serialize};

use crate::Error;

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub agent: String,
    pub learning: Learning,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Response {
    pub file: String,
}

pub async fn run(agents: &AgentFiles, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let file = agents.learn(ctx, &request.agent, &request.learning).await?;
    Ok(Response { file })
}
