//! Make an agent.

use mnemon_core::Ctx;
use mnemon_engine::agentfiles::AgentFiles;
use serde::{Deserialize, Serialize};

use crate::Error;

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub agent: String,
    pub description: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Response {
    /// The files that were made.
    pub files: Vec<String>,
}

pub async fn run(agents: &AgentFiles, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let files = agents
        .begin(ctx, &request.agent, &request.description)
        .await?;
    Ok(Response { files })
}
