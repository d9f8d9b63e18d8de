//! The reference of the API: `/openapi.json`, and a page that shows it without asking any other
//! server.

use std::sync::OnceLock;

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::openapi;

static DOCUMENT: OnceLock<String> = OnceLock::new();

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      frame-ancestors 'none'";

pub(super) fn router(commands: fn() -> clap::Command) -> Router {
    let document = move || DOCUMENT.get_or_init(|| openapi::document(&commands()).to_string());
    let page =
        |kind: &'static str, text: &'static str| get(move || async move { file(kind, text) });
    let html = include_str!("reference/page.html");
    let script = include_str!("reference/reference.js");
    let style = include_str!("reference/reference.css");
    Router::new()
        .route(
            "/openapi.json",
            get(move || async move { file("application/json", document()) }),
        )
        .route("/docs", page("text/html; charset=utf-8", html))
        .route(
            "/docs/reference.js",
            page("text/javascript; charset=utf-8", script),
        )
        .route(
            "/docs/reference.css",
            page("text/css; charset=utf-8", style),
        )
}

fn file(kind: &'static str, text: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(POLICY),
        ),
    ];
    (headers, text).into_response()
}
