//! Which requirements a folder of agents meets.

use mnemon_core::Ctx;
use mnemon_engine::agentfiles::{AgentFiles, Requirement};
use serde::{Deserialize, Serialize};

use crate::Error;

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Response {
    pub requirements: Vec<Requirement>,
}

pub async fn run(agents: &AgentFiles, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let Request {} = request;
    let requirements = agents.compliance(ctx).await?;
    Ok(Response { requirements })
}
