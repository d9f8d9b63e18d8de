//! The teams there are.

use mnemon_engine::agentfiles::{AgentFiles, TeamInfo};
use serde::{Deserialize, Serialize};

use crate::Error;

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Response {
    pub teams: Vec<TeamInfo>,
}

pub async fn run(agents: &AgentFiles, request: Request) -> Result<Response, Error> {
    let Request {} = request;
    let teams = agents.teams().await?;
    Ok(Response { teams })
}
