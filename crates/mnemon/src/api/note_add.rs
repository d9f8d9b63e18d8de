//! Keep a note.

use mnemon_core::Ctx;
use mnemon_engine::Memory;
use mnemon_engine::notes::{Added, NewNote};
use serde::Deserialize;

use crate::Error;

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub note: NewNote,
    /// Makes a retry harmless.
    #[serde(default)]
    pub key: Option<String>,
}

/// The note's id and summary, never its content.
pub type Response = Added;

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let key = request.key.as_deref();
    Ok(memory.notes().add(ctx, request.note, key).await?)
}
