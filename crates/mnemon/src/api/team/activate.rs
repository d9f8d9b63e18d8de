//! What a member is told before it begins.

use mnemon_engine::agentfiles::{Activation, AgentFiles};
use serde::Deserialize;

use crate::Error;

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub team: String,
    pub member: String,
}

pub type Response = Activation;

pub async fn run(agents: &AgentFiles, request: Request) -> Result<Response, Error> {
    Ok(agents
        .activate_member(&request.team, &request.member)
        .await?)
}
