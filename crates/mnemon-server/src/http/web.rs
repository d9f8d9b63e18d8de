//! The web page: routes for the pages of `mnemon-web`, which call operations as their routes do.

mod calls;
mod numbers;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, get, on};
use http_body_util::BodyExt;
use mnemon_core::Tenant;
use mnemon_engine::access::{Caller, Rights};
use mnemon_operations::operation::routes::{Endpoint, endpoints};
use mnemon_operations::wiring;
use mnemon_web::{Answer, Demo, Failure, Page, Visit, Visitor};

use self::calls::Calls;
use super::api::{self, Api, Audited};
use super::caller::Lock;
use super::metrics::Metrics;
use super::request_fields;
use super::sessions::{SessionId, Sessions};

/// What the pages work with.
pub(super) struct Web {
    pub(super) api: Arc<Api>,
    pub(super) lock: Arc<Lock>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) sessions: Arc<Sessions>,
    /// Whether connections are encrypted.
    pub(super) is_tls: bool,
}

/// Whether a route is one of a page.
pub(super) fn is_page(request: &Request) -> bool {
    let path = request.extensions().get::<MatchedPath>();
    let path = path.map_or("", MatchedPath::as_str);
    path == mnemon_web::SIGN_OUT || mnemon_web::PAGES.iter().any(|page| page.path == path)
}

/// Whether a browser asks for a page that does not exist. Its session counts, so that the answer is a
/// page as well.
pub(super) fn is_missing_page(request: &Request) -> bool {
    let is_unknown = request.extensions().get::<MatchedPath>().is_none();
    is_unknown && request.method().is_safe() && wants_html(request.headers(), request.uri().path())
}

fn wants_html(headers: &HeaderMap, path: &str) -> bool {
    let accepted = headers.get(header::ACCEPT);
    let accepted = accepted.and_then(|kinds| kinds.to_str().ok());
    accepted.is_some_and(|kinds| kinds.contains("text/html")) && !path.starts_with("/v1/")
}

/// Whether a path may be read without a key: the parts of the pages that hold nothing of anybody.
pub(super) fn is_open(path: &str) -> bool {
    path == mnemon_web::SIGN_IN || mnemon_web::ASSETS.iter().any(|(known, ..)| *known == path)
}

/// The answer to a visitor of a page who has not signed in.
pub(super) fn ask_to_sign_in(request: &Request) -> Response {
    let is_read = request.method().is_safe();
    match is_read {
        true => {
            let to = request
                .uri()
                .path_and_query()
                .map_or("/", |path| path.as_str());
            let to: String =
                percent_encoding::utf8_percent_encode(to, percent_encoding::NON_ALPHANUMERIC)
                    .collect();
            see(&format!("{}?to={to}", mnemon_web::SIGN_IN))
        }
        false => {
            let what = "the session has ended; sign in again";
            failed(None, &Failure::new(401, "unauthorized", what))
        }
    }
}

pub(super) fn router(web: Web) -> Router {
    let endpoints = endpoints().into_iter().map(|endpoint| {
        let route = &endpoint.route;
        (
            format!("{} {}", route.method.as_str(), route.path),
            Arc::new(endpoint),
        )
    });
    let site = Arc::new(Site {
        web,
        endpoints: endpoints.collect(),
    });
    let mut router = Router::new();
    for one in mnemon_web::PAGES {
        let method = match one.method {
            "POST" => MethodFilter::POST,
            _ => MethodFilter::GET,
        };
        let site = site.clone();
        let handler = move |request: Request| async move { site.answer(one, request).await };
        router = router.route(one.path, on(method, handler));
    }
    for (path, kind, text) in mnemon_web::ASSETS {
        router = router.route(path, get(move || async move { asset(kind, text) }));
    }
    let (form, enter, leave, missing) = (site.clone(), site.clone(), site.clone(), site);
    let missing = move |request: Request| async move { missing.missing(request) };
    let form = get(move |request: Request| async move { form.sign_in_form(&request) });
    let enter = form.post(move |request: Request| async move { enter.sign_in(request).await });
    let leave = on(MethodFilter::POST, move |request: Request| async move {
        leave.sign_out(request).await
    });
    router
        .route(mnemon_web::SIGN_IN, enter)
        .route(mnemon_web::SIGN_OUT, leave)
        .fallback(missing)
}

/// The names of assets change with their content, so that they can be kept for ever.
fn asset(kind: &'static str, text: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
    ];
    (headers, text).into_response()
}

fn page(status: StatusCode, html: String) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, mnemon_web::POLICY),
        // With `no-referrer` browsers would hide the origin of our own forms.
        (header::REFERRER_POLICY, "same-origin"),
    ];
    (status, headers, html).into_response()
}

