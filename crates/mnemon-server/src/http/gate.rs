//! What a request must pass before the protocol sees it: the host, the key, the limits. No body is
//! read of a request that has not shown the key.

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body as _, Frame, SizeHint};
use mnemon_engine::access::{Caller, Rights};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::caller::Lock;
use super::changes::Listening;
use super::connections::Connection;
use super::hosts::Hosts;
use super::import;
use super::limits::HttpLimits;
use super::origins::{Origins, preflight, readable};
use super::problem::{Problem, REQUEST};
use super::sessions::{SessionId, Sessions};
use super::shares::{OverShare, Share, Shares};
use super::web;
use mnemon_operations::operation::routes::endpoints;
use mnemon_operations::wiring;

/// Bodies are counted in units of so many bytes, as semaphores count no further than `u32`.
const UNIT: usize = 1024;
/// Bytes that a value of JSON takes once it is parsed, besides its text.
const VALUE_BYTES: usize = 32;

/// Paths that may be read without a key: they hold nothing of anybody.
const OPEN: &[&str] = &[
    "/healthz",
    "/readyz",
    "/openapi.json",
    "/docs",
    "/docs/reference.js",
    "/docs/reference.css",
];

/// Paths that may be read under any host: probes of orchestrators use the address of a container.
const HEALTH: &[&str] = &["/healthz", "/readyz"];

pub(super) struct Gate {
    hosts: Hosts,
    origins: Origins,
    lock: Arc<Lock>,
    limits: HttpLimits,
    requests: Arc<Semaphore>,
    /// Answers that go on until one of both ends them.
    listeners: Arc<Semaphore>,
    listener_shares: Shares,
    /// Routes with a body that only read, by method and path.
    reading: HashSet<(&'static str, &'static str)>,
    bodies: Arc<Semaphore>,
    /// Sessions of the web page, where it is served.
    sessions: Option<Arc<Sessions>>,
}

/// Bytes of the form that asks for a key.
const SIGN_IN_BYTES: usize = 16 * 1024;
/// The longest form of another page.
const FORM_BYTES: usize = 64 * 1024;

impl Gate {
    pub(super) fn new(hosts: Hosts, origins: Origins, lock: Arc<Lock>, limits: HttpLimits) -> Self {
        Self {
            hosts,
            origins,
            lock,
            requests: Arc::new(Semaphore::new(limits.requests)),
            listeners: Arc::new(Semaphore::new(limits.listeners)),
            listener_shares: Shares::new(limits.caller_listeners, limits.tenant_listeners),
            reading: reading().collect(),
            bodies: Arc::new(Semaphore::new(limits.bodies_bytes / UNIT)),
            limits,
            sessions: None,
        }
    }

    /// With the web page, whose visitors may show a session in place of a key.
    #[must_use]
    pub(super) fn sessions(mut self, sessions: Option<Arc<Sessions>>) -> Self {
        self.sessions = sessions;
        self
    }

    /// Who sent the request, and in which session of the web page. Only pages take a session: their
    /// forms have tokens, which the API has not.
    async fn caller(
        &self,
        headers: &HeaderMap,
        is_page: bool,
    ) -> Result<(Caller, SessionId), String> {
        let now = wiring::now().map_err(|error| error.to_string())?;
        let sessions = self.sessions.as_ref().filter(|_| is_page);
        let session = sessions.and_then(|sessions| sessions.of(headers));
        match session.filter(|_| !headers.contains_key(header::AUTHORIZATION)) {
            Some((session, shown)) => Ok((self.lock.caller(&shown, now).await?, session)),
            None => Ok((self.lock.caller(headers, now).await?, SessionId::default())),
        }
    }

    /// Lets the form through that asks for a key, which nobody has shown yet.
    async fn sign_in(&self, request: Request, next: Next) -> Response {
        let (head, body) = request.into_parts();
        match self.read(body, SIGN_IN_BYTES, None).await {
            Ok((body, _room)) => next.run(Request::from_parts(head, body.into())).await,
            Err(refused) => refused.into_response(),
        }
    }

    /// Room for a body or an answer that goes on for long, and the caller's share of it.
    fn listener(&self, caller: &Caller) -> Result<(OwnedSemaphorePermit, Share), Refusal> {
        let permit = self.listeners.clone().try_acquire_owned();
        let permit = permit.map_err(|_| Refusal::TooMany)?;
        let share = self.listener_shares.take(caller);
        Ok((permit, share.map_err(Refusal::TooManyListeners)?))
    }

