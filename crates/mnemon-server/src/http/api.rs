//! The routes under `/v1`: a request becomes the arguments of an operation, its answer JSON.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::thread;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use futures::FutureExt;
use http_body_util::BodyExt;
use mnemon_core::{Ctx, Tenant};
use mnemon_engine::Memory;
use serde_json::{Map, Value, json};
use tokio::runtime::{Handle, RuntimeFlavor};

use super::events::{self, Progress};
use super::problem::Problem;
use super::request_fields::{arguments, strong};
use super::upkeeps::Upkeeps;
use mnemon_engine::access::{Amount, Caller, Quotas, Rights};
use mnemon_operations::config::Config;
use mnemon_operations::operation::routes::{
    Endpoint, Form, Json, Method, Reach, Route, Seat, endpoints,
};
use mnemon_operations::operation::{self, Arguments, Interface, Watch};
use mnemon_operations::wiring::{AuditEvent, AuditLog};
use mnemon_operations::{Error, wiring};

/// Tenants whose seats are kept; making one again costs microseconds.
const SEATS: usize = 256;

/// What the routes work on.
pub(super) struct Api {
    pub memory: Arc<Memory>,
    config: RwLock<Config>,
    seats: Mutex<HashMap<Tenant, Arc<Seat>>>,
    quotas: RwLock<Arc<Quotas>>,
    audit: Option<Arc<AuditLog>>,
    pub(super) upkeeps: Upkeeps,
    /// Held for reading by work that goes on without its client.
    running: Arc<tokio::sync::RwLock<()>>,
    /// Where operations run. Requests may be read and refused elsewhere.
    work: Handle,
    /// Requests that are being carried out.
    pub(super) in_progress: Arc<AtomicUsize>,
    /// While there are fewer requests, a read runs where its request is read.
    pub(super) max_inline_reads: usize,
}

impl Api {
    /// Operations run on the runtime of the caller.
    pub(super) fn new(memory: Arc<Memory>, config: Config) -> Self {
        let quotas = Arc::new(wiring::quotas(&config));
        Self {
            memory,
            audit: wiring::audit_log(&config).map(Arc::new),
            quotas: RwLock::new(quotas),
            config: RwLock::new(config),
            seats: Mutex::default(),
            upkeeps: Upkeeps::default(),
            running: Arc::default(),
            work: Handle::current(),
            in_progress: Arc::default(),
            max_inline_reads: max_inline_reads(),
        }
    }

    /// For callers in this process, who wait for the answer and do nothing else meanwhile.
    pub(super) fn in_process(mut self) -> Self {
        self.max_inline_reads = usize::MAX;
        self
    }

    /// Does work to its end, even if the client hangs up: what it changes must reach the audit log.
    pub(super) async fn finish<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Error> {
        let running = self.running.clone().read_owned().await;
        let task = self.work.spawn(async move {
            let done = work.await;
            drop(running);
            done
        });
        task.await
            .map_err(|error| Error::Internal(error.to_string()))
    }

