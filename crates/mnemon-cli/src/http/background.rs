//! Work that is due while nobody asks for it: bounded slices of upkeep and learning.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use super::api::Api;
use super::caller::Lock;
use super::metrics::Metrics;
use super::stop::hung_up;
use crate::api::upkeep;
use crate::config::Config;
use crate::{Error, wiring};

/// Pieces of work of one slice.
const SLICE: usize = 200;

/// How often the store is asked whether it has keys by now.
const LOOK: Duration = Duration::from_secs(1);

/// Closes a server that is open to this machine as soon as the store has a key.
pub(super) async fn look_for_keys(lock: Arc<Lock>) {
    while !lock.is_closed() {
        tokio::time::sleep(LOOK).await;
        if let Ok(now) = wiring::now() {
            // The next look tries again.
            let _ = lock.look(now).await;
        }
    }
}

/// Does a slice of upkeep for the tenant of the configuration, again and again. A failure is logged,
/// and the next slice tries again.
pub(super) async fn keep_up(api: Arc<Api>, every: Option<Duration>, metrics: Arc<Metrics>) {
    let Some(every) = every else {
        return;
    };
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        for tenant in api.tenants() {
            let done = async {
                let seat = api.seat(&tenant)?;
                let ctx = wiring::stamp(&seat.config)?;
                upkeep::run(&seat.memory, &ctx, SLICE, false).await
            };
            let done = done.await;
            metrics.count_upkeep(done.is_ok());
            match done {
                Ok(done) => {
                    tracing::debug!(expired = done.expired, embedded = done.embedded, "upkeep")
                }
                Err(error) => tracing::warn!(kind = ?error.kind(), "upkeep failed"),
            }
        }
    }
}

/// Uses the configuration as it is whenever the process gets SIGHUP. One that cannot be read is
/// logged, and the earlier one stays. The store, the address and the keys of the environment stay, too.
pub(super) async fn reload(
    api: Arc<Api>,
    read: Arc<dyn Fn() -> Result<Config, Error> + Send + Sync>,
) {
    loop {
        hung_up().await;
        match read() {
            Ok(config) => {
                api.reload(config);
                tracing::info!("the configuration was read again");
            }
            Err(error) => tracing::error!(%error, "the configuration was not read again"),
        }
    }
}
