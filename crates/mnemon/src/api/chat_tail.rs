//! The last messages of a conversation, as they were said.

use mnemon_core::{Ctx, Invalid, Message, limits};
use mnemon_engine::Memory;
use serde::{Deserialize, Serialize};

use super::chat::Chat;
use crate::Error;

/// Messages that are shown when nobody says.
pub const COUNT: usize = 10;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub chat: Chat,
    #[serde(default = "count")]
    pub count: usize,
}

fn count() -> usize {
    COUNT
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    /// Oldest first.
    pub messages: Vec<Message>,
}

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let (count, most) = (request.count, limits::PAGE);
    if count > most {
        let what = format!("is {count}, at most {most} are shown at once");
        return Err(Invalid::new("count", what).into());
    }
    let window = request.chat.window(memory, None)?;
    Ok(Response {
        messages: window.tail(ctx, count).await?,
    })
}