    /// Does the work of a request. While there are few, reads are done where their requests are read,
    /// until they have to wait: to hand one to another thread and back takes longer than most of them.
    /// Where there are many, these threads only read requests, and refuse those that are too many.
    pub(super) async fn carry_out<T: Send + 'static>(
        &self,
        endpoint: &Endpoint,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        let work = AssertUnwindSafe(work).catch_unwind();
        let mut work = Box::pin(work.map(|done| {
            done.unwrap_or_else(|_| Err(Error::Internal("the operation panicked".to_owned())))
        }));
        let counted = InProgress::count(&self.in_progress);
        let is_short = endpoint.route.right == Rights::Read && !endpoint.route.is_long;
        let has_others = Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread;
        if is_short && counted.before < self.max_inline_reads && has_others {
            // Another thread reads the requests of other connections meanwhile.
            let _entered = self.work.enter();
            if let Some(done) = wiring::may_block(|| work.as_mut().now_or_never()) {
                return done;
            }
        }
        let work = async move {
            let done = work.await;
            // Also where the client has hung up.
            drop(counted);
            done
        };
        self.finish(work).await.flatten()
    }

    /// Returns when no such work is left.
    pub(super) async fn finished(&self) {
        drop(self.running.write().await);
    }

    /// That the audit log can be written, before something is changed.
    pub(super) fn check_audit(&self) -> Result<(), Refused> {
        let Some(Err(error)) = self.audit.as_ref().map(|audit| audit.check()) else {
            return Ok(());
        };
        tracing::error!(%error, "the audit log cannot be written");
        let what = "the audit log of the server cannot be written, and nothing was changed";
        let status = StatusCode::SERVICE_UNAVAILABLE;
        Err(Refused::Problem(Box::new(Problem::new(
            status,
            "unavailable",
            what,
        ))))
    }

    /// Uses another configuration from the next request on.
    pub(super) fn reload(&self, config: Config) {
        let quotas = Arc::new(wiring::quotas(&config));
        *self.quotas.write().unwrap_or_else(PoisonError::into_inner) = quotas;
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        seats.clear();
    }

    pub(super) fn config(&self) -> RwLockReadGuard<'_, Config> {
        self.config.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tenant of the configuration, and others that were served lately.
    pub(super) fn tenants(&self) -> Vec<Tenant> {
        let own = self.config().tenant.value.clone();
        let seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        let others = seats.keys().filter(|tenant| **tenant != own).cloned();
        std::iter::once(own.clone()).chain(others).collect()
    }

    /// Hosts that webhooks may reach although their addresses are not public.
    pub(super) fn webhook_hosts(&self) -> Vec<String> {
        let config = self.config.read().unwrap_or_else(PoisonError::into_inner);
        config.access.webhook_hosts.clone()
    }

    /// What the operations of a tenant work on.
    pub(super) fn seat(&self, tenant: &Tenant) -> Result<Arc<Seat>, Error> {
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seat) = seats.get(tenant) {
            return Ok(seat.clone());
        }
        let config = self.config.read().unwrap_or_else(PoisonError::into_inner);
        let mut config = config.clone();
        config.tenant.value = tenant.clone();
        let agents = wiring::agents(tenant, &config.agents.value)?
            .safety(config.safety())
            .language(config.agent_language.value);
        let seat = Arc::new(Seat {
            memory: self.memory.clone(),
            agents,
            config,
        });
        if seats.len() >= SEATS {
            seats.clear();
        }
        seats.insert(tenant.clone(), seat.clone());
        Ok(seat)
    }

    /// That the store answers.
    pub(super) async fn check(&self) -> Result<(), Error> {
        let seat = self.seat(&Tenant::default())?;
        let ctx = wiring::stamp(&seat.config)?;
        self.memory.records().last_commit(&ctx, None).await?;
        Ok(())
    }

    pub(super) fn quotas(&self) -> Arc<Quotas> {
        let quotas = self.quotas.read();
        quotas.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// That the tenant has not used up its quota of requests; counts this one.
    pub(super) fn check_request(&self, ctx: &Ctx) -> Result<(), Error> {
        Ok(self.quotas().check_request(&ctx.tenant, ctx.now)?)
    }

    /// That the tenant has room for so much more; counts it.
    pub(super) async fn check_write(&self, ctx: &Ctx, added: Amount) -> Result<(), Error> {
        let records = self.memory.records();
        Ok(self.quotas().check_write(records, ctx, added).await?)
    }

    /// Writes a line of the audit log for a request that may change something.
    pub(super) async fn record(
        &self,
        ctx: &Ctx,
        caller: &Caller,
        operation: String,
        ids: Vec<String>,
        status: u16,
    ) {
        let Some(audit) = &self.audit else {
            return;
        };
        let event = AuditEvent {
            at: ctx.now,
            caller: caller.name.clone(),
            tenant: caller.tenant.clone(),
            operation,
            ids,
            status,
        };
        if let Err(error) = audit.record(event).await {
            tracing::error!(%error, "the audit log cannot be written");
            ctx.notices
                .add(format!("The audit log was not written: {error}."));
        }
    }

    /// That the key of this caller allows the route.
    pub(super) fn allow(&self, caller: &Caller, route: &Route) -> Result<(), Error> {
        if route.reach != Reach::Caller && caller.user.is_some() {
            let what = "this route concerns the whole tenant, and this key is for one user";
            return Err(Error::Forbidden(what.to_owned()));
        }
        let config = self.config.read().unwrap_or_else(PoisonError::into_inner);
        if route.reach == Reach::Server && caller.tenant != config.tenant.value {
            let what = "this route concerns all tenants, and this key is for another tenant than \
                the server";
            return Err(Error::Forbidden(what.to_owned()));
        }
        let allowed = caller.require(route.right);
        allowed.map_err(|missing| Error::Forbidden(missing.to_string()))
    }

    /// A call that this caller makes now.
    pub(super) fn ctx(&self, seat: &Seat, caller: &Caller) -> Result<Ctx, Error> {
        Ok(Ctx {
            actor: format!("http:{}", caller.name),
            ..wiring::stamp(&seat.config)?
        })
    }
}

