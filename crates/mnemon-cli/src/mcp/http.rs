//! MCP over HTTP, at `/mcp`: for several clients, or for one that is elsewhere.
//!
//! No session is kept: each request is answered by itself, so that clients that connect anew for
//! each call cost nothing afterwards.

mod connections;
mod gate;
mod hosts;
mod limits;
mod server;
mod stop;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::middleware;
use mnemon_core::Invalid;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

pub use limits::HttpLimits;
pub use stop::stop_signal;

use self::gate::Gate;
use self::hosts::Hosts;
use super::handler::Handler;
use super::served::Served;
use crate::Error;
use crate::config::Secret;

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
}

impl Access {
    fn check(&self, address: SocketAddr) -> Result<(), Invalid> {
        if let Some(key) = &self.key {
            let length = key.reveal().chars().count();
            if length < KEY_CHARS {
                let what = format!("has {length} characters; at least {KEY_CHARS} are needed");
                return Err(Invalid::new("MNEMON_API_KEY", what));
            }
        } else if !address.ip().is_loopback() {
            let what = format!(
                "{address} can be reached from other machines: set MNEMON_API_KEY or \
                 MNEMON_API_KEY_FILE, or listen on 127.0.0.1"
            );
            return Err(Invalid::new("http", what));
        }
        Ok(())
    }
}

/// Serves until `stop` returns. `ready` is told the address, which is of use where the port was left
/// to the system.
pub async fn serve(
    served: Served,
    address: SocketAddr,
    access: Access,
    limits: HttpLimits,
    stop: impl Future<Output = ()>,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), Error> {
    access.check(address)?;
    let place = address.to_string();
    let listener = TcpListener::bind(address).await;
    let listener = listener.map_err(Error::file("listened on", place.as_ref()))?;
    let address = listener.local_addr().unwrap_or(address);
    let hosts = Hosts::new(address.ip(), &access.hosts)?;
    let served = Arc::new(served);
    let service = protocol(served.clone(), access.origins, &limits);
    let gate = Gate::new(hosts, access.key, limits.clone());
    let router = gated(Router::new().route_service("/mcp", service), gate);
    ready(address);
    let background = tokio::spawn(async move { served.embed_missing().await });
    server::serve(listener, router, limits, stop).await;
    background.abort();
    Ok(())
}

/// The router behind the gate.
fn gated(router: Router, gate: Gate) -> Router {
    router.layer(middleware::from_fn_with_state(Arc::new(gate), gate::admit))
}

/// The protocol itself, without sessions.
fn protocol(
    served: Arc<Served>,
    origins: Vec<String>,
    limits: &HttpLimits,
) -> StreamableHttpService<Handler, NeverSessionManager> {
    let local = ["localhost", "127.0.0.1", "[::1]"].map(|host| format!("http://{host}:*"));
    let origins = local.into_iter().chain(origins);
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        // The gate has checked the host, and more strictly.
        .disable_allowed_hosts()
        .with_allowed_origins(origins)
        .enforce_origin_validation()
        .with_max_request_body_bytes(limits.body_bytes);
    let handler = move || Ok(Handler::new(served.clone()));
    StreamableHttpService::new(handler, Arc::default(), config)
}

#[cfg(test)]
mod tests;
