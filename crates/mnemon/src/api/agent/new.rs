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
    /// What else there is to know, in sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

pub async fn run(agents: &AgentFiles, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let notices = agents.left_out(&request.description);
    let files = agents
        .begin(ctx, &request.agent, &request.description)
        .await?;
    Ok(Response { files, notices })
}
