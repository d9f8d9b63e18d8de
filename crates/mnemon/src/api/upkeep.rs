//! The housekeeping that is due.

use mnemon_core::Ctx;
use mnemon_engine::Memory;
use serde::{Deserialize, Serialize};

use super::reembed;
use crate::Error;

/// How many pieces of work one call does when nobody says.
pub const LIMIT: usize = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// At most this many records, versions and receipts are cleared away, as many records get the
    /// vectors that they lack, and as many steps are read to learn from them.
    pub limit: usize,
    /// Believe the clock, however far it is ahead of the newest write.
    pub accept_clock: bool,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            limit: LIMIT,
            accept_clock: false,
        }
    }
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Response {
    pub expired: u64,
    pub history: u64,
    pub receipts: u64,
    pub compacted: bool,
    /// Records that got a vector.
    pub embedded: u64,
    /// Steps that were read to learn from them.
    pub steps: u64,
    /// Skills and rules that came, went or changed by that.
    pub learnt: u64,
    /// Temporary files of killed writers that were removed from the folder of agents.
    pub swept: u64,
    /// Whether there is more to do.
    pub more: bool,
    /// How many days the clock is ahead of the newest write, if nothing was erased because of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_days_ahead: Option<i64>,
}

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let records = memory.records();
    let kept = match request.accept_clock {
        true => records.upkeep_accepting_clock(ctx, request.limit).await?,
        false => records.upkeep(ctx, request.limit).await?,
    };
    let slice = reembed::Request {
        limit: request.limit,
        ..reembed::Request::default()
    };
    let embedded = match reembed::run(memory, ctx, slice).await {
        Ok(embedded) => embedded,
        // The rest of the work does not need an embedder.
        Err(Error::Engine(mnemon_engine::Error::Embed(error))) => {
            ctx.notices.add(format!(
                "Records without a vector were not embedded: {error}."
            ));
            reembed::Response::default()
        }
        Err(error) => return Err(error),
    };
    let learnt = memory.learning().slice(ctx, request.limit).await?;
    Ok(Response {
        expired: kept.expired,
        history: kept.history,
        receipts: kept.receipts,
        compacted: kept.compacted,
        embedded: embedded.embedded,
        steps: learnt.steps,
        learnt: learnt.learnt.len() as u64,
        swept: 0,
        more: kept.more || learnt.more || (embedded.more && embedded.embedded > 0),
        clock_days_ahead: kept.clock_days_ahead,
    })
}
