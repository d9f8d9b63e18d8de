//! The housekeeping that is due.

use mnemon_core::Ctx;
use mnemon_engine::{Embedded, Memory};
use serde::{Deserialize, Serialize};

use super::reembed;
use crate::Error;

/// How many pieces of work one call does when nobody says.
pub const LIMIT: usize = 1000;

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
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
    /// Summaries of conversations that the language model wrote.
    pub summaries: u64,
    /// Recordings that a long-term memory at another service took after it had failed before.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub remote_sent: u64,
    /// Temporary files of killed writers that were removed from the folder of agents.
    pub swept: u64,
    /// Whether there is more to do.
    pub more: bool,
    /// How many days the clock is ahead of the newest write, if nothing was erased because of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_days_ahead: Option<i64>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Response {
    /// Adds the slice that was done after all of this.
    pub fn add(&mut self, slice: &Self) {
        *self = Self {
            expired: self.expired + slice.expired,
            history: self.history + slice.history,
            receipts: self.receipts + slice.receipts,
            compacted: self.compacted || slice.compacted,
            embedded: self.embedded + slice.embedded,
            steps: self.steps + slice.steps,
            learnt: self.learnt + slice.learnt,
            summaries: self.summaries + slice.summaries,
            remote_sent: self.remote_sent + slice.remote_sent,
            swept: self.swept + slice.swept,
            more: slice.more,
            clock_days_ahead: slice.clock_days_ahead,
        };
    }

    /// Pieces of work that were done.
    pub fn pieces(&self) -> u64 {
        let cleared = self.expired + self.history + self.receipts;
        cleared + self.embedded + self.steps + self.learnt + self.summaries + self.remote_sent
    }
}

/// Clears away at most so many records, versions and receipts, gives as many records the vectors
/// that they lack, reads as many steps to learn from them, and lets the language model write
/// summaries that wait for it. `accept_clock` believes the clock,
/// however far it is ahead of the newest write.
pub async fn run(
    memory: &Memory,
    ctx: &Ctx,
    limit: usize,
    accept_clock: bool,
) -> Result<Response, Error> {
    let records = memory.records();
    let kept = match accept_clock {
        true => records.upkeep_accepting_clock(ctx, limit).await?,
        false => records.upkeep(ctx, limit).await?,
    };
    let embedded = match reembed::run(memory, ctx, 0, limit).await {
        Ok(embedded) => embedded,
        // The rest of the work does not need an embedder.
        Err(Error::Engine(mnemon_engine::Error::Embed(error))) => {
            ctx.notices.add(format!(
                "Records without a vector were not embedded: {error}."
            ));
            Embedded::default()
        }
        Err(error) => return Err(error),
    };
    let learnt = memory.learning().slice(ctx, limit).await?;
    let refined = memory.refine_summaries(ctx, limit).await?;
    let outbox = memory.deliver_outbox(ctx, limit).await?;
    Ok(Response {
        expired: kept.expired,
        history: kept.history,
        receipts: kept.receipts,
        compacted: kept.compacted,
        embedded: embedded.embedded,
        steps: learnt.steps,
        learnt: learnt.learnt.len() as u64,
        summaries: refined.written,
        remote_sent: outbox.sent,
        swept: 0,
        more: kept.more
            || outbox.more
            || learnt.more
            || (embedded.more && embedded.embedded > 0)
            || (refined.pending > 0 && refined.refused.is_none()),
        clock_days_ahead: kept.clock_days_ahead,
    })
}
