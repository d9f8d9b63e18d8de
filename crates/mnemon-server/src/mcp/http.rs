//! MCP over HTTP: for several clients, or for one that is elsewhere.

use std::sync::Arc;

use axum::Router;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};

use super::handler::Handler;
use super::served::Served;

/// The protocol itself at `/mcp`, without sessions.
pub fn router(served: Arc<Served>, origins: &[String], body_bytes: usize) -> Router {
    let local = ["localhost", "127.0.0.1", "[::1]"].map(|host| format!("http://{host}:*"));
    let origins = local.into_iter().chain(origins.iter().cloned());
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        // The gate has checked the host, and more strictly.
        .disable_allowed_hosts()
        .with_allowed_origins(origins)
        .enforce_origin_validation()
        .with_max_request_body_bytes(body_bytes);
    let handler = move || Ok(Handler::new(served.clone()));
    let service: StreamableHttpService<Handler, NeverSessionManager> =
        StreamableHttpService::new(handler, Arc::default(), config);
    Router::new().route_service("/mcp", service)
}
