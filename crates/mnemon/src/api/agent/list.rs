//! The agents there are.

use mnemon_engine::agentfiles::{AgentFiles, AgentInfo};
use serde::{Deserialize, Serialize};

use crate::Error;

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Response {
    pub agents: Vec<AgentInfo>,
}

pub async fn run(agents: &AgentFiles, request: Request) -> Result<Response, Error> {
    let Request {} = request;
    let agents = agents.list().await?;
    Ok(Response { agents })
}
