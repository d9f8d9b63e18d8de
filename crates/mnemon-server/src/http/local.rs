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
        let api = Arc::new(Api::new(memory, config).in_process());
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

#[cfg(test)]
mod tests {
    use super::*;
    use mnemon_core::Tenant;
    use mnemon_operations::operation::routes::{Endpoint, endpoints};
    use mnemon_operations::{Error, wiring};
    use std::thread::{self, ThreadId};

    fn local() -> Local {
        let config = Config::for_store("ram:");
        let memory = wiring::open(&config).unwrap().memory;
        Local::new(memory.into(), config, Caller::local(Tenant::default()))
    }

    fn endpoint(path: &str) -> Endpoint {
        let mut all = endpoints().into_iter();
        all.find(|endpoint| endpoint.route.path == path).unwrap()
    }

    /// The thread that does the work of a request.
    async fn thread_of(local: &Local, path: &str) -> ThreadId {
        let work = async { Ok(thread::current().id()) };
        local.api.carry_out(&endpoint(path), work).await.unwrap()
    }

    #[test]
    fn reads_run_on_the_thread_of_the_caller() {
        let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
        runtime.block_on(async {
            let local = local();
            let own = thread::current().id();
            assert_eq!(thread_of(&local, "/v1/search").await, own);
            assert_ne!(thread_of(&local, "/v1/records").await, own);
        });
    }

    #[tokio::test]
    async fn an_operation_that_panics_is_an_error() {
        let local = local();
        for path in ["/v1/search", "/v1/records"] {
            let work = async { panic!("a defect") };
            let done: Result<(), Error> = local.api.carry_out(&endpoint(path), work).await;
            assert!(matches!(done, Err(Error::Internal(_))), "{path}: {done:?}");
        }
    }
}
