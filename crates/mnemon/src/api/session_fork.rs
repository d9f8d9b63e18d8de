//! Make a session once more under another id: its saved states, and what was said in it.

use mnemon_core::Ctx;
use mnemon_engine::session::{SessionId, fork};
use serde::Deserialize;

use super::session_copy::{Copied, Places, not_found};
use crate::Error;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub session: SessionId,
    /// The new id; it must be free.
    pub to: SessionId,
}

/// The new session.
pub type Response = Copied;

pub async fn run(places: &Places<'_>, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let Request { session, to } = &request;
    let has_states = places.has_states(ctx, session).await?;
    let said = places.said(ctx, session).await?;
    if !has_states && said.is_none() {
        return Err(not_found(session));
    }
    // Both are looked at first, so that no half of a fork is left behind.
    if places.has_states(ctx, to).await? || places.said(ctx, to).await?.is_some() {
        return Err(mnemon_engine::Error::SessionExists(to.to_string()).into());
    }
    if has_states {
        fork(places.states, ctx, session, to).await?;
    }
    let messages = match said {
        Some(window) => window.fork(ctx, to.as_str()).await?,
        None => 0,
    };
    places.copied(ctx, to, messages).await
}
