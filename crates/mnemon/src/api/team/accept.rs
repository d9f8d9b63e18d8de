//! Take on work that waits.

use mnemon_engine::agentfiles::{AgentFiles, HandoffInfo};
use serde::Deserialize;

use crate::Error;

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub team: String,
    pub member: String,
    /// A part of the heading or the task, where several wait.
    #[serde(default)]
    pub which: Option<String>,
}

pub type Response = HandoffInfo;

pub async fn run(agents: &AgentFiles, request: Request) -> Result<Response, Error> {
    let Request {
        team,
        member,
        which,
    } = request;
    Ok(agents.accept(&team, &member, which.as_deref()).await?)
}
