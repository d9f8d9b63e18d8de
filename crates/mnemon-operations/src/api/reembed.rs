//! Vectors of the current model for the records that have none.

use mnemon_core::Ctx;
use mnemon_engine::{Embedded, Memory};

use crate::Error;

/// How many records one call embeds when nobody says.
pub const LIMIT: usize = 1000;

/// Looks at no more than so many records after the one that the call before reached.
pub async fn run(memory: &Memory, ctx: &Ctx, after: u64, limit: usize) -> Result<Embedded, Error> {
    if !memory.records().capabilities().keeps_vectors {
        // They are made anew whenever it is searched: nothing can be missing.
        return Ok(Embedded::default());
    }
    Ok(memory.records().embed_after(ctx, after, limit).await?)
}