    /// The whole body, and the room it takes among all bodies. Bytes count when they arrive, so that
    /// a client that only announces a large body takes no room from others.
    async fn read(
        &self,
        body: Body,
        most: usize,
        mut values: Option<JsonValues>,
    ) -> Result<(Vec<u8>, Option<OwnedSemaphorePermit>), Refusal> {
        let said = body.size_hint().lower();
        if usize::try_from(said).is_ok_and(|said| said > most) {
            return Err(Refusal::TooLarge(most));
        }
        let reading = async {
            let (mut read, mut room) = (Vec::new(), None);
            let mut body = Limited::new(body, most);
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|error| match error.is::<LengthLimitError>() {
                    true => Refusal::TooLarge(most),
                    false => Refusal::Incomplete,
                })?;
                if let Some(data) = frame.data_ref() {
                    read.extend_from_slice(data);
                    let values = values.as_mut().map_or(0, |values| values.count(data));
                    if values > self.limits.body_values {
                        return Err(Refusal::TooManyValues(self.limits.body_values));
                    }
                    self.make_room(read.len() + values * VALUE_BYTES, &mut room)?;
                }
            }
            Ok((read, room))
        };
        let read = timeout(self.limits.body_timeout, reading).await;
        read.unwrap_or(Err(Refusal::TooSlow))
    }

    /// How many bytes the body may have: few where nothing is written.
    fn body_limit(&self, caller: &Caller, request: &Request) -> usize {
        let path = request.extensions().get::<MatchedPath>();
        let route = path.map(|path| (request.method().as_str(), path.as_str()));
        let is_page = |path: &str| !path.starts_with("/v1/") && path != "/mcp";
        if route.is_some_and(|(_, path)| is_page(path)) {
            return FORM_BYTES.min(self.limits.body_bytes);
        }
        let only_reads = caller.rights == Rights::Read
            || route.is_some_and(|(method, path)| self.reading.contains(&(method, path)));
        match only_reads {
            true => self.limits.read_body_bytes.min(self.limits.body_bytes),
            false => self.limits.body_bytes,
        }
    }

    /// Enough room for so many bytes in all.
    fn make_room(
        &self,
        bytes: usize,
        room: &mut Option<OwnedSemaphorePermit>,
    ) -> Result<(), Refusal> {
        let has = room.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let lacking = bytes.div_ceil(UNIT).saturating_sub(has);
        if lacking == 0 {
            return Ok(());
        }
        let lacking = u32::try_from(lacking).unwrap_or(u32::MAX);
        let more = self.bodies.clone().try_acquire_many_owned(lacking);
        let more = more.map_err(|_| Refusal::TooLargeTogether)?;
        match room {
            Some(room) => room.merge(more),
            None => *room = Some(more),
        }
        Ok(())
    }
}

/// Routes with a body that only read.
fn reading() -> impl Iterator<Item = (&'static str, &'static str)> {
    let routes = endpoints().into_iter().map(|endpoint| endpoint.route);
    routes
        .filter(|route| route.right == Rights::Read && route.method.has_body())
        .map(|route| (route.method.as_str(), route.path))
}

/// Counts the values in JSON as it arrives: each takes memory of its own once it is parsed.
#[derive(Default)]
pub(super) struct JsonValues {
    count: usize,
    is_in_text: bool,
    is_escaped: bool,
}

impl JsonValues {
    /// The values up to the end of this part.
    pub(super) fn count(&mut self, part: &[u8]) -> usize {
        for byte in part {
            match (self.is_in_text, byte) {
                (true, _) if self.is_escaped => self.is_escaped = false,
                (true, b'\\') => self.is_escaped = true,
                (_, b'"') => self.is_in_text = !self.is_in_text,
                (false, b',' | b':' | b'[' | b'{') => self.count += 1,
                _ => {}
            }
        }
        self.count
    }
}

/// Why a request is not let through although it showed the key.
enum Refusal {
    TooMany,
    /// So many listeners of this key, or of its tenant, are there.
    TooManyListeners(OverShare),
    /// The body holds more than so many values.
    TooManyValues(usize),
    /// The body has more than so many bytes.
    TooLarge(usize),
    TooLargeTogether,
    Incomplete,
    TooSlow,
}

impl IntoResponse for Refusal {
    /// The connection ends, as the rest of the request may still be on its way.
    fn into_response(self) -> Response {
        let (status, code, said) = match self {
            Self::TooMany => (
                StatusCode::SERVICE_UNAVAILABLE,
                "busy",
                "too many requests are being worked on; try again in a second".to_owned(),
            ),
            Self::TooManyListeners(OverShare { of, most }) => (
                StatusCode::TOO_MANY_REQUESTS,
                "too-often",
                format!("this {of} has {most} listeners, which is the limit; close one"),
            ),
            Self::TooManyValues(most) => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "too-large",
                format!("the request body holds more than {most} values"),
            ),
            Self::TooLarge(most) => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "too-large",
                format!("the request body has more than {most} bytes"),
            ),
            Self::TooLargeTogether => (
                StatusCode::SERVICE_UNAVAILABLE,
                "busy",
                "the requests being worked on are too large together; try again in a second"
                    .to_owned(),
            ),
            Self::Incomplete => (
                StatusCode::BAD_REQUEST,
                "incomplete",
                "the request ends before its body does".to_owned(),
            ),
            Self::TooSlow => (
                StatusCode::REQUEST_TIMEOUT,
                "timeout",
                "the request body took too long to arrive".to_owned(),
            ),
        };
        let mut response = Problem::new(status, code, said).into_response();
        let close = header::HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
        response
    }
}

