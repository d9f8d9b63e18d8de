//! Read back what was replaced in a window.

use mnemon_core::{Ctx, Message};
use mnemon_engine::Memory;
use serde::{Deserialize, Serialize};

use super::chat::Chat;
use crate::Error;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub chat: Chat,
    pub uuid: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    /// As they stood in the window; one of them may itself stand for others.
    pub messages: Vec<Message>,
}

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let window = request.chat.window(memory, None)?;
    match window.reload(ctx, &request.uuid).await? {
        Some(messages) => Ok(Response { messages }),
        None => Err(Error::Missing(vec![request.uuid.trim().parse()?])),
    }
}
