//! The web pages that may call the server, beside its own. A browser sends the origin of the page with every request
//! that could change something, so a page of another origin is refused by it.

use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use mnemon_core::Invalid;

use super::problem::Problem;

/// The origins that are allowed, beside pages of this machine.
#[derive(Debug, Clone, Default)]
pub(super) struct Origins(Vec<String>);

impl Origins {
    pub(super) fn new(named: &[String]) -> Result<Self, Invalid> {
        let named = named.iter().map(|name| {
            let origin = name.trim_end_matches('/').to_lowercase();
            match is_origin(&origin) {
                true => Ok(origin),
                false => {
                    let name = name.escape_debug();
                    let what = format!("`{name}` is not an origin: write https://NAME:PORT");
                    Err(Invalid::new("allow-origin", what))
                }
            }
        });
        named.collect::<Result<_, _>>().map(Self)
    }

    /// That the request comes from no web page, or from one that is allowed.
    pub(super) fn check(&self, headers: &HeaderMap) -> Result<(), Box<Problem>> {
        let mut sent = headers.get_all(header::ORIGIN).iter();
        let Some(origin) = sent.next() else {
            return Ok(());
        };
        let origin = origin.to_str().unwrap_or_default().to_lowercase();
        let is_allowed = is_local(&origin) || self.0.contains(&origin) || is_own(&origin, headers);
        match is_allowed && sent.next().is_none() {
            true => Ok(()),
            false => {
                let said = "pages of this origin may not call the server; its operator can allow \
                            them with --allow-origin ORIGIN";
                Err(Box::new(Problem::new(
                    StatusCode::FORBIDDEN,
                    "wrong-origin",
                    said,
                )))
            }
        }
    }
}

impl Origins {
    /// That a form comes from a page of this server. Pages of other origins may call the API only, even
    /// those of this machine: another program may serve them.
    pub(super) fn check_form(headers: &HeaderMap) -> Result<(), Box<Problem>> {
        let mut sent = headers.get_all(header::ORIGIN).iter();
        let origin = sent
            .next()
            .map(|origin| origin.to_str().unwrap_or_default());
        match origin.is_none_or(|origin| is_own(&origin.to_lowercase(), headers)) {
            true => Ok(()),
            false => {
                let said = "the form was sent by a page of another origin";
                let status = StatusCode::FORBIDDEN;
                Err(Box::new(Problem::new(status, "wrong-origin", said)))
            }
        }
    }

    /// The origin of the request, if it was named with `--allow-origin`: only its pages may read
    /// answers.
    pub(super) fn named(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(header::ORIGIN)?;
        let text = origin.to_str().ok()?.to_lowercase();
        self.0.contains(&text).then(|| origin.clone())
    }
}

/// Methods and headers that a page of a named origin may send, and headers that it may read.
const METHODS: &str = "GET, POST, PATCH, DELETE";
const SENT: &str = "authorization, content-type, idempotency-key, if-match, if-none-match, \
                    last-event-id, x-request-id";
const READ: &str = "etag, retry-after, x-request-id";

/// The answer to the question of a browser whether a page may send a request.
pub(super) fn preflight(origin: HeaderValue) -> Response {
    let headers = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, METHODS),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, SENT),
        (header::ACCESS_CONTROL_MAX_AGE, "600"),
    ];
    readable((StatusCode::NO_CONTENT, headers).into_response(), origin)
}

/// The answer, which pages of this origin may read.
pub(super) fn readable(mut response: Response, origin: HeaderValue) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    let read = HeaderValue::from_static(READ);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, read);
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    response
}

/// Whether it is a scheme, a host and perhaps a port, as browsers send it.
fn is_origin(text: &str) -> bool {
    let Ok(uri) = text.parse::<Uri>() else {
        return false;
    };
    let named = uri.scheme_str().zip(uri.authority());
    named.is_some_and(|(scheme, host)| {
        !host.as_str().contains('@') && text == format!("{scheme}://{host}")
    })
}

/// Whether it is a page of this server: the host that the request was sent to, which is checked
/// before. A proxy may end TLS, so the scheme says nothing.
fn is_own(origin: &str, headers: &HeaderMap) -> bool {
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let named = origin.split_once("://").map(|(_, named)| named);
    named.is_some() && named == host.map(str::to_lowercase).as_deref()
}

fn is_local(origin: &str) -> bool {
    let Ok(uri) = origin.parse::<Uri>() else {
        return false;
    };
    let is_http = uri.scheme_str() == Some("http");
    is_http && matches!(uri.host(), Some("localhost" | "127.0.0.1" | "[::1]"))
}
