//! Work that is due while nobody asks for it: bounded slices of upkeep and learning, and webhooks.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, pending, select_all};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use mnemon_core::{Claimed, Ctx, Tenant};
use mnemon_engine::NextCommit;
use mnemon_engine::access::Keys;
use mnemon_engine::webhooks::{TenantWebhooks, Webhooks};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};

use super::api::Api;
use super::caller::Lock;
use super::claims::{Claims, Job};
use super::metrics::Metrics;
use super::stop::hung_up;
use super::tls::Tls;
use crate::mcp::Served;
use mnemon_operations::api::upkeep;
use mnemon_operations::config::Config;
use mnemon_operations::{Error, wiring};

/// Pieces of work of one slice.
const SLICE: usize = 200;

/// How often the store is asked whether it has keys by now.
const LOOK: Duration = Duration::from_secs(1);

/// How often the address of the tokens' keys is asked, and how soon after a failure.
const REFRESH_MS: i64 = 300_000;
const RETRY: Duration = Duration::from_secs(30);

/// Pages of changes that one round of a tenant's webhooks reads, and the pause after a round.
const PAGES: usize = 8;
const PAUSE: Duration = Duration::from_millis(20);
/// How often changes of other processes, and deliveries that are to be repeated, are looked for.
const POLL: Duration = Duration::from_secs(1);

const MINUTE: Duration = Duration::from_secs(60);

/// How long other servers wait for one that has died before they send its webhooks.
const WEBHOOKS_CLAIM: Duration = Duration::from_secs(10);

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

/// Does a slice of upkeep for the tenants that were served, again and again, where no other server
/// does. A failure is logged, and the next slice tries again.
pub(super) async fn keep_up(
    api: Arc<Api>,
    claims: Arc<Claims>,
    every: Option<Duration>,
    metrics: Arc<Metrics>,
) {
    let Some(every) = every else {
        return;
    };
    // Until after the next slice, so that the same server does it.
    let lasts = every + every.min(MINUTE);
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let job = upkeep_of(&Tenant::system());
        if let Err(error) = claims
            .hold(&job, lasts, async |_| keep_keys(&api).await)
            .await
        {
            tracing::warn!(kind = ?error.kind(), "upkeep of the keys failed");
        }
        let tenants = api.tenants();
        api.upkeeps.keep_only(&tenants);
        for tenant in tenants {
            let slice = async |_| {
                let seat = api.seat(&tenant)?;
                let ctx = wiring::stamp(&seat.config)?;
                upkeep::run(&seat.memory, &ctx, SLICE, false).await
            };
            let done = claims.hold(&upkeep_of(&tenant), lasts, slice).await;
            if !matches!(done, Ok(None)) {
                metrics.count_upkeep(done.is_ok());
            }
            match done {
                Ok(Some(done)) => {
                    api.upkeeps.add(&tenant, &done);
                    tracing::debug!(expired = done.expired, embedded = done.embedded, "upkeep")
                }
                Ok(None) => {}
                Err(error) => tracing::warn!(kind = ?error.kind(), "upkeep failed"),
            }
        }
    }
}

/// Upkeep, learning and the embedding of records that lack a vector.
fn upkeep_of(tenant: &Tenant) -> Job {
    Job {
        tenant: tenant.clone(),
        name: "upkeep",
    }
}

/// Embeds records that lack a vector, if no other server does.
pub(super) async fn embed_missing(served: Arc<Served>, claims: Arc<Claims>) {
    let job = upkeep_of(&served.config().tenant.value);
    let embed = async |_| {
        served.embed_missing().await;
        Ok(())
    };
    // Upkeep reports a failure.
    let _ = claims.hold(&job, MINUTE, embed).await;
}

/// Drops old versions of keys, and keys that ended long ago.
async fn keep_keys(api: &Api) -> Result<(), Error> {
    let keys = Keys::new(api.memory.records());
    keys.upkeep(wiring::now()?, SLICE).await?;
    Ok(())
}

