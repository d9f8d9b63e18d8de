//! Forget a session of a user.

use mnemon_core::Ctx;
use mnemon_engine::{Forgotten, Memory};
use serde::Deserialize;

use crate::Error;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub user: String,
    pub session: String,
    /// Erase it and its history for good, instead of keeping it for undo.
    #[serde(default)]
    pub purge: bool,
}

/// How much is gone, and how much stays because it has other sources.
pub type Response = Forgotten;

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let (user, session) = (&request.user, &request.session);
    Ok(memory
        .delete_session(ctx, user, session, request.purge)
        .await?)
}
