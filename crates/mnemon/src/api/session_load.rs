//! The saved states of a session.

use mnemon_core::Ctx;
use mnemon_engine::session::{SessionId, Sessions};
use serde::Deserialize;
use serde_json::Value;

use crate::Error;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub session: SessionId,
}

/// The envelope: `sessionId`, `components`, `timestamp`.
pub type Response = Value;

pub async fn run(place: &dyn Sessions, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    match place.load(ctx, &request.session).await? {
        Some((state, _)) => Ok(state.to_json()),
        None => Err(mnemon_engine::Error::NoSession(request.session.to_string()).into()),
    }
}
