//! MCP at `/mcp`, for each caller within what its key allows.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Request};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use http_body_util::BodyExt;
use mnemon_core::Tenant;
use tower::ServiceExt;

use super::api::Api;
use super::problem::Problem;
use crate::mcp::{self, RemoteCaller, Served};
use mnemon_engine::access::{Amount, Caller, Rights};
use mnemon_operations::{Error, wiring};

/// Callers whose servers are kept; making one again costs little.
const KEPT: usize = 256;

/// What a server depends on.
type Key = (Tenant, Option<String>, Rights, String);

/// A server of the protocol for each caller.
pub(super) struct Callers {
    served: Arc<Served>,
    origins: Vec<String>,
    body_bytes: usize,
    /// Quotas and the audit log, where the API is served, too.
    api: Option<Arc<Api>>,
    kept: Mutex<HashMap<Key, Router>>,
}

impl Callers {
    pub(super) fn new(
        served: Arc<Served>,
        origins: Vec<String>,
        body_bytes: usize,
        api: Option<Arc<Api>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            served,
            origins,
            body_bytes,
            api,
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
        let answered = match &self.api {
            Some(api) => self.counted(api, caller, request).await,
            None => self.answered(caller, request).await,
        };
        answered.unwrap_or_else(|error| {
            let mut problem = Problem::of(&error);
            problem.retry = wiring::now().ok().and_then(|now| error.retry_seconds(now));
            problem.into_response()
        })
    }

    async fn answered(&self, caller: &Caller, request: Request) -> Result<Response, Error> {
        Ok(self.of(caller)?.oneshot(request).await.into_response())
    }

    /// Counts the call for the quotas of the tenant, and writes a line of the audit log for a tool
    /// that may change something.
    async fn counted(
        &self,
        api: &Arc<Api>,
        caller: &Caller,
        request: Request,
    ) -> Result<Response, Error> {
        let (head, body) = request.into_parts();
        // The gate has read and counted the body.
        let body = body.collect().await;
        let body = body
            .map_err(|error| Error::Internal(error.to_string()))?
            .to_bytes();
        let tool = tool_of(&body).unwrap_or_default();
        let (writes, added) = self.served.effect(&tool);
        let seat = api.seat(&caller.tenant)?;
        let ctx = api.ctx(&seat, caller)?;
        api.check_request(&ctx)?;
        if let Some(records) = added {
            let bytes = body.len() as u64;
            api.check_write(&ctx, Amount { records, bytes }).await?;
        }
        if let (true, Err(refused)) = (writes, api.check_audit()) {
            return Ok(refused.problem(&head.headers).into_response());
        }
        let (router, own, caller) = (self.of(caller)?, api.clone(), caller.clone());
        api.finish(async move {
            let request = Request::from_parts(head, Body::from(body));
            let response = router.oneshot(request).await.into_response();
            if writes {
                let status = response.status().as_u16();
                own.record(&ctx, &caller, format!("mcp {tool}"), Vec::new(), status)
                    .await;
            }
            response
        })
        .await
    }

    fn of(&self, caller: &Caller) -> Result<Router, Error> {
        let key = (
            caller.tenant.clone(),
            caller.user.clone(),
            caller.rights,
            caller.name.clone(),
        );
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(router) = kept.get(&key) {
            return Ok(router.clone());
        }
        let mut config = self.served.config().clone();
        config.tenant.value = caller.tenant.clone();
        config.actor.value = format!("http:{}", caller.name);
        let remote = RemoteCaller {
            rights: caller.rights,
            is_bound: caller.user.is_some(),
        };
        // A server that was started for one user stays one for that user.
        let user = caller.user.clone().or(self.served.bound_user());
        let served = self.served.for_caller(config, user, remote)?;
        let router = mcp::router(Arc::new(served), &self.origins, self.body_bytes);
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(key, router.clone());
        Ok(router)
    }
}

/// The tool that a message calls.
fn tool_of(message: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Message {
        method: String,
        #[serde(default)]
        params: Params,
    }
    #[derive(Default, serde::Deserialize)]
    struct Params {
        #[serde(default)]
        name: Option<String>,
    }
    let message: Message = serde_json::from_slice(message).ok()?;
    let name = message.params.name?;
    (message.method == "tools/call").then_some(name)
}
