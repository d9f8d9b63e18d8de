//! Work that is due while nobody asks for it: bounded slices of upkeep and learning, and webhooks.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{pending, select_all};
use mnemon_core::{Ctx, Tenant};
use mnemon_engine::NextCommit;
use mnemon_engine::access::Keys;
use mnemon_engine::webhooks::Webhooks;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::api::Api;
use super::caller::Lock;
use super::metrics::Metrics;
use super::stop::hung_up;
use super::tls::Tls;
use crate::api::upkeep;
use crate::config::Config;
use crate::{Error, wiring};

/// Pieces of work of one slice.
const SLICE: usize = 200;

/// How often the store is asked whether it has keys by now.
const LOOK: Duration = Duration::from_secs(1);

/// How often the address of the tokens' keys is asked, and how soon after a failure.
const REFRESH_MS: i64 = 300_000;
const RETRY: Duration = Duration::from_secs(30);

/// Pages of changes that one round of webhooks reads, and the pause after a round.
const PAGES: usize = 64;
const PAUSE: Duration = Duration::from_millis(20);
/// How often changes of other processes, and deliveries that are to be repeated, are looked for.
const POLL: Duration = Duration::from_secs(1);

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

/// Asks the address of the tokens' keys again and again. The known keys stay in use if that fails.
pub(super) async fn refresh_tokens(lock: Arc<Lock>) {
    loop {
        if let (Some(accepted), Ok(now)) = (lock.accepted(), wiring::now())
            && let Err(error) = accepted.0.refresh(now, REFRESH_MS).await
        {
            tracing::warn!(%error, "the keys of tokens are not fresh");
        }
        sleep(RETRY).await;
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
        if let Err(error) = keep_keys(&api).await {
            tracing::warn!(kind = ?error.kind(), "upkeep of the keys failed");
        }
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

/// Drops old versions of keys, and keys that ended long ago.
async fn keep_keys(api: &Api) -> Result<(), Error> {
    let keys = Keys::new(api.memory.records());
    keys.upkeep(wiring::now()?, SLICE).await?;
    Ok(())
}

/// Sends changes to webhooks until the server stops: after commits of this process, and once a second
/// for all others. A failure is logged, and the next round tries again.
pub(super) async fn deliver(api: Arc<Api>, mut stopped: watch::Receiver<bool>) {
    let mut sending = None;
    while !*stopped.borrow() {
        let commits = match round(&api, &mut sending).await {
            Ok(Round { more: true, .. }) => continue,
            Ok(round) => round.commits,
            Err(error) => {
                tracing::warn!(kind = ?error.kind(), "webhooks were not sent");
                Vec::new()
            }
        };
        let next_commit = async {
            match commits.is_empty() {
                true => pending().await,
                false => drop(select_all(commits).await),
            }
        };
        tokio::select! {
            _ = timeout(POLL, next_commit) => {}
            _ = stopped.wait_for(|stopped| *stopped) => return,
        }
        // Commits that follow each other closely are sent together.
        sleep(PAUSE).await;
    }
}

/// What a round of webhooks leaves to be done.
struct Round {
    /// Whether there is more to send at once.
    more: bool,
    /// The next commits of tenants with webhooks.
    commits: Vec<NextCommit>,
}

/// Sends what is due.
async fn round(api: &Api, sending: &mut Option<(Vec<String>, Webhooks)>) -> Result<Round, Error> {
    let hosts = api.webhook_hosts();
    let records = api.memory.records();
    let webhooks = match sending {
        Some((known, webhooks)) if *known == hosts => webhooks,
        // The configuration was read again.
        other => {
            let webhooks = wiring::webhooks(records, &hosts)?;
            &mut other.insert((hosts, webhooks)).1
        }
    };
    let ctx = Ctx::new(Tenant::default(), "webhooks", wiring::now()?);
    let feed = records.feed();
    // Counted before changes are read, so that no commit is missed.
    let tenants = webhooks.tenants(&ctx).await?;
    let commits = tenants
        .iter()
        .map(|tenant| feed.next_commit(tenant, feed.commits(tenant)));
    let commits = commits.collect();
    let more = webhooks.deliver_due(&ctx, PAGES).await?.more;
    Ok(Round { more, commits })
}

/// Uses the configuration and the certificate as they are whenever the process gets SIGHUP. One that
/// cannot be read is logged, and the earlier one stays. The store, the address and the keys of the environment stay, too.
pub(super) async fn reload(
    (api, lock, tls): (Arc<Api>, Arc<Lock>, Option<Arc<Tls>>),
    read: Arc<dyn Fn() -> Result<Config, Error> + Send + Sync>,
) {
    loop {
        hung_up().await;
        match read() {
            Ok(config) => {
                match super::tokens(&config) {
                    Ok(tokens) => lock.accept(tokens),
                    Err(error) => tracing::error!(%error, "the tokens were not read again"),
                }
                api.reload(config);
                tracing::info!("the configuration was read again");
            }
            Err(error) => tracing::error!(%error, "the configuration was not read again"),
        }
        if let Some(Err(error)) = tls.as_ref().map(|tls| tls.reload()) {
            tracing::error!(%error, "the certificate was not read again");
        }
    }
}
