//! The change feed: every change that the caller may see, once and in order, as server-sent events.
//!
//! The id of an event is the number of the change, so that a client that was cut goes on where it
//! was: browsers send it as `Last-Event-ID` by themselves.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Extension, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::stream;
use mnemon_core::{Change, Filter, Invalid};
use mnemon_engine::access::Caller;
use mnemon_engine::feed::Feed;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::api::{Api, problem_of};
use super::caller::Lock;
use super::metrics::{Metrics, Running};
use super::request_fields::from_query;
use mnemon_operations::Error;
use mnemon_operations::operation::routes::Seat;
use mnemon_operations::operation::{
    self, Access, Arguments, Field, Interface, Operation, Selection,
};

/// Changes that are read at a time.
const PAGE: usize = 200;
/// How often writes of other processes, and the key, are looked at.
const POLL: Duration = Duration::from_secs(1);
/// How often writes of other processes are looked at while the store announces them.
const SLOW_POLL: Duration = Duration::from_secs(10);
/// How often a line is sent to a listener for whom there is nothing.
pub(super) const ALIVE: Duration = Duration::from_secs(15);

/// Marks an answer that goes on until one of both ends it.
#[derive(Clone)]
pub(super) struct Listening;

/// Which changes, and from where on.
pub(super) fn fields() -> Vec<Field> {
    let after = "Changes after this number; 0 for all, and without it those from now on";
    let mut fields = vec![Field::whole("after", 0, i64::MAX.cast_unsigned(), after)];
    let chosen = Selection::fields().into_iter();
    fields.extend(chosen.filter(|field| field.is_on(Interface::Http)));
    fields
}

pub(super) fn router(
    api: &Arc<Api>,
    lock: &Arc<Lock>,
    stopped: &watch::Receiver<bool>,
    metrics: &Arc<Metrics>,
) -> Router {
    let (api, lock, stopped) = (api.clone(), lock.clone(), stopped.clone());
    let metrics = metrics.clone();
    let answer = move |Extension(caller): Extension<Caller>, request: Request| {
        let (api, lock, stopped) = (api.clone(), lock.clone(), stopped.clone());
        let counted = metrics.listener();
        async move {
            let (head, _) = request.into_parts();
            match listen(api, lock, caller, head, stopped, counted).await {
                Ok(response) => response,
                Err(error) => problem_of(&error).into_response(),
            }
        }
    };
    Router::new().route("/v1/changes", get(answer))
}

async fn listen(
    api: Arc<Api>,
    lock: Arc<Lock>,
    caller: Caller,
    head: Parts,
    stopped: watch::Receiver<bool>,
    counted: Running,
) -> Result<Response, Error> {
    let fields = fields();
    let mut sent = from_query(&fields, head.uri.query().unwrap_or_default())?;
    if let Some(last) = head.headers.get("last-event-id") {
        let last = last.to_str().ok().and_then(|last| last.parse::<u64>().ok());
        let wrong = || Invalid::new("last-event-id", "is not the number of a change");
        // What the client has seen goes before what it first asked for.
        sent.insert("after".to_owned(), last.ok_or_else(wrong)?.into());
    }
    let mut arguments = Arguments::check_on(Interface::Http, &fields, sent)?;
    super::api::bind(&caller, &arguments)?;
    let after = arguments.take("after").and_then(|after| after.as_u64());
    let seat = api.seat(&caller.tenant)?;
    let ctx = api.ctx(&seat, &caller)?;
    api.check_request(&ctx)?;
    let access = Access {
        memory: &seat.memory,
        ctx: &ctx,
        config: &seat.config,
        interface: Interface::Http,
        user: caller.user.as_deref(),
        agent: caller.agent.as_deref(),
        own_only: caller.user.is_some(),
        watch: &operation::unwatched,
    };
    let filter = operation::call::<Selection, _>(&access, arguments).await?;
    let feed = seat.memory.records().feed();
    let after = match after {
        Some(after) => after,
        None => feed.newest(&ctx).await?,
    };
    // A wrong number is said at once, and not in the stream.
    feed.next(&ctx, &filter, after, 1).await?;
    let mut headers = HeaderMap::new();
    if let Some(key) = head.headers.get(header::AUTHORIZATION) {
        headers.insert(header::AUTHORIZATION, key.clone());
    }
    let listener = Listener {
        api,
        lock,
        seat,
        caller,
        headers,
        filter,
        after,
        spoke: Instant::now(),
        stopped,
        _counted: counted,
    };
    let events = stream::unfold(listener, |mut listener| async move {
        let part = listener.next().await?;
        Some((Ok::<Bytes, std::convert::Infallible>(part), listener))
    });
    let kind = HeaderValue::from_static("text/event-stream");
    let headers = [(header::CONTENT_TYPE, kind)];
    let mut response = (StatusCode::OK, headers, Body::from_stream(events)).into_response();
    response.extensions_mut().insert(Listening);
    Ok(response)
}

struct Listener {
    api: Arc<Api>,
    lock: Arc<Lock>,
    seat: Arc<Seat>,
    caller: Caller,
    /// What the listener showed, which must stay valid.
    headers: HeaderMap,
    filter: Filter,
    after: u64,
    /// When something was sent last.
    spoke: Instant,
    stopped: watch::Receiver<bool>,
    _counted: Running,
}

impl Listener {
    /// The next events, or a line that says that the server is there; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        let feed = self.seat.memory.records().feed();
        loop {
            if *self.stopped.borrow() || !self.is_allowed().await {
                return None;
            }
            let tenant = &self.caller.tenant;
            let seen = feed.commits(tenant);
            let ctx = self.api.ctx(&self.seat, &self.caller).ok()?;
            let page = feed.next(&ctx, &self.filter, self.after, PAGE).await.ok()?;
            let passed = page.reached > self.after;
            self.after = page.reached;
            let mut text: String = page.changes.iter().map(event).collect();
            let is_silent = self.spoke.elapsed() >= ALIVE;
            if passed && (is_silent || !text.is_empty()) {
                // Changes that were not meant need not be read again after a cut.
                text.push_str(&format!("id: {}\n\n", self.after));
            } else if is_silent {
                text.push_str(": the server is there\n\n");
            }
            if !text.is_empty() {
                self.spoke = Instant::now();
                return Some(text.into());
            }
            if !page.more && !self.wait(&feed, seen).await {
                return None;
            }
        }
    }

    /// Waits until there may be more; `false` at the end.
    async fn wait(&mut self, feed: &Feed, seen: u64) -> bool {
        let since = Instant::now();
        loop {
            let commit = feed.next_commit(&self.caller.tenant, seen);
            let is_announced = tokio::select! {
                commit = timeout(POLL, commit) => commit.is_ok(),
                _ = self.stopped.wait_for(|stopped| *stopped) => return false,
            };
            if is_announced || !feed.hears_others() || since.elapsed() >= SLOW_POLL {
                // Writers that follow each other closely are shown together.
                sleep(Duration::from_millis(2)).await;
                return true;
            }
            if !self.is_allowed().await {
                return false;
            }
        }
    }

    /// Whether the key still allows what it allowed.
    async fn is_allowed(&self) -> bool {
        self.lock.still_allows(&self.headers, &self.caller).await
    }
}

fn event(change: &Change) -> String {
    // A change has a JSON form, and that has no line break.
    let data = serde_json::to_string(change).unwrap_or_default();
    format!("id: {}\nevent: change\ndata: {data}\n\n", change.seq)
}