/// As many as the cores can carry out at once.
pub(super) fn max_inline_reads() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// A request that is being carried out, and how many others were when it began.
struct InProgress {
    all: Arc<AtomicUsize>,
    before: usize,
}

impl InProgress {
    fn count(all: &Arc<AtomicUsize>) -> Self {
        let before = all.fetch_add(1, Ordering::Relaxed);
        Self {
            all: all.clone(),
            before,
        }
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        self.all.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A router with all routes of the table.
pub(super) fn router(api: &Arc<Api>) -> Router {
    let mut router = Router::new();
    for endpoint in endpoints() {
        let method = match endpoint.route.method {
            Method::Get => MethodFilter::GET,
            Method::Post => MethodFilter::POST,
            Method::Patch => MethodFilter::PATCH,
            Method::Delete => MethodFilter::DELETE,
        };
        let (api, path) = (api.clone(), endpoint.route.path);
        let endpoint = Arc::new(endpoint);
        let handler = move |request: Request| {
            let (api, endpoint) = (api.clone(), endpoint.clone());
            answer(api, endpoint, request)
        };
        router = router.route(path, on(method, handler));
    }
    router.method_not_allowed_fallback(wrong_method)
}

async fn wrong_method() -> Problem {
    let what = "this route has another method; /openapi.json lists them";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", what)
}

async fn answer(api: Arc<Api>, endpoint: Arc<Endpoint>, request: Request) -> Response {
    let name = OperationName(endpoint.name(), endpoint.route.right > Rights::Read);
    let mut response = answered(api, endpoint, request).await;
    response.extensions_mut().insert(name);
    response
}

async fn answered(api: Arc<Api>, endpoint: Arc<Endpoint>, request: Request) -> Response {
    let (mut head, body) = request.into_parts();
    // The gate has read and counted the body.
    let body = body.collect().await.map(|body| body.to_bytes());
    let Ok(body) = body else {
        let what = "the request ends before its body does";
        return Problem::new(StatusCode::BAD_REQUEST, "incomplete", what).into_response();
    };
    let call = match call_of(&api, &endpoint, &mut head, &body).await {
        Ok(call) => call,
        Err(refused) => {
            let mut response = refused.problem(&head.headers).into_response();
            response.extensions_mut().insert(NotBegun);
            return response;
        }
    };
    if endpoint.route.is_long && events::are_wanted(&head.headers) {
        return events::answer(|progress| {
            Box::pin(async move {
                let own = api.clone();
                let answer = api.finish(async move {
                    let watch = |done, total| {
                        // Nobody listens any more when the answer has ended.
                        let _ = progress.send(Progress { done, total });
                    };
                    let answer = call.run(&own, &endpoint, &watch, Form::Value).await;
                    answer.and_then(Json::into_value)
                });
                let answer = answer.await.flatten();
                answer.map_err(|error| problem_of(&error))
            })
        });
    }
    let (own, of) = (api.clone(), endpoint.clone());
    let began = Instant::now();
    let unwatched = &operation::unwatched;
    let work = async move { call.run(&own, &of, unwatched, Form::Text).await };
    let answer = api.carry_out(&endpoint, work).await;
    let took = Took(began.elapsed());
    let answer = answer.map_err(Refused::Error);
    let mut response = match answer.and_then(|answer| versioned(&endpoint, &head.headers, answer)) {
        Ok(response) => response,
        Err(refused) => refused.problem(&head.headers).into_response(),
    };
    response.extensions_mut().insert(took);
    response
}

/// The time of an operation, without its request and its answer. An extension of the answer, which
/// is not sent.
#[derive(Clone, Copy)]
pub struct Took(pub Duration);

/// The operation that an answer is of, for the audit log, and whether it may change something.
#[derive(Clone)]
struct OperationName(String, bool);

/// The answer of a page whose refusal is in the audit log already.
#[derive(Clone)]
pub(super) struct Audited;

/// The request was refused before its operation began.
#[derive(Clone)]
struct NotBegun;

/// Writes a line of the audit log for every request that a caller may not make, and for every change
/// that was refused, where there is a log.
pub(super) async fn audit_refusals(
    State(api): State<Option<Arc<Api>>>,
    request: Request,
    next: Next,
) -> Response {
    let caller = request.extensions().get::<Caller>().cloned();
    let path = request.extensions().get::<MatchedPath>().cloned();
    let method = request.method().clone();
    let response = next.run(request).await;
    let (status, extensions) = (response.status(), response.extensions());
    let name = extensions.get::<OperationName>().cloned();
    let is_change = name.as_ref().is_some_and(|name| name.1);
    let is_refused = extensions.get::<NotBegun>().is_some() && is_change;
    let is_recorded = extensions.get::<Audited>().is_some();
    if is_recorded || !is_refusal(status, is_refused) {
        return response;
    }
    let name = name.map(|name| name.0);
    if let (Some(api), Some(caller)) = (api, caller)
        && let Ok(ctx) = api.seat(&caller.tenant).and_then(|seat| api.ctx(&seat, &caller))
        // Requests of operations are counted already; more than the quota are not recorded.
        && (name.is_some() || api.check_request(&ctx).is_ok())
    {
        let status = status.as_u16();
        let path = path.as_ref().map_or("", MatchedPath::as_str);
        let name = name.unwrap_or_else(|| format!("{method} {path}"));
        api.record(&ctx, &caller, name, Vec::new(), status).await;
    }
    response
}

/// Why a request has no answer.
pub(super) enum Refused {
    Problem(Box<Problem>),
    Error(Error),
}

impl Refused {
    pub(super) fn problem(self, headers: &HeaderMap) -> Problem {
        let mut problem = match self {
            Self::Problem(problem) => return *problem,
            Self::Error(error) => problem_of(&error),
        };
        let has_precondition = headers.contains_key(header::IF_MATCH);
        if has_precondition && problem.status == StatusCode::CONFLICT.as_u16() {
            let status = StatusCode::PRECONDITION_FAILED;
            problem.status = status.as_u16();
            problem.title = status.canonical_reason().unwrap_or_default().to_owned();
        }
        problem
    }
}

impl<E: Into<Error>> From<E> for Refused {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

/// After so many seconds a tenant whose quota of records or bytes is used up may try again: waiting
/// helps only where records expire, or somebody deletes some.
const ROOM_SECONDS: u64 = 60 * 60;

/// An error as it is sent, with the time after which a retry makes sense.
pub(super) fn problem_of(error: &Error) -> Problem {
    let mut problem = Problem::of(error);
    let seconds = wiring::now().ok().and_then(|now| error.retry_seconds(now));
    let has_no_room = problem.status == StatusCode::TOO_MANY_REQUESTS.as_u16();
    problem.retry = seconds.or(has_no_room.then_some(ROOM_SECONDS));
    problem
}

/// A request that may be carried out.
struct Call {
    caller: Caller,
    seat: Arc<Seat>,
    ctx: Ctx,
    arguments: Arguments,
}

async fn call_of(
    api: &Api,
    endpoint: &Endpoint,
    head: &mut Parts,
    body: &Bytes,
) -> Result<Call, Refused> {
    let Some(caller) = head.extensions.remove::<Caller>() else {
        return Err(Error::Internal("a request has no caller".to_owned()).into());
    };
    let call = Call::admit(api, endpoint, caller)?;
    let arguments = arguments(endpoint, head, body).await?;
    call.with(api, endpoint, arguments, body.len()).await
}

/// Carries out an operation for a page of the web, as its route would. With an error comes whether
/// it is in the audit log.
pub(super) async fn call(
    api: &Arc<Api>,
    endpoint: &Arc<Endpoint>,
    caller: Caller,
    fields: Map<String, Value>,
) -> Result<Value, (Problem, bool)> {
    let named = caller.clone();
    let begun = async {
        let call = Call::admit(api, endpoint, caller)?;
        let bytes = fields.values().map(|value| value.to_string().len()).sum();
        let arguments = Arguments::check_on(Interface::Http, &endpoint.fields, fields)?;
        call.with(api, endpoint, arguments, bytes).await
    };
    let (refused, is_begun) = match begun.await {
        Ok(call) => {
            let (own, of) = (api.clone(), endpoint.clone());
            let answer = async move {
                let answer = call.run(&own, &of, &operation::unwatched, Form::Value);
                answer.await.and_then(Json::into_value)
            };
            // Not where the page is made: it asks for several answers at once.
            match api.finish(answer).await.flatten() {
                Ok(answer) => return Ok(answer),
                Err(error) => (Refused::Error(error), true),
            }
        }
        Err(refused) => (refused, false),
    };
    let problem = refused.problem(&HeaderMap::new());
    let status = StatusCode::from_u16(problem.status).unwrap_or_default();
    let is_change = endpoint.route.right > Rights::Read;
    let is_refusal = is_refusal(status, is_change && !is_begun);
    if is_refusal
        && let Ok(ctx) = api
            .seat(&named.tenant)
            .and_then(|seat| api.ctx(&seat, &named))
    {
        api.record(&ctx, &named, endpoint.name(), Vec::new(), problem.status)
            .await;
    }
    Err((problem, is_refusal))
}

/// Whether the audit log has a line for an answer that no operation has recorded.
fn is_refusal(status: StatusCode, is_refused_change: bool) -> bool {
    // Requests over a quota would fill the log.
    status == StatusCode::FORBIDDEN || is_refused_change && status != StatusCode::TOO_MANY_REQUESTS
}

impl Call {
    /// A call that the rights of its caller and the quota of requests allow, without arguments yet.
    fn admit(api: &Api, endpoint: &Endpoint, caller: Caller) -> Result<Self, Refused> {
        let seat = api.seat(&caller.tenant)?;
        let ctx = api.ctx(&seat, &caller)?;
        // Refused requests count, too: they are in the audit log.
        api.check_request(&ctx)?;
        api.allow(&caller, &endpoint.route)?;
        Ok(Self {
            caller,
            seat,
            ctx,
            arguments: Arguments::default(),
        })
    }

    /// With these arguments, whose request has so many bytes.
    async fn with(
        self,
        api: &Api,
        endpoint: &Endpoint,
        mut arguments: Arguments,
        bytes: usize,
    ) -> Result<Self, Refused> {
        let caller = &self.caller;
        bind(caller, &arguments)?;
        if arguments.flag("purge") == Some(true) {
            // Nothing brings it back.
            let allowed = caller.require(Rights::Admin);
            allowed.map_err(|missing| Error::Forbidden(format!("to purge, {missing}")))?;
        }
        own_keys(caller, &mut arguments);
        if endpoint.route.right > Rights::Read {
            api.check_audit()?;
        }
        if let Some(added) = endpoint.added(&arguments, bytes) {
            api.check_write(&self.ctx, added).await?;
        }
        Ok(Self { arguments, ..self })
    }
}

impl Call {
    /// Carries the request out, and writes it to the audit log.
    async fn run(
        self,
        api: &Api,
        endpoint: &Endpoint,
        watch: Watch<'_>,
        form: Form,
    ) -> Result<Json, Error> {
        let Self {
            caller,
            seat,
            ctx,
            arguments,
        } = self;
        let mut ids = arguments.ids();
        let answer = (endpoint.run)(&seat, &ctx, &caller, arguments, watch, form).await;
        if endpoint.route.right > Rights::Read {
            let status = match &answer {
                Ok(answer) => {
                    if let Json::Value(answer) = answer {
                        ids.extend(ids_of(answer));
                    }
                    ids.dedup();
                    StatusCode::OK.as_u16()
                }
                Err(error) => Problem::of(error).status,
            };
            if status != StatusCode::FORBIDDEN.as_u16() {
                // `audit_refusals` records the others.
                api.record(&ctx, &caller, endpoint.name(), ids, status)
                    .await;
            }
        }
        let mut answer = match answer? {
            Json::Value(answer) => answer,
            text => return Ok(text),
        };
        let is_of_user = caller.user.is_some() && endpoint.route.right > Rights::Read;
        if let (Some(fields), true) = (answer.as_object_mut(), is_of_user) {
            // Records of others may be among them. A preview has left them out itself.
            fields.remove("cascaded");
            fields.remove("evicted");
        }
        note(&ctx, &mut answer);
        Ok(Json::Value(answer))
    }
}

/// Adds the notices of a call to its answer.
pub(super) fn note(ctx: &Ctx, answer: &mut Value) {
    let notices = ctx.notices.list();
    if let (Some(fields), false) = (answer.as_object_mut(), notices.is_empty()) {
        fields.insert("notices".to_owned(), json!(notices));
    }
}

/// The answer with the version of the record that it shows, or that the client has this version.
fn versioned(endpoint: &Endpoint, headers: &HeaderMap, answer: Json) -> Result<Response, Refused> {
    let answer = match answer {
        Json::Value(answer) => answer,
        Json::Text(text) => return Ok(json_text(text)),
    };
    let answer = &answer;
    let Some(version) = version(answer) else {
        return Ok(json_response(answer));
    };
    let tag = format!("\"{version}\"");
    let is_known = |value: &HeaderValue| {
        let known = value.to_str().unwrap_or_default();
        let mut known = known.split(',').map(str::trim);
        known.any(|known| known == "*" || strong(known) == tag)
    };
    let etag = HeaderValue::from_str(&tag).map(|tag| [(header::ETAG, tag)]);
    let etag = etag.map_err(|error| Error::Internal(error.to_string()))?;
    let is_read = endpoint.route.method == Method::Get;
    let mut known = headers.get_all(header::IF_NONE_MATCH).iter();
    match is_read && known.any(is_known) {
        true => Ok((StatusCode::NOT_MODIFIED, etag).into_response()),
        false => Ok((etag, json_response(answer)).into_response()),
    }
}

pub(super) fn json_response(answer: &Value) -> Response {
    json_text(answer.to_string())
}

fn json_text(answer: String) -> Response {
    let kind = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, kind)], answer).into_response()
}

