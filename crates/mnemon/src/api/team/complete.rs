//! Say that work is done.

use mnemon_core::Ctx;
use mnemon_engine::agentfiles::{AgentFiles, HandoffInfo};
use serde::Deserialize;

use crate::Error;

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub team: String,
    pub member: String,
    /// A part of the heading or the task, where several are open.
    #[serde(default)]
    pub which: Option<String>,
    /// What came of it.
    #[serde(default)]
    pub result: Option<String>,
}

pub type Response = HandoffInfo;

pub async fn run(agents: &AgentFiles, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let (which, result) = (request.which.as_deref(), request.result.as_deref());
    Ok(agents
        .complete(ctx, &request.team, &request.member, which, result)
        .await?)
}
