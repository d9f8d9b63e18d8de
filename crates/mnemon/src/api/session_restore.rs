//! Make a session what it was when a snapshot was taken.

use mnemon_core::Ctx;
use mnemon_engine::session::{SessionId, SessionInfo, Sessions, restore};
use serde::Deserialize;

use crate::Error;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub session: SessionId,
    pub label: String,
}

/// The session as it is again.
pub type Response = SessionInfo;

pub async fn run(place: &dyn Sessions, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    restore(place, ctx, &request.session, &request.label).await?;
    super::session_list::info(place, ctx, &request.session).await
}
