//! Record something to a user's long-term memory, as an agent does with a tool.

use std::sync::Arc;

use mnemon_core::{Ctx, Owner};
use mnemon_engine::Memory;
use mnemon_engine::longterm::{Mode, OwnLongTerm, Remembering};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    pub owner: Owner,
    /// Why it is worth remembering.
    pub thinking: Option<String>,
    /// What to remember, one thing each.
    pub content: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Response {
    /// A sentence for the model, whatever happened.
    pub said: String,
}

pub async fn run(memory: &Arc<Memory>, ctx: &Ctx, request: Request) -> Response {
    let own = Arc::new(OwnLongTerm::new(memory.clone()));
    let remembering = Remembering::new(own, request.owner, Mode::Agent);
    let thinking = request.thinking.as_deref();
    let said = remembering
        .record_to_memory(ctx, thinking, &request.content)
        .await;
    Response { said }
}
