//! Save the states of a session, in place of what was saved before.

use mnemon_core::{Ctx, ErrorKind, Invalid, limits};
use mnemon_engine::session::{SessionId, SessionInfo, SessionState, Sessions};
use serde::Deserialize;
use serde_json::Value;

use crate::Error;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub session: SessionId,
    /// The envelope (`sessionId`, `components`), or an object with a state for each component.
    pub state: Value,
}

pub type Response = SessionInfo;

pub async fn run(place: &dyn Sessions, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let id = request.session;
    let state = SessionState::from_json(&id, request.state, "the input");
    let mut state = state.map_err(asked_wrongly)?;
    state.timestamp = Some(ctx.now.to_string());
    let mut tries = 0;
    loop {
        let seen = place.load(ctx, &id).await?.map(|(_, mark)| mark);
        tries += 1;
        match place.save(ctx, &state, seen.as_ref()).await {
            Err(error) if error.kind() == ErrorKind::Conflict && tries < limits::CHANGE_TRIES => {}
            done => break done?,
        }
    }
    super::session_list::info(place, ctx, &id).await
}

/// A file of another shape is somebody else's; a request of another shape is a mistake.
fn asked_wrongly(error: mnemon_engine::Error) -> Error {
    match error {
        mnemon_engine::Error::NoSessionFile { what, .. } => Invalid::new("state", what).into(),
        other => other.into(),
    }
}
