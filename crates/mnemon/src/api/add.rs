//! Remember something.

use mnemon_core::{Ctx, Invalid, Receipt};
use mnemon_engine::{Draft, Memory};
use serde::Deserialize;

use crate::Error;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// What to remember, all or none of it.
    pub drafts: Vec<Draft>,
    /// Makes a retry harmless: under the same key the same drafts are stored once.
    #[serde(default)]
    pub key: Option<String>,
}

/// The fate of each draft, in order.
pub type Response = Receipt;

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    if request.drafts.is_empty() {
        return Err(Invalid::new("drafts", "is empty; there is nothing to remember").into());
    }
    let key = request.key.as_deref();
    Ok(memory.records().add(ctx, request.drafts, key).await?)
}
