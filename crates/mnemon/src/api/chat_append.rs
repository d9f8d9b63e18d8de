//! Add messages to a conversation, and keep its window small.

use std::path::PathBuf;

use mnemon_core::{Ctx, Receipt};
use mnemon_engine::{Memory, Utterance};
use serde::{Deserialize, Serialize};

use super::chat::Chat;
use crate::{Error, wiring};

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub chat: Chat,
    /// Oldest first; all are added or none.
    pub messages: Vec<Utterance>,
    /// Makes a retry harmless.
    #[serde(default)]
    pub key: Option<String>,
    /// Whether the window is left as it is, even if it is due.
    #[serde(default)]
    pub leave_window: bool,
    /// The project whose frozen log gets every message, too.
    #[serde(default)]
    pub files: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    pub receipt: Receipt,
    /// Whether the window was compressed.
    pub compressed: bool,
}

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let measure = request.chat.measure();
    let mut window = request.chat.window(memory, measure.as_deref())?;
    if let Some(root) = &request.files {
        window = window
            .frozen(wiring::frozen(&ctx.tenant, root))
            .frozen_at(wiring::root_name(&ctx.tenant, root));
    }
    let messages = request.messages.into_iter();
    let messages = messages.map(Utterance::into_message).collect();
    let key = request.key.as_deref();
    let receipt = window.add_messages(ctx, messages, key).await?;
    let compressed = !request.leave_window && window.compress_if_needed(ctx).await?;
    Ok(Response {
        receipt,
        compressed,
    })
}
