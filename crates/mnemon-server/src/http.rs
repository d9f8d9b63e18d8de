//! The HTTP server: every operation under `/v1`, MCP at `/mcp`, the web page at `/`.
//!
//! The API and MCP keep no session: each request is answered by itself, so that clients that connect
//! anew for each call cost nothing afterwards. Only browsers that sign in have one.

mod api;
mod background;
mod caller;
mod changes;
mod claims;
mod connections;
pub mod events;
pub mod export;
mod gate;
mod health;
mod hosts;
pub mod import;
mod limits;
mod local;
mod mcp;
mod metrics;
pub mod openapi;
mod origins;
mod outer;
pub mod problem;
mod reference;
mod request_fields;
mod samples;
mod server;
mod sessions;
mod shares;
mod stop;
mod tls;
#[cfg(feature = "otel")]
mod traces;
mod upkeeps;
mod web;
mod words;

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::middleware;
use futures::FutureExt;
use mnemon_core::Invalid;
use mnemon_engine::access::Keys;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;
use tower_http::compression::CompressionLayer;

pub use api::Took;
pub use limits::HttpLimits;
pub use local::Local;
pub use mnemon_web::PAGES;
pub use stop::stop_signal;
pub use tls::TlsFiles;

use self::caller::{Accepted, Lock};
use self::claims::Claims;
use self::connections::Connections;
use self::gate::Gate;
use self::hosts::Hosts;
use self::metrics::Metrics;
use self::origins::Origins;
use self::problem::Problem;
use self::samples::Sources;
use self::sessions::Sessions;
use self::tls::Tls;
use self::web::Web;
use crate::mcp::Served;
use mnemon_operations::config::{Config, Secret};
use mnemon_operations::{Error, wiring};

/// Characters that a key must have: fewer can be guessed.
const KEY_CHARS: usize = 16;

/// Who may talk to the server.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// What a client must show; without one only this machine is served.
    pub key: Option<Secret>,
    /// Names under which clients may address the server, beside those of this machine.
    pub hosts: Vec<String>,
    /// Pages of the web that may talk to it, beside those of this machine.
    pub origins: Vec<String>,
    /// The certificate, if connections are encrypted.
    pub tls: Option<TlsFiles>,
}

impl Access {
    fn check(&self, address: SocketAddr, lock: &Lock) -> Result<(), Invalid> {
        if let Some(key) = &self.key {
            let length = key.reveal().chars().count();
            if length < KEY_CHARS {
                let what = format!("has {length} characters; at least {KEY_CHARS} are needed");
                return Err(Invalid::new("MNEMON_API_KEY or MNEMON_API_KEY_FILE", what));
            }
        }
        if !lock.is_closed() && !address.ip().is_loopback() {
            let what = format!(
                "{address} can be reached from other machines: make a key with `mnemon key create`, \
                 set MNEMON_API_KEY or MNEMON_API_KEY_FILE, or listen on 127.0.0.1"
            );
            return Err(Invalid::new("listen", what));
        }
        Ok(())
    }
}

/// Everything that a request may show.
async fn lock(served: &Served, access: &Access) -> Result<Lock, Error> {
    let config = served.config();
    let lock = Lock::new(config.tenant.value.clone())
        .key(access.key.clone())
        .keys(Keys::new(served.memory().records()));
    lock.accept(tokens(config)?);
    lock.look(wiring::now()?).await?;
    Ok(lock)
}

/// The tokens of the configuration.
fn tokens(config: &Config) -> Result<Option<Accepted>, Invalid> {
    let tokens = wiring::tokens(config);
    let tokens = tokens.map_err(|error| Invalid::new("server.jwt.jwks", error.to_string()))?;
    let settings = config.access.tokens.as_ref();
    Ok(tokens.zip(settings.map(|settings| settings.claims.clone())))
}

/// What is served beside MCP.
pub enum Routes {
    /// MCP alone.
    Mcp,
    /// All, with upkeep in the background.
    All(Background),
}

