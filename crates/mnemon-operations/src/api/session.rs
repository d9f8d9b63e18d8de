//! The saved states of sessions.

use mnemon_core::{Ctx, Invalid, Limits};
use mnemon_engine::session::{self, SessionId, SessionInfo, SessionState, Sessions};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Error;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// By name.
    pub sessions: Vec<SessionInfo>,
    /// Names that look like sessions but cannot be read, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
}

/// The saved sessions.
pub async fn list(states: &dyn Sessions, ctx: &Ctx) -> Result<Listed, Error> {
    let mut listed = Listed::default();
    let names = states.list(ctx).await?;
    let most = Limits::DEFAULT.sessions;
    if names.len() == most {
        ctx.notices
            .add(format!("The list ends after {most} sessions."));
    }
    for name in names {
        let Ok(id) = name.parse::<SessionId>() else {
            continue;
        };
        match states.info(ctx, &id).await {
            Ok(info) => listed.sessions.extend(info),
            Err(error) => listed.unreadable.push(error.to_string()),
        }
    }
    Ok(listed)
}

/// The saved states as an envelope: `sessionId`, `components`, `timestamp`.
pub async fn load(states: &dyn Sessions, ctx: &Ctx, id: &SessionId) -> Result<Value, Error> {
    match states.load(ctx, id).await? {
        Some((state, _)) => Ok(state.to_json()),
        None => Err(not_found(id)),
    }
}

/// Saves the states of a session, in place of what was saved before: the envelope, or an object
/// with a state for each component.
pub async fn save(
    states: &dyn Sessions,
    ctx: &Ctx,
    id: &SessionId,
    state: Value,
) -> Result<SessionInfo, Error> {
    let state = SessionState::from_json(id, state, "the input");
    session::replace(states, ctx, state.map_err(asked_wrongly)?).await?;
    info(states, ctx, id).await
}

/// How much is saved of a session.
pub async fn info(states: &dyn Sessions, ctx: &Ctx, id: &SessionId) -> Result<SessionInfo, Error> {
    let info = states.info(ctx, id).await?;
    info.ok_or_else(|| not_found(id))
}

/// A file of another shape is somebody else's; a request of another shape is a mistake.
fn asked_wrongly(error: mnemon_engine::Error) -> Error {
    match error {
        mnemon_engine::Error::NoSessionFile { what, .. } => Invalid::new("state", what).into(),
        other => other.into(),
    }
}

fn not_found(session: &SessionId) -> Error {
    mnemon_engine::Error::NoSession(session.to_string()).into()
}
