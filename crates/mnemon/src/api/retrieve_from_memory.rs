//! What a user's long-term memory knows, as an agent asks for it with a tool.

use std::sync::Arc;

use mnemon_core::{Ctx, Owner};
use mnemon_engine::Memory;
use mnemon_engine::longterm::{Mode, OwnLongTerm, Remembering};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    pub owner: Owner,
    /// What to look for.
    pub keywords: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Response {
    /// A text for the model, whatever happened.
    pub said: String,
}

pub async fn run(memory: &Arc<Memory>, ctx: &Ctx, request: Request) -> Response {
    let own = Arc::new(OwnLongTerm::new(memory.clone()));
    let remembering = Remembering::new(own, request.owner, Mode::Agent);
    let said = remembering
        .retrieve_from_memory(ctx, &request.keywords)
        .await;
    Response { said }
}
