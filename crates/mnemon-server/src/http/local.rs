//! The API for a process that has opened the store itself: the same routes, without a connection.
//! The library for Python uses it, so that both ways of using it behave alike.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::middleware;
use axum::response::Response;
use mnemon_engine::Memory;
use mnemon_engine::access::Caller;
use tokio::sync::watch;
use tower::ServiceExt;

use super::api::{self, Api};
use super::caller::Lock;
use super::limits::HttpLimits;
use super::metrics::Metrics;
use super::{changes, export, import, no_route, outer};
use mnemon_operations::config::Config;

/// The routes on a memory, for one caller.
pub struct Local {
    api: Arc<Api>,
    router: Router,
    caller: Caller,
    stopping: watch::Sender<bool>,
}

impl Local {
    /// Nothing is written to an audit log: the caller could change it.
    pub fn new(memory: Arc<Memory>, mut config: Config, caller: Caller) -> Self {
        config.access.audit = None;
        let lock = Arc::new(Lock::new(caller.tenant.clone()));
        let api = Arc::new(Api::new(memory, config));
        let metrics = Arc::new(Metrics::new(Arc::default()));
        let (stopping, stopped) = watch::channel(false);
        let patience = HttpLimits::default().body_timeout;
        let router = api::router(&api)
            .merge(changes::router(&api, &lock, &stopped, &metrics))
            .merge(export::router(&api, &lock))
            .merge(import::router(&api, &lock, patience))
            .fallback(no_route)
            .layer(middleware::from_fn_with_state(metrics, outer::complete));
        Self {
            api,
            router,
            caller,
            stopping,
        }
    }

    /// The answer of a route. What it changes is changed even if nobody waits for it any longer.
    pub async fn answer(&self, mut request: Request) -> Response {
        request.extensions_mut().insert(self.caller.clone());
        match self.router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    /// Ends the feeds, and returns when nothing is being changed.
    pub async fn close(&self) {
        self.stopping.send_replace(true);
        self.api.finished().await;
    }
}