/// Work of the server that nobody asks for.
pub struct Background {
    /// How often upkeep is done, if at all.
    pub upkeep: Option<Duration>,
    /// What the store and the models of the memory did.
    pub meter: Arc<wiring::Meter>,
    /// Reads the configuration again, when the process is asked to.
    pub reload: Arc<dyn Fn() -> Result<Config, Error> + Send + Sync>,
    /// The command line, whose help describes the routes.
    pub commands: fn() -> clap::Command,
}

/// Serves until `stop` returns. `ready` is given the address, which is of use where the port was left
/// to the system, and whether a request must show a key.
pub async fn serve(
    served: Served,
    routes: Routes,
    address: SocketAddr,
    access: Access,
    limits: HttpLimits,
    stop: impl Future<Output = ()>,
    ready: impl FnOnce(SocketAddr, bool),
) -> Result<(), Error> {
    let lock = Arc::new(lock(&served, &access).await?);
    access.check(address, &lock)?;
    let (tls, connecting) = (access.tls.map(Tls::open).transpose()?, Connecting::start()?);
    let tls = tls.map(Arc::new);
    let (listener, address) = connecting.run(listen(address)).await??;
    let hosts = Hosts::new(address.ip(), &access.hosts)?;
    let origins = Origins::new(&access.origins)?;
    let served = Arc::new(served);
    let api = Arc::new(api::Api::new(served.memory(), served.config().clone()));
    let working = api.clone();
    let with_api = matches!(routes, Routes::All(_)).then(|| api.clone());
    let audit = with_api.clone();
    let callers = mcp::Callers::new(served.clone(), access.origins, limits.body_bytes, with_api);
    let connections = Arc::new(Connections::new(&limits));
    let metrics = Arc::new(metrics(&served, &routes)?);
    let mut router = callers.router();
    let (stopping, stopped) = watch::channel(false);
    let (mut tasks, mut delivering, mut sessions) = (JoinSet::new(), None, None);
    let claims = Arc::new(Claims::new(api.memory.records()));
    tasks.spawn(background::look_for_keys(lock.clone()));
    tasks.spawn(background::refresh_tokens(lock.clone()));
    if let Routes::All(background) = routes {
        let web = Web {
            api: api.clone(),
            lock: lock.clone(),
            metrics: metrics.clone(),
            sessions: sessions.insert(Sessions::new(address.port())).clone(),
            is_tls: tls.is_some(),
        };
        let (commands, open) = (background.commands, connections.clone());
        let seconds = limits.body_timeout;
        router = router.merge(all_but_mcp(commands, open, web, &stopped, seconds));
        tasks.spawn(background::keep_up(
            api.clone(),
            claims.clone(),
            background.upkeep,
            metrics.clone(),
        ));
        let deliver = background::deliver(api.clone(), claims.clone(), stopped.clone());
        delivering = Some(tokio::spawn(deliver));
        tasks.spawn(background::reload(
            (api, lock.clone(), tls.clone()),
            background.reload,
        ));
    } else {
        router = router.fallback(no_route);
    }
    let is_closed = lock.is_closed();
    let gate = Gate::new(hosts, origins, lock, limits.clone()).sessions(sessions);
    ready(address, is_closed);
    tasks.spawn(background::embed_missing(served, claims.clone()));
    let audited = middleware::from_fn_with_state(audit, api::audit_refusals);
    let router = gated(router.layer(audited), gate, metrics.clone());
    let stop_timeout = limits.stop_timeout;
    let asked = asked_to_stop(stopped);
    let serving = server::serve(listener, router, connections, limits, tls, asked);
    let stop = stop.map(|()| _ = stopping.send_replace(true));
    let mut serving = pin!(connecting.run(serving));
    tokio::select! {
        // Its signal handlers are there before the first client is answered.
        biased;
        () = stop => serving.await?,
        // Without an answer to any client there is nothing to wait for.
        ended = &mut serving => ended?,
    }
    finish(&working, delivering, tasks, stop_timeout).await;
    let _ = timeout(stop_timeout, claims.release()).await;
    #[cfg(feature = "otel")]
    metrics.traces.stop().await;
    Ok(())
}