/// Lets a request through, or says why not; pages of named origins may read the answer.
pub(super) async fn admit(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    let origin = gate.origins.named(request.headers());
    let is_question = request.method() == Method::OPTIONS
        && request
            .headers()
            .contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    match origin {
        Some(origin) if is_question => match gate.hosts.check(request.headers(), request.uri()) {
            Ok(()) => preflight(origin),
            Err(refused) => refused.into_response(),
        },
        Some(origin) => readable(checked(&gate, request, next).await, origin),
        None => checked(&gate, request, next).await,
    }
}

async fn checked(gate: &Gate, mut request: Request, next: Next) -> Response {
    let connection = request.extensions_mut().remove::<Arc<Connection>>();
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let hosts = match is_read && HEALTH.contains(&request.uri().path()) {
        true => Ok(()),
        false => gate.hosts.check(request.headers(), request.uri()),
    };
    if let Err(refused) = hosts.and_then(|()| gate.origins.check(request.headers())) {
        return refused.into_response();
    }
    let path = request.uri().path();
    if is_read && (OPEN.contains(&path) || web::is_open(path)) {
        return next.run(request).await;
    }
    let is_sign_in = request.method() == Method::POST && path == mnemon_web::SIGN_IN;
    let is_page = web::is_page(&request) || web::is_missing_page(&request);
    let is_page = gate.sessions.is_some() && is_page;
    if (is_page || is_sign_in)
        && let Err(refused) = Origins::check_form(request.headers())
    {
        return refused.into_response();
    }
    if is_sign_in {
        return gate.sign_in(request, next).await;
    }
    let (caller, session) = match gate.caller(request.headers(), is_page).await {
        Ok(found) => found,
        Err(reason) if is_page => {
            tracing::info!(reason, "unauthorized");
            return web::ask_to_sign_in(&request);
        }
        Err(reason) => return unauthorized(&reason),
    };
    request.extensions_mut().insert(caller.clone());
    request.extensions_mut().insert(session);
    if gate.requests.available_permits() == 0 {
        return Refusal::TooMany.into_response();
    }
    let is_streamed =
        request.method() == Method::POST && request.uri().path() == import::ROUTE.path;
    let most = gate.body_limit(&caller, &request);
    let values = is_json(request.headers()).then(JsonValues::default);
    let (head, body) = request.into_parts();
    let (body, room) = match is_streamed {
        // It is read while it is worked on.
        true => (body, None),
        false => match gate.read(body, most, values).await {
            Ok((body, room)) => (body.into(), room),
            Err(refused) => return refused.into_response(),
        },
    };
    // Until here the connection may be closed to make room: a body that never ends keeps nobody out.
    let Ok(permit) = gate.requests.clone().try_acquire_owned() else {
        return Refusal::TooMany.into_response();
    };
    let mut work = Work::begin(connection, (permit, room), &gate.limits);
    if is_streamed {
        match gate.listener(&caller) {
            Ok((permit, share)) => work.listen(permit, share),
            Err(refused) => return refused.into_response(),
        }
    }
    let mut answer = next.run(Request::from_parts(head, body)).await;
    if answer.extensions_mut().remove::<Listening>().is_some() {
        match gate.listener(&caller) {
            Ok((permit, share)) => work.listen(permit, share),
            Err(refused) => return refused.into_response(),
        }
    }
    answer.map(|body| Body::new(Answer { body, _work: work }))
}

/// One answer for every credential that is refused; only the log has the reason.
fn unauthorized(reason: &str) -> Response {
    let id = REQUEST.try_with(|asked| asked.id.clone());
    tracing::info!(reason, id = id.unwrap_or_default(), "unauthorized");
    let said = "the API key is missing or not valid: send Authorization: Bearer KEY";
    Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", said).into_response()
}

pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}

/// A request that is worked on, until its answer was sent or given up.
struct Work {
    connection: Option<Arc<Connection>>,
    deadline: Option<AbortHandle>,
    _permits: (OwnedSemaphorePermit, Option<OwnedSemaphorePermit>),
    _share: Option<Share>,
}

impl Work {
    fn begin(
        connection: Option<Arc<Connection>>,
        permits: (OwnedSemaphorePermit, Option<OwnedSemaphorePermit>),
        limits: &HttpLimits,
    ) -> Self {
        let deadline = connection.as_ref().map(|connection| {
            connection.begin();
            let (connection, most) = (connection.clone(), limits.request_timeout);
            let ending = async move {
                sleep(most).await;
                connection.close();
            };
            tokio::spawn(ending).abort_handle()
        });
        Self {
            connection,
            deadline,
            _permits: permits,
            _share: None,
        }
    }
}

impl Work {
    /// It goes on without an end, and no longer counts as a request.
    fn listen(&mut self, permit: OwnedSemaphorePermit, share: Share) {
        if let Some(deadline) = self.deadline.take() {
            deadline.abort();
        }
        self._permits = (permit, None);
        self._share = Some(share);
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if let Some(deadline) = &self.deadline {
            deadline.abort();
        }
        if let Some(connection) = &self.connection {
            connection.end();
        }
    }
}

/// The body of an answer, whose request is worked on until all of it was sent.
struct Answer {
    body: Body,
    _work: Work,
}

impl hyper::body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
