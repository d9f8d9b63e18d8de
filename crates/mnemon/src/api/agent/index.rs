//! Make the entries of agents' and teams' files findable in the store.

use mnemon_core::Ctx;
use mnemon_engine::Memory;
use mnemon_engine::agentfiles::{AgentFiles, Indexed};
use serde::Deserialize;

use crate::Error;

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {}

pub type Response = Indexed;

pub async fn run(
    agents: &AgentFiles,
    memory: &Memory,
    ctx: &Ctx,
    request: Request,
) -> Result<Response, Error> {
    let Request {} = request;
    Ok(agents.index(ctx, memory).await?)
}
