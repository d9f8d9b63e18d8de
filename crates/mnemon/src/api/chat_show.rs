//! The window of a conversation: what is hot, what is summarised, what is offloaded.

use mnemon_core::Ctx;
use mnemon_engine::{Memory, Shown};
use serde::Deserialize;

use super::chat::Chat;
use crate::Error;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub chat: Chat,
}

/// The messages with their tokens.
pub type Response = Shown;

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let measure = request.chat.measure();
    let window = request.chat.window(memory, measure.as_deref())?;
    Ok(window.show(ctx).await?)
}
