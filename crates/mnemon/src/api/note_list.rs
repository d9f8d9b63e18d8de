//! A page of notes, newest first.

use mnemon_core::Ctx;
use mnemon_engine::Memory;
use mnemon_engine::notes::{NoteFilter, NotePage};
use serde::Deserialize;

use crate::Error;

/// How many notes a page has when nobody says.
pub const LIMIT: usize = 20;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    pub filter: NoteFilter,
    /// The `next` of the page before.
    pub after: Option<String>,
    /// At most this many, and never more than [`mnemon_core::limits::PAGE`].
    pub limit: usize,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            filter: NoteFilter::all_of_tenant(),
            after: None,
            limit: LIMIT,
        }
    }
}

pub type Response = NotePage;

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let after = request.after.map(|text| text.parse()).transpose()?;
    let (filter, limit) = (&request.filter, request.limit);
    Ok(memory.notes().list(ctx, filter, after, limit).await?)
}
