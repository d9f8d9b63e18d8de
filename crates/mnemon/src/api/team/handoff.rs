//! Give work to another member.

use mnemon_core::Ctx;
use mnemon_engine::agentfiles::{AgentFiles, Handoff, HandoffInfo};
use serde::Deserialize;

use crate::Error;

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub team: String,
    pub handoff: Handoff,
}

pub type Response = HandoffInfo;

pub async fn run(agents: &AgentFiles, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    Ok(agents
        .hand_off(ctx, &request.team, &request.handoff)
        .await?)
}
