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
use super::samples::Sources;
use mnemon_core::Tenant;
use mnemon_engine::access::Caller;
use mnemon_engine::access::Rights;

pub(super) fn router(sources: Sources, metrics: &Arc<Metrics>) -> Router {
    let (api, metrics) = (sources.api.clone(), metrics.clone());
    let sources = Arc::new(sources);
    Router::new()
        .route(
            "/healthz",
            get(|| async { json_response(&json!({"status": "ok"})) }),
        )
        .route("/readyz", get(|| async move { ready(&api).await }))
        .route(
            "/metrics",
            get(|Extension(caller): Extension<Caller>| async move {
                shown(&caller, &metrics, &sources).await
            }),
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

async fn shown(caller: &Caller, metrics: &Metrics, sources: &Sources) -> Response {
    if caller.rights < Rights::Admin {
        let what = "this key has not the right `admin`";
        return Problem::new(StatusCode::FORBIDDEN, "denied", what).into_response();
    }
    metrics.samples.take(sources).await;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static(kind))];
    let mut text = metrics.text();
    if caller.tenant != sources.api.config().tenant.value {
        // Only the operator of the server sees the names of all tenants.
        text = of_tenant(&text, &caller.tenant);
    }
    (kind, text).into_response()
}

/// The metrics of one tenant: those of the whole server would show what others do.
fn of_tenant(text: &str, tenant: &Tenant) -> String {
    let own = format!("tenant=\"{tenant}\"");
    let lines = text.lines();
    let kept = lines.filter(|line| line.starts_with('#') || line.contains(&own));
    kept.map(|line| format!("{line}\n")).collect()
}
