//! Make a session what it was when a snapshot was taken: its saved states, and its window.

use mnemon_core::Ctx;
use mnemon_engine::session::{SessionId, restore};
use serde::Deserialize;

use super::session_copy::{Copied, Places, not_found};
use crate::Error;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub session: SessionId,
    pub label: String,
}

/// The session as it is again.
pub type Response = Copied;

pub async fn run(places: &Places<'_>, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let Request { session, label } = &request;
    let kept: SessionId = format!("{session}@{label}").parse()?;
    let has_states = places.has_states(ctx, &kept).await?;
    let shown = match places.window(session)? {
        Some(window) => window.restore(ctx, label).await?,
        None => None,
    };
    if !has_states && shown.is_none() {
        return Err(not_found(&kept));
    }
    if has_states {
        restore(places.states, ctx, session, label).await?;
    }
    places.copied(ctx, session, shown.unwrap_or(0)).await
}
