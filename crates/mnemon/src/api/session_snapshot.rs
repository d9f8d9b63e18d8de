//! Keep a session as it is now, under a label: its saved states, and its window.

use mnemon_core::Ctx;
use mnemon_engine::session::{SessionId, snapshot};
use serde::Deserialize;

use super::session_copy::{Copied, Places, not_found};
use crate::Error;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub session: SessionId,
    pub label: String,
}

/// The snapshot; its id is `SESSION@LABEL`.
pub type Response = Copied;

pub async fn run(places: &Places<'_>, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let Request { session, label } = &request;
    let said = places.said(ctx, session).await?;
    let has_states = places.has_states(ctx, session).await?;
    if !has_states && said.is_none() {
        return Err(not_found(session));
    }
    if has_states {
        snapshot(places.states, ctx, session, label).await?;
    }
    let messages = match said {
        Some(window) => window.snapshot(ctx, label).await?,
        None => 0,
    };
    let id = format!("{session}@{label}").parse()?;
    places.copied(ctx, &id, messages).await
}
