//! What an agent is told before it begins.

use mnemon_engine::agentfiles::{Activation, AgentFiles};
use serde::Deserialize;

use crate::Error;

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub agent: String,
    /// What it is to do: chooses the knowledge it is told.
    #[serde(default)]
    pub task: Option<String>,
}

pub type Response = Activation;

pub async fn run(agents: &AgentFiles, request: Request) -> Result<Response, Error> {
    Ok(agents
        .activate(&request.agent, request.task.as_deref())
        .await?)
}