/// The version of the one record that an answer shows.
fn version(answer: &Value) -> Option<u64> {
    let record = match answer.get("records").and_then(Value::as_array) {
        Some(records) => match records.as_slice() {
            [record] => record,
            _ => return None,
        },
        None => answer,
    };
    record.get("version")?.as_u64()
}

/// Ids in an answer: of the records that it wrote, or of the record or the key that it shows.
fn ids_of(answer: &Value) -> Vec<String> {
    let lists = ["items", "documents"].into_iter();
    let items = lists.filter_map(|list| answer.get(list)?.as_array());
    let items = items.flatten().chain([answer]);
    let ids = items.filter_map(|item| item.get("id"));
    let ids = ids.chain(answer.pointer("/key/prefix"));
    ids.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// That a caller who is bound to a user or an agent names no other.
pub(super) fn bind(caller: &Caller, arguments: &Arguments) -> Result<(), Error> {
    let Some(user) = &caller.user else {
        return Ok(());
    };
    let bound = [("user", Some(user)), ("agent", caller.agent.as_ref())];
    for (field, own) in bound {
        let named = arguments.text(field);
        if named.is_some() && named.as_ref() != own {
            let what = format!("this key is for one user only; leave `{field}` out");
            return Err(Error::Forbidden(what));
        }
    }
    match arguments.text("audience") {
        Some(audience) if audience != "everyone" && audience != format!("user:{user}") => {
            let what = "this key is for one user only: `audience` may be that user or `everyone`";
            Err(Error::Forbidden(what.to_owned()))
        }
        _ => Ok(()),
    }
}

/// Idempotency keys of a caller who is bound to a user are that user's own: the same key of another
/// user is another key.
fn own_keys(caller: &Caller, arguments: &mut Arguments) {
    let Some(user) = &caller.user else {
        return;
    };
    let own = |key: &str| {
        let both = format!("{}:{user}:{key}", user.len());
        format!("user:{}", blake3::hash(both.as_bytes()).to_hex())
    };
    if let Some(key) = arguments.text("key") {
        arguments.set("key", own(&key));
    }
    if let Some(Value::Object(mut meta)) = arguments.take("meta") {
        if let Some(Value::String(key)) = meta.get_mut("idempotency_key") {
            *key = own(key);
        }
        arguments.set("meta", meta);
    }
}
