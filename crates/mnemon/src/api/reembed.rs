//! Vectors of the current model for the records that have none.

use mnemon_core::Ctx;
use mnemon_engine::{Embedded, Memory};
use serde::Deserialize;

use crate::Error;

/// How many records one call embeds when nobody says.
pub const LIMIT: usize = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// At most this many records are looked at.
    pub limit: usize,
    /// Go on after the record that the call before reached.
    pub after: u64,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            limit: LIMIT,
            after: 0,
        }
    }
}

/// How far it came.
pub type Response = Embedded;

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    if !memory.records().capabilities().keeps_vectors {
        // They are made anew whenever it is searched: nothing can be missing.
        return Ok(Embedded::default());
    }
    let done = memory
        .records()
        .embed_after(ctx, request.after, request.limit);
    Ok(done.await?)
}
