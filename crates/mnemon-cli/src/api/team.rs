//! The blockers of a team.

use mnemon_core::{Ctx, Invalid};
use mnemon_engine::agentfiles::{AgentFiles, Blocker};
use serde::{Deserialize, Serialize};

use crate::Error;

/// A blocker that is gone, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resolved {
    pub id: String,
    pub resolution: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockRequest {
    pub team: String,
    /// A new blocker.
    #[serde(default)]
    pub blocker: Option<Blocker>,
    /// A blocker that is gone.
    #[serde(default)]
    pub resolved: Option<Resolved>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Blocked {
    pub id: String,
    pub resolved: bool,
}

/// Says what holds a team up, or that it does no longer.
pub async fn block(
    agents: &AgentFiles,
    ctx: &Ctx,
    request: &BlockRequest,
) -> Result<Blocked, Error> {
    let team = &request.team;
    let (id, resolved) = match (&request.blocker, &request.resolved) {
        (Some(blocker), _) => (agents.block(ctx, team, blocker).await?.id, false),
        (None, Some(Resolved { id, resolution })) => {
            (agents.unblock(ctx, team, id, resolution).await?, true)
        }
        (None, None) => {
            let what = "name a new one, or one that is resolved";
            return Err(Invalid::new("blocker", what).into());
        }
    };
    Ok(Blocked { id, resolved })
}
