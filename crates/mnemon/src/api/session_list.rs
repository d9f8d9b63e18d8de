//! The saved sessions.

use mnemon_core::{Ctx, Limits};
use mnemon_engine::session::{SessionId, SessionInfo, Sessions};
use serde::Serialize;

use crate::Error;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Response {
    /// By name.
    pub sessions: Vec<SessionInfo>,
    /// Names that look like sessions but cannot be read, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
}

pub async fn run(place: &dyn Sessions, ctx: &Ctx) -> Result<Response, Error> {
    let mut response = Response {
        sessions: Vec::new(),
        unreadable: Vec::new(),
    };
    let names = place.list(ctx).await?;
    if names.len() == Limits::DEFAULT.sessions {
        let most = Limits::DEFAULT.sessions;
        ctx.notices
            .add(format!("The list ends after {most} sessions."));
    }
    for name in names {
        let Ok(id) = name.parse::<SessionId>() else {
            continue;
        };
        match place.info(ctx, &id).await {
            Ok(info) => response.sessions.extend(info),
            Err(error) => response.unreadable.push(error.to_string()),
        }
    }
    Ok(response)
}

/// How much there is of a session that must be there.
pub(super) async fn info(
    place: &dyn Sessions,
    ctx: &Ctx,
    id: &SessionId,
) -> Result<SessionInfo, Error> {
    let found = place.info(ctx, id).await?;
    found.ok_or_else(|| mnemon_engine::Error::NoSession(id.to_string()).into())
}