/// The page for a request that failed.
fn failed(visitor: Option<&Visitor>, failure: &Failure) -> Response {
    let status = StatusCode::from_u16(failure.status);
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = page(status, mnemon_web::failed(visitor, failure));
    if let Some(seconds) = failure.retry_seconds {
        let headers = response.headers_mut();
        headers.insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

fn see(location: &str) -> Response {
    // Everything in it is percent-encoded.
    let location = HeaderValue::from_str(location).unwrap_or(HeaderValue::from_static("/"));
    (StatusCode::SEE_OTHER, [(header::LOCATION, location)]).into_response()
}

fn with_cookie(mut response: Response, cookie: &str) -> Response {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

/// The pages with the operations that they may call.
struct Site {
    web: Web,
    endpoints: HashMap<String, Arc<Endpoint>>,
}

impl Site {
    async fn answer(&self, one: &'static Page, request: Request) -> Response {
        let (mut head, body) = request.into_parts();
        // The gate has read and counted the body.
        let body = body.collect().await.map(|body| body.to_bytes());
        let (Some(caller), Ok(body)) = (head.extensions.remove::<Caller>(), body) else {
            let failure = Failure::new(400, "incomplete", "the request ends before its body does");
            return failed(None, &failure);
        };
        let session = head.extensions.remove::<SessionId>().unwrap_or_default();
        let is_loading = one.method == "POST" && one.path == "/demo";
        let (caller, visitor) = self.visitor(is_loading, caller, &session, &head.headers);
        let form = pairs(&String::from_utf8_lossy(&body));
        if one.method == "POST" && !self.is_own_form(&session, &form) {
            return forged(Some(&visitor));
        }
        let Ok(path) = request_fields::path_fields(&mut head).await else {
            return no_page(&visitor);
        };
        let calls = Calls::new(self, caller);
        let visit = Visit {
            api: &calls,
            visitor: &visitor,
            path,
            query: pairs(head.uri.query().unwrap_or_default()),
            form,
        };
        let answer = (one.run)(&visit).await;
        let is_secure = self.is_secure(&head.headers);
        let mut response = match answer {
            Ok(Answer::Html(html)) => page(StatusCode::OK, html),
            Ok(Answer::Unchanged) => StatusCode::NO_CONTENT.into_response(),
            Ok(Answer::See(location)) => see(&location),
            Ok(Answer::ShowDemo(is_shown, location)) => {
                let cookie = self.web.sessions.demo_cookie(&session, is_shown, is_secure);
                with_cookie(see(&location), &cookie)
            }
            Err(failure) => failed(Some(&visitor), &failure),
        };
        if calls.has_recorded.load(Ordering::Relaxed) {
            response.extensions_mut().insert(Audited);
        }
        response
    }

    /// The answer to a request without a route: a page for browsers, a problem for programs.
    fn missing(&self, request: Request) -> Response {
        let (mut head, _) = request.into_parts();
        let caller = head.extensions.remove::<Caller>();
        match caller.filter(|_| wants_html(&head.headers, head.uri.path())) {
            Some(caller) => {
                let session = head.extensions.remove::<SessionId>().unwrap_or_default();
                let (_, visitor) = self.visitor(false, caller, &session, &head.headers);
                no_page(&visitor)
            }
            None => super::unknown_route().into_response(),
        }
    }

    /// Who visits, and the caller of its operations: that of the demonstration's tenant where the
    /// pages show it.
    fn visitor(
        &self,
        is_loading: bool,
        mut caller: Caller,
        session: &SessionId,
        headers: &HeaderMap,
    ) -> (Caller, Visitor) {
        let demo_tenant: Option<Tenant> = mnemon_web::DEMO_TENANT.parse().ok();
        let is_operator = caller.rights == Rights::Admin
            && caller.user.is_none()
            && caller.tenant == self.web.api.config().tenant.value;
        let demo = match demo_tenant {
            Some(tenant) if is_operator && caller.tenant != tenant => {
                let is_shown = is_loading || self.web.sessions.shows_demo(session, headers);
                if is_shown {
                    caller.tenant = tenant;
                }
                if is_shown { Demo::Shown } else { Demo::Offered }
            }
            _ => Demo::No,
        };
        let visitor = Visitor {
            name: caller.name.clone(),
            tenant: caller.tenant.to_string(),
            user: caller.user.clone(),
            may_write: caller.rights >= Rights::Write,
            is_admin: caller.rights >= Rights::Admin,
            is_signed_in: session.is_some(),
            demo,
            token: self.web.sessions.token(session),
        };
        (caller, visitor)
    }

    fn is_own_form(&self, session: &SessionId, form: &[(String, String)]) -> bool {
        let sent = form.iter().find(|(name, _)| name == "token");
        sent.is_some_and(|(_, token)| self.web.sessions.is_token(session, token))
    }

    /// Whether cookies may only be sent over TLS. A proxy that ends TLS says so.
    fn is_secure(&self, headers: &HeaderMap) -> bool {
        let forwarded = headers.get("x-forwarded-proto");
        self.web.is_tls || forwarded.is_some_and(|scheme| scheme == "https")
    }

    fn sign_in_form(&self, request: &Request) -> Response {
        let query = pairs(request.uri().query().unwrap_or_default());
        let to = query.iter().find(|(name, _)| name == "to");
        let to = to.map_or("/", |(_, to)| to.as_str());
        let token = self.web.sessions.token(&SessionId::default());
        page(StatusCode::OK, mnemon_web::sign_in(to, &token, None))
    }

    async fn sign_in(&self, request: Request) -> Response {
        let (head, body) = request.into_parts();
        let body = body.collect().await.map(|body| body.to_bytes());
        let form = pairs(&String::from_utf8_lossy(&body.unwrap_or_default()));
        let nobody = SessionId::default();
        if !self.is_own_form(&nobody, &form) {
            return forged(None);
        }
        let field = |name: &str| form.iter().find(|(known, _)| known == name);
        let to = field("to").map_or("/", |(_, to)| to.as_str());
        let key = field("key").map_or("", |(_, key)| key.trim());
        let mut shown = HeaderMap::new();
        if let Ok(key) = HeaderValue::from_str(&format!("Bearer {key}")) {
            shown.insert(header::AUTHORIZATION, key);
        }
        let caller = match wiring::now() {
            Ok(now) => self.web.lock.caller(&shown, now).await,
            Err(error) => Err(error.to_string()),
        };
        match caller {
            Ok(caller) => match self.count_request(&caller) {
                Ok(()) => {
                    let session = self.web.sessions.begin(key);
                    let is_secure = self.is_secure(&head.headers);
                    let cookie = self.web.sessions.session_cookie(&session, is_secure);
                    with_cookie(see(own_path(to)), &cookie)
                }
                Err(failure) => failed(None, &failure),
            },
            Err(reason) => {
                tracing::info!(reason, "sign-in refused");
                let token = self.web.sessions.token(&nobody);
                let html = mnemon_web::sign_in(to, &token, Some("This key is not valid."));
                page(StatusCode::UNAUTHORIZED, html)
            }
        }
    }

    /// Counts a sign-in among the requests of its tenant.
    fn count_request(&self, caller: &Caller) -> Result<(), Failure> {
        let api = &self.web.api;
        let seat = api.seat(&caller.tenant);
        let counted = seat.and_then(|seat| api.check_request(&api.ctx(&seat, caller)?));
        counted.map_err(|error| calls::failure(api::problem_of(&error)))
    }

    async fn sign_out(&self, request: Request) -> Response {
        let (mut head, body) = request.into_parts();
        let body = body.collect().await.map(|body| body.to_bytes());
        let form = pairs(&String::from_utf8_lossy(&body.unwrap_or_default()));
        let session = head.extensions.remove::<SessionId>().unwrap_or_default();
        if !self.is_own_form(&session, &form) {
            return forged(None);
        }
        self.web.sessions.end(&session);
        let is_secure = self.is_secure(&head.headers);
        let response = with_cookie(see("/"), &self.web.sessions.no_session_cookie(is_secure));
        let demo = self.web.sessions.demo_cookie(&session, false, is_secure);
        with_cookie(response, &demo)
    }
}

/// The path to go to after signing in, if it is one of this server.
fn own_path(to: &str) -> &str {
    let is_own = to.starts_with('/')
        && !to.starts_with("//")
        && to
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    match is_own {
        true => to,
        false => "/",
    }
}

fn no_page(visitor: &Visitor) -> Response {
    let what = "this address does not lead to a page";
    failed(Some(visitor), &Failure::new(404, "not-found", what))
}

/// A form that no page of this session sent.
fn forged(visitor: Option<&Visitor>) -> Response {
    let what = "this form was not sent by a page of this session, or the server has started again \
                meanwhile: open the page again";
    failed(visitor, &Failure::new(403, "denied", what))
}

/// Fields of a query or a form.
fn pairs(text: &str) -> Vec<(String, String)> {
    let decoded = |part: &str| {
        let part = part.replace('+', " ");
        let decoded = percent_encoding::percent_decode_str(&part);
        decoded.decode_utf8_lossy().into_owned()
    };
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect()
}
