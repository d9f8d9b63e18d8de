//! Forget every note, of one namespace or of both.

use mnemon_core::{Ctx, Namespace, Owner};
use mnemon_engine::Memory;
use mnemon_engine::notes::Cleared;
use serde::Deserialize;

use crate::Error;

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Only this one; both when nobody says.
    pub namespace: Option<Namespace>,
    pub owner: Owner,
}

pub type Response = Cleared;

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let (namespace, owner) = (request.namespace, &request.owner);
    Ok(memory.notes().clear(ctx, namespace, owner).await?)
}
