//! MCP at `/mcp`, for each caller within what its key allows.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::{Extension, Request};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use mnemon_core::Tenant;
use tower::ServiceExt;

use super::problem::Problem;
use crate::Error;
use crate::mcp::{self, Served};
use mnemon_engine::access::Caller;
use mnemon_engine::access::Rights;

/// Callers whose servers are kept; making one again costs little.
const KEPT: usize = 256;

/// What a server depends on.
type Key = (Tenant, Option<String>, bool, String);

/// A server of the protocol for each caller.
pub(super) struct Callers {
    served: Arc<Served>,
    origins: Vec<String>,
    body_bytes: usize,
    kept: Mutex<HashMap<Key, Router>>,
}

impl Callers {
    pub(super) fn new(served: Arc<Served>, origins: Vec<String>, body_bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            served,
            origins,
            body_bytes,
            kept: Mutex::default(),
        })
    }

    pub(super) fn router(self: Arc<Self>) -> Router {
        let answer = move |Extension(caller): Extension<Caller>, request: Request| {
            let callers = self.clone();
            async move { callers.answer(&caller, request).await }
        };
        Router::new().route("/mcp", any(answer))
    }

    async fn answer(&self, caller: &Caller, request: Request) -> Response {
        match self.of(caller) {
            Ok(router) => router.oneshot(request).await.into_response(),
            Err(error) => Problem::of(&error).into_response(),
        }
    }

    fn of(&self, caller: &Caller) -> Result<Router, Error> {
        let reads = caller.rights < Rights::Write;
        let key = (
            caller.tenant.clone(),
            caller.user.clone(),
            reads,
            caller.name.clone(),
        );
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(router) = kept.get(&key) {
            return Ok(router.clone());
        }
        let mut config = self.served.config().clone();
        config.tenant.value = caller.tenant.clone();
        if let Some(user) = &caller.user {
            config.actor.value = format!("{}/{user}", config.actor.value);
        }
        // A server that was started for one user stays one for that user.
        let user = caller.user.clone().or(self.served.bound_user());
        let served = self.served.for_caller(config, user, reads)?;
        let router = mcp::router(Arc::new(served), &self.origins, self.body_bytes);
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(key, router.clone());
        Ok(router)
    }
}
