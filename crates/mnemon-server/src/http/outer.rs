//! What every answer has: the id of its request, headers that protect browsers, a line in the log and
//! its place in the metrics.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;

use super::metrics::Metrics;
use super::problem::{Asked, COMMAND_HEADER, REQUEST};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Characters of an id that a client chose.
const ID_CHARS: usize = 128;

/// Headers of every answer, unless it has its own.
const HEADERS: &[(HeaderName, &str)] = &[
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; frame-ancestors 'none'",
    ),
];

pub(super) async fn complete(
    State(metrics): State<Arc<Metrics>>,
    request: Request,
    next: Next,
) -> Response {
    let began = Instant::now();
    let id = request_id(request.headers());
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or("other", MatchedPath::as_str).to_owned();
    let running = metrics.begin();
    #[cfg(feature = "otel")]
    let span = metrics.traces.begin(&method, &route, request.headers());
    // Errors name the id in their body, too.
    let asked = Asked {
        id: id.clone(),
        by_command: request.headers().contains_key(COMMAND_HEADER),
    };
    let mut response = REQUEST.scope(asked, next.run(request)).await;
    drop(running);
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        if !headers.contains_key(name) {
            headers.insert(name, HeaderValue::from_static(value));
        }
    }
    if let Ok(id) = HeaderValue::from_str(&id) {
        headers.insert(REQUEST_ID, id);
    }
    let (status, taken) = (response.status().as_u16(), began.elapsed());
    metrics.end(&method, &route, status, taken);
    #[cfg(feature = "otel")]
    span.end(status);
    let ms = taken.as_secs_f64() * 1000.0;
    // Neither the path nor the query is logged: they hold names and ids.
    tracing::info!(%method, %route, status, ms = (ms * 100.0).round() / 100.0, %id, "request");
    response
}

/// The id that the client sent, if it is a short printable word; otherwise a new one.
fn request_id(headers: &HeaderMap) -> String {
    let sent = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
    let is_word = |id: &&str| {
        (1..=ID_CHARS).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic())
    };
    let sent = sent.filter(is_word).map(str::to_owned);
    sent.unwrap_or_else(|| uuid::Uuid::new_v4().simple().to_string())
}
