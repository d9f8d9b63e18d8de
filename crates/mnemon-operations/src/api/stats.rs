//! How much there is.

use mnemon_core::{Ctx, Tally, Tenant};
use mnemon_engine::Memory;
use mnemon_engine::longterm::OutboxState;
use serde::{Deserialize, Serialize};

use crate::Error;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Response {
    pub tenant: Tenant,
    /// The kind of store.
    pub backend: String,
    /// Records that can be seen.
    pub records: u64,
    #[serde(flatten)]
    pub tally: Tally,
    /// Recordings that wait for a long-term memory at another service, if any do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outbox: Option<OutboxState>,
}

pub async fn run(memory: &Memory, ctx: &Ctx) -> Result<Response, Error> {
    let tally = memory.records().stats(ctx).await?;
    let outbox = memory.outbox(ctx).await?;
    let capabilities = memory.records().capabilities();
    Ok(Response {
        tenant: ctx.tenant.clone(),
        backend: capabilities.backend.to_owned(),
        records: tally.records().saturating_sub(tally.expired),
        tally,
        outbox: Some(outbox).filter(|outbox| outbox.waiting > 0),
    })
}
