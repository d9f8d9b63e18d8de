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
    /// What else there is to know, in sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

pub async fn run(agents: &AgentFiles, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let mut notices = agents.left_out(&request.learning);
    notices.extend(agents.newcomer(&request.agent).await?);
    let file = agents.learn(ctx, &request.agent, &request.learning).await?;
    Ok(Response { file, notices })
}
