//! Save a session once more under another id.

use mnemon_core::Ctx;
use mnemon_engine::session::{SessionId, SessionInfo, Sessions, fork};
use serde::Deserialize;

use crate::Error;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub session: SessionId,
    /// The new id; it must be free.
    pub to: SessionId,
}

/// The new session.
pub type Response = SessionInfo;

pub async fn run(place: &dyn Sessions, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    fork(place, ctx, &request.session, &request.to).await?;
    super::session_list::info(place, ctx, &request.to).await
}
