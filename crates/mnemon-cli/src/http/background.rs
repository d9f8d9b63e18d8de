//! Work that is due while nobody asks for it: bounded slices of upkeep and learning.

use std::sync::Arc;

use tokio::time::{MissedTickBehavior, interval};

use super::Upkeep;
use super::api::Api;
use crate::api::upkeep;

/// Pieces of work of one slice.
const SLICE: usize = 200;

/// Does a slice of upkeep for the tenant of the configuration, again and again. A failure is logged,
/// and the next slice tries again.
pub(super) async fn keep_up(api: Arc<Api>, upkeep: Upkeep) {
    let Some(every) = upkeep.every else {
        return;
    };
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        for tenant in api.tenants() {
            let done = async {
                let seat = api.seat(&tenant)?;
                let ctx = crate::wiring::stamp(&seat.config)?;
                upkeep::run(&seat.memory, &ctx, SLICE, false).await
            };
            match done.await {
                Ok(done) => {
                    tracing::debug!(expired = done.expired, embedded = done.embedded, "upkeep")
                }
                Err(error) => tracing::warn!(kind = ?error.kind(), "upkeep failed"),
            }
        }
    }
}