async fn asked_to_stop(mut stopped: watch::Receiver<bool>) {
    // One without a sender has stopped, too.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

/// Threads that read requests and write answers, and carry out short reads while there are few requests.
/// One thread is always left to read: requests that are too many are refused at once, however much the
/// operations have to do.
struct Connecting(Option<Runtime>);

impl Connecting {
    fn start() -> Result<Self, Error> {
        let runtime = Builder::new_multi_thread()
            .thread_name("mnemon-http")
            .worker_threads(api::max_inline_reads() + 1)
            .enable_all()
            .build();
        let runtime = runtime.map_err(|error| Error::Internal(format!("no runtime: {error}")))?;
        Ok(Self(Some(runtime)))
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Error> {
        let runtime = self.0.as_ref();
        let runtime = runtime.ok_or_else(|| Error::Internal("no runtime".to_owned()))?;
        let ended = runtime.spawn(work).await;
        ended.map_err(|error| Error::Internal(error.to_string()))
    }
}

impl Drop for Connecting {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // Waiting for its threads is not allowed where others run.
            runtime.shutdown_background();
        }
    }
}

async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Error> {
    let place = address.to_string();
    let listener = TcpListener::bind(address).await;
    let listener = listener.map_err(Error::file("listened on", place.as_ref()))?;
    let address = listener.local_addr().unwrap_or(address);
    Ok((listener, address))
}

/// Waits for work that has begun. Tasks that are left are ended with their set.
async fn finish(
    working: &api::Api,
    delivering: Option<JoinHandle<()>>,
    tasks: JoinSet<()>,
    most: Duration,
) {
    if let Some(delivering) = delivering {
        // A delivery that is on its way is noted, so that it is not sent twice.
        let _ = timeout(most, delivering).await;
    }
    // Changes whose clients have hung up reach the audit log.
    let _ = timeout(most, working.finished()).await;
    drop(tasks);
}

/// Every route but that of MCP.
fn all_but_mcp(
    commands: fn() -> clap::Command,
    connections: Arc<Connections>,
    web: Web,
    stopped: &watch::Receiver<bool>,
    body_timeout: Duration,
) -> Router {
    let (api, lock, metrics) = (&web.api, &web.lock, &web.metrics);
    let sources = Sources {
        api: api.clone(),
        lock: lock.clone(),
        connections,
    };
    Router::new()
        .merge(api::router(api))
        .merge(reference::router(commands))
        .merge(health::router(sources, metrics))
        .merge(changes::router(api, lock, stopped, metrics))
        .merge(export::router(api, lock))
        .merge(import::router(api, lock, body_timeout))
        .merge(web::router(web))
}

/// What is measured, and sent as traces where that is set up.
fn metrics(served: &Served, routes: &Routes) -> Result<Metrics, Error> {
    let metrics = Metrics::new(match routes {
        Routes::All(background) => background.meter.clone(),
        Routes::Mcp => Arc::default(),
    });
    #[cfg(feature = "otel")]
    let metrics = metrics.with_traces(traces::Traces::to(
        served.config().otlp_endpoint.as_deref(),
    )?);
    #[cfg(not(feature = "otel"))]
    let _ = served;
    Ok(metrics)
}

async fn no_route() -> Problem {
    unknown_route()
}

fn unknown_route() -> Problem {
    let what = "there is no such route; /openapi.json lists them";
    Problem::new(StatusCode::NOT_FOUND, "not-found", what)
}

/// The router behind the gate.
fn gated(router: Router, gate: Gate, metrics: Arc<Metrics>) -> Router {
    let compressed = router.layer(CompressionLayer::new());
    let admitted = middleware::from_fn_with_state(Arc::new(gate), gate::admit);
    let completed = middleware::from_fn_with_state(metrics, outer::complete);
    compressed.layer(admitted).layer(completed)
}

#[cfg(test)]
mod tests;
