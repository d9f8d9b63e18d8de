//! Whether the server runs, whether it can work, and how it does.

use std::sync::Arc;

use axum::Router;
use axum::extract::Extension;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::json;

use super::api::{Api, json_response};
use super::metrics::Metrics;
use super::problem::Problem;
use mnemon_engine::access::Caller;
use mnemon_engine::access::Rights;

pub(super) fn router(api: &Arc<Api>, metrics: &Arc<Metrics>) -> Router {
    let (api, metrics) = (api.clone(), metrics.clone());
    Router::new()
        .route(
            "/healthz",
            get(|| async { json_response(&json!({"status": "ok"})) }),
        )
        .route("/readyz", get(|| async move { ready(&api).await }))
        .route(
            "/metrics",
            get(|Extension(caller): Extension<Caller>| async move { shown(&caller, &metrics) }),
        )
}

/// Asks the store for its newest commit, which reads one row.
async fn ready(api: &Api) -> Response {
    match api.check().await {
        Ok(()) => json_response(&json!({"status": "ready"})),
        Err(error) => {
            let problem = Problem::of(&error);
            let status = StatusCode::SERVICE_UNAVAILABLE;
            Problem::new(status, &problem.code, problem.detail).into_response()
        }
    }
}

fn shown(caller: &Caller, metrics: &Metrics) -> Response {
    if caller.rights < Rights::Admin {
        let what = "this key has not the right `admin`";
        return Problem::new(StatusCode::FORBIDDEN, "denied", what).into_response();
    }
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static(kind))];
    (kind, metrics.text()).into_response()
}
