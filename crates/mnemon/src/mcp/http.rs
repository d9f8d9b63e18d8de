//! MCP over HTTP, at `/mcp`: for several clients, or for one that is elsewhere.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use mnemon_core::Invalid;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use subtle::ConstantTimeEq;
use tokio::net::TcpListener;

use super::handler::Handler;
use super::served::Served;
use crate::Error;
use crate::config::Secret;

/// One request, in bytes: a content at its limit, and as much again several times for escapes.
const BODY_BYTES: usize = 64 * 1024 * 1024;
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

/// Serves until the process ends. `ready` is told the address, which is of use where the port
/// was left to the system.
pub async fn serve(
    served: Served,
    address: SocketAddr,
    access: Access,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), Error> {
    access.check(address)?;
    let listener = TcpListener::bind(address)
        .await
        .map_err(|source| Error::File {
            path: address.to_string().into(),
            verb: "listened on",
            source,
        })?;
    let address = listener.local_addr().unwrap_or(address);
    let router = router(Arc::new(served), address, access);
    ready(address);
    axum::serve(listener, router)
        .await
        .map_err(|error| Error::Internal(format!("the HTTP server stopped: {error}")))
}

fn router(served: Arc<Served>, address: SocketAddr, access: Access) -> Router {
    let local = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let own = address.ip().to_string();
    let hosts = local.into_iter().chain([own]).chain(access.hosts);
    let local = ["localhost", "127.0.0.1", "[::1]"].map(|host| format!("http://{host}:*"));
    let origins = local.into_iter().chain(access.origins);
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(hosts)
        .with_allowed_origins(origins)
        .enforce_origin_validation()
        .with_max_request_body_bytes(BODY_BYTES);
    let handler = move || Ok(Handler(served.clone()));
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(handler, sessions, config);
    let key = access.key.map(Arc::new);
    Router::new()
        .route_service("/mcp", service)
        .layer(middleware::from_fn_with_state(key, authorise))
}

/// Lets pass who shows the key, if there is one.
async fn authorise(
    State(key): State<Option<Arc<Secret>>>,
    request: Request,
    next: Next,
) -> Response {
    let allowed = key.is_none_or(|key| shows(request.headers(), &key));
    if allowed {
        return next.run(request).await;
    }
    let headers = [(header::WWW_AUTHENTICATE, "Bearer")];
    let body = "an API key is needed: send Authorization: Bearer KEY\n";
    (StatusCode::UNAUTHORIZED, headers, body).into_response()
}

/// Takes as long for a wrong key as for the right one.
fn shows(headers: &HeaderMap, key: &Secret) -> bool {
    let shown = headers.get(header::AUTHORIZATION);
    let shown = shown.and_then(|value| value.as_bytes().split_first_chunk::<7>());
    let Some((scheme, shown)) = shown else {
        return false;
    };
    scheme.eq_ignore_ascii_case(b"bearer ") && bool::from(shown.ct_eq(key.reveal().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_machines_need_a_key() {
        let open: SocketAddr = "0.0.0.0:0".parse().unwrap();
        let local: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let none = Access::default();
        assert!(none.check(local).is_ok());
        let said = none.check(open).unwrap_err().to_string();
        assert!(said.contains("MNEMON_API_KEY"), "{said}");
        let with = |key: &str| Access {
            key: Some(Secret::new(key)),
            ..Access::default()
        };
        assert!(with("0123456789abcdef").check(open).is_ok());
        assert!(with("short").check(local).is_err());
    }

    #[test]
    fn only_the_key_opens() {
        let key = Secret::new("0123456789abcdef");
        let shown = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().unwrap());
            shows(&headers, &key)
        };
        assert!(shown("Bearer 0123456789abcdef"));
        assert!(shown("bearer 0123456789abcdef"));
        for wrong in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer 0123456789abcdeg",
            "Basic 0123456789abcdef",
        ] {
            assert!(!shown(wrong), "{wrong}");
        }
        assert!(!shows(&HeaderMap::new(), &key));
    }
}
