//! Say what holds a team up, or that it does no longer.

use mnemon_core::Ctx;
use mnemon_engine::agentfiles::{AgentFiles, Blocker};
use serde::{Deserialize, Serialize};

use crate::Error;

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub team: String,
    /// A new blocker.
    #[serde(default)]
    pub blocker: Option<Blocker>,
    /// A blocker that is gone.
    #[serde(default)]
    pub resolved: Option<Resolved>,
}

/// A blocker that is gone, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resolved {
    pub id: String,
    pub resolution: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Response {
    pub id: String,
    pub resolved: bool,
}

pub async fn run(agents: &AgentFiles, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    if let Some(blocker) = &request.blocker {
        let id = agents.block(ctx, &request.team, blocker).await?.id;
        return Ok(Response {
            id,
            resolved: false,
        });
    }
    let Some(gone) = &request.resolved else {
        let what = "name a new one, or one that is resolved";
        return Err(mnemon_core::Invalid::new("blocker", what).into());
    };
    let id = agents
        .unblock(ctx, &request.team, &gone.id, &gone.resolution)
        .await?;
    Ok(Response { id, resolved: true })
}
