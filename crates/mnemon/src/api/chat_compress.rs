//! Compress the window of a conversation.

use mnemon_core::Ctx;
use mnemon_core::window::CompressionEvent;
use mnemon_engine::{Memory, Shown};
use serde::{Deserialize, Serialize};

use super::chat::Chat;
use crate::Error;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub chat: Chat,
    /// Only if it is due.
    #[serde(default)]
    pub if_needed: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    /// What was done now, oldest first; empty when there was nothing to be gained.
    pub events: Vec<CompressionEvent>,
    pub tokens_before: usize,
    pub tokens_after: usize,
    pub window: Shown,
}

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let measure = request.chat.measure();
    let window = request.chat.window(memory, measure.as_deref())?;
    let before = window.show(ctx).await?;
    let events = match before.due || !request.if_needed {
        true => window.compress(ctx).await?,
        false => Vec::new(),
    };
    let after = window.show(ctx).await?;
    Ok(Response {
        events,
        tokens_before: before.tokens,
        tokens_after: after.tokens,
        window: after,
    })
}