/// Sends changes to webhooks until the server stops: after commits that are heard of, and once a
/// second for all others. A failure is logged, and the next round tries again.
pub(super) async fn deliver(
    api: Arc<Api>,
    claims: Arc<Claims>,
    mut stopped: watch::Receiver<bool>,
) {
    let mut rounds = Rounds::default();
    let mut sending = None;
    let mut next_poll = Instant::now();
    while !*stopped.borrow() {
        let is_poll = next_poll <= Instant::now();
        if is_poll {
            next_poll = Instant::now() + POLL;
        }
        let commits = match due(&api, &mut sending).await {
            Ok((webhooks, due)) => rounds.begin((&api, &claims), &webhooks, due, is_poll),
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
            () = sleep_until(next_poll) => {}
            () = next_commit => {}
            () = rounds.end_one() => {}
            _ = stopped.wait_for(|stopped| *stopped) => break,
        }
        // Commits that follow each other closely are sent together.
        sleep(PAUSE).await;
        rounds.end_finished();
    }
    // A delivery that is on its way is noted, so that it is not sent twice.
    while !rounds.running.is_empty() {
        rounds.end_one().await;
    }
}

/// The webhooks of all tenants.
async fn due(
    api: &Api,
    sending: &mut Option<(Vec<String>, Arc<Webhooks>)>,
) -> Result<(Arc<Webhooks>, Vec<TenantWebhooks>), Error> {
    let hosts = api.webhook_hosts();
    let webhooks = match sending {
        Some((known, webhooks)) if *known == hosts => webhooks,
        // The configuration was read again.
        other => {
            let webhooks = wiring::webhooks(api.memory.records(), &hosts)?;
            &mut other.insert((hosts, Arc::new(webhooks))).1
        }
    };
    let ctx = Ctx::new(Tenant::default(), "webhooks", wiring::now()?);
    let due = webhooks.by_tenant(&ctx).await?;
    Ok((webhooks.clone(), due))
}

/// Rounds of deliveries, each of one tenant, so that tenants do not wait for each other.
#[derive(Default)]
struct Rounds {
    /// Each returns its tenant, and whether there is more to send at once.
    running: FuturesUnordered<BoxFuture<'static, (Tenant, bool)>>,
    /// Tenants that have a round.
    busy: HashSet<Tenant>,
    /// The commits of each tenant before its last round, unless there is more to send at once.
    seen: HashMap<Tenant, u64>,
}

impl Rounds {
    /// Begins the rounds that are due. Returns the next commits of tenants that have none.
    fn begin(
        &mut self,
        (api, claims): (&Arc<Api>, &Arc<Claims>),
        webhooks: &Arc<Webhooks>,
        due: Vec<TenantWebhooks>,
        is_poll: bool,
    ) -> Vec<NextCommit> {
        let feed = api.memory.records().feed();
        let mut commits = Vec::new();
        for due in due {
            let tenant = due.tenant.clone();
            if self.busy.contains(&tenant) {
                continue;
            }
            // Counted before changes are read, so that no commit is missed.
            let count = feed.commits(&tenant);
            if !is_poll && self.seen.get(&tenant) == Some(&count) {
                commits.push(feed.next_commit(&tenant, count));
                continue;
            }
            self.seen.insert(tenant.clone(), count);
            self.busy.insert(tenant);
            let (claims, webhooks) = (claims.clone(), webhooks.clone());
            self.running.push(round(claims, webhooks, due).boxed());
        }
        commits
    }

    fn end(&mut self, (tenant, more): (Tenant, bool)) {
        self.busy.remove(&tenant);
        if more {
            self.seen.remove(&tenant);
        }
    }

    async fn end_one(&mut self) {
        match self.running.next().await {
            Some(ended) => self.end(ended),
            None => pending().await,
        }
    }

    fn end_finished(&mut self) {
        while let Some(Some(ended)) = self.running.next().now_or_never() {
            self.end(ended);
        }
    }
}

/// Sends what is due of a tenant, if no other server does.
async fn round(
    claims: Arc<Claims>,
    webhooks: Arc<Webhooks>,
    due: TenantWebhooks,
) -> (Tenant, bool) {
    let job = Job {
        tenant: due.tenant.clone(),
        name: "webhooks",
    };
    let sent = claims.hold(&job, WEBHOOKS_CLAIM, async |claimed| {
        let ctx = Ctx::new(due.tenant.clone(), "webhooks", wiring::now()?);
        let is_claimed = claimed == Claimed::Ours;
        Ok(webhooks.deliver(&ctx, due, PAGES, is_claimed).await?.more)
    });
    let more = sent.await.unwrap_or_else(|error| {
        tracing::warn!(kind = ?error.kind(), "webhooks were not sent");
        None
    });
    (job.tenant, more.unwrap_or(false))
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
