//! Keep a session as it is now, under a label.

use mnemon_core::Ctx;
use mnemon_engine::session::{SessionId, SessionInfo, Sessions, snapshot};
use serde::Deserialize;

use crate::Error;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub session: SessionId,
    pub label: String,
}

/// The snapshot; its id is `SESSION@LABEL`.
pub type Response = SessionInfo;

pub async fn run(place: &dyn Sessions, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let id = snapshot(place, ctx, &request.session, &request.label).await?;
    super::session_list::info(place, ctx, &id).await
}
