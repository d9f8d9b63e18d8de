//! Commands that run on a server: the operation is sent to its route, and the answer printed as if it
//! were of this machine.

use std::error::Error as _;
use std::path::Path;
use std::time::Duration;

use axum::body::Bytes;
use mnemon_core::{ErrorKind, Invalid, Notices};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use mnemon_operations::config::Secret;
use mnemon_operations::operation::routes::{Method, Routed, Target, is_in_path};
use mnemon_operations::operation::{Arguments, Interface, Watch};
use mnemon_operations::{Error, code, wiring};
use mnemon_server::http::events::{self, Progress};
use mnemon_server::http::problem::{COMMAND_HEADER, Problem};

/// How long the server may take for an answer; it ends a request after as long.
const TIMEOUT: Duration = Duration::from_secs(300);
/// The same for a text that takes no work.
const TEXT_TIMEOUT: Duration = Duration::from_secs(5);
/// The same for an operation that the server says the progress of.
pub(super) const LONG_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);
/// Bytes of an error that are read.
const PROBLEM_BYTES: usize = 1024 * 1024;
/// Bytes of an answer that are read.
const ANSWER_BYTES: usize = 256 * 1024 * 1024;
/// What stands in a path or a query as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// A server that has the memory.
pub(super) struct Remote {
    client: reqwest::Client,
    url: String,
    key: Option<Secret>,
}

impl Remote {
    /// The server at an address such as `http://127.0.0.1:8750`.
    pub(super) fn new(url: &str, key: Option<Secret>, ca: Option<&Path>) -> Result<Self, Error> {
        let parsed = reqwest::Url::parse(url);
        let parsed =
            parsed.map_err(|error| Invalid::new("--server", format!("is not a URL: {error}")))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(Invalid::new("--server", "must begin with http:// or https://").into());
        }
        let authorities = ca.map(authorities).transpose()?.unwrap_or_default();
        let client = wiring::http_client(TIMEOUT, &authorities);
        let client = client.map_err(|error| Error::Internal(error.to_string()))?;
        Ok(Self {
            client,
            url: url.trim_end_matches('/').to_owned(),
            key,
        })
    }

    /// Sends the operation, and reads its answer. Notices of the server become our own.
    pub(super) async fn call<O: Routed<On>, On: Target>(
        &self,
        arguments: Arguments,
        notices: &Notices,
        watch: Watch<'_>,
    ) -> Result<O::Answer, Error> {
        let route = O::ROUTE;
        let mut fields = arguments.into_fields();
        if let Some(local) = O::fields()
            .iter()
            .find(|field| field.is_local && fields.contains_key(field.name))
        {
            let option = local.spelled(Interface::CommandLine);
            return Err(Error::LocalCommand(format!("{} {option}", O::COMMAND)));
        }
        let path = path(route.path, &mut fields);
        let method = match route.method {
            Method::Get => reqwest::Method::GET,
            Method::Post => reqwest::Method::POST,
            Method::Patch => reqwest::Method::PATCH,
            Method::Delete => reqwest::Method::DELETE,
        };
        let mut request = match route.method.has_body() {
            true => self.request(method, &path).json(&Value::Object(fields)),
            false => self.request(method, &format!("{path}{}", query(&fields))),
        };
        if route.is_long {
            request = watched(request);
        }
        let answer = noted(self.sent(request, watch).await?, notices);
        O::from_json(answer).map_err(|error| self.unreadable(&error.to_string()))
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// The text at a path, such as `/metrics`.
    pub(super) async fn text(&self, path: &str) -> Result<String, Error> {
        let request = self.request(reqwest::Method::GET, path);
        let mut response = self.answered(request.timeout(TEXT_TIMEOUT)).await?;
        let body = self.body(&mut response).await?;
        String::from_utf8(body).map_err(|error| self.unreadable(&error.to_string()))
    }

    /// A whole answer.
    async fn body(&self, response: &mut reqwest::Response) -> Result<Vec<u8>, Error> {
        let mut body = Vec::new();
        while let Some(part) = self.part(response).await? {
            if body.len() + part.len() > ANSWER_BYTES {
                return Err(self.unreadable("it is too large"));
            }
            body.extend_from_slice(&part);
        }
        Ok(body)
    }

    /// Sends a request, and reads its answer: the last event, where it is watched.
    pub(super) async fn sent(
        &self,
        request: reqwest::RequestBuilder,
        watch: Watch<'_>,
    ) -> Result<Value, Error> {
        let mut response = self.answered(request).await?;
        if !is_stream(&response) {
            return self.read(&self.body(&mut response).await?);
        }
        let mut events = Events::default();
        while let Some(part) = self.part(&mut response).await? {
            events.push(&part);
            while let Some((name, data)) = events.next() {
                match name.as_str() {
                    "progress" => {
                        let Progress { done, total } = self.read(&data)?;
                        watch(done, total);
                    }
                    "error" => return Err(error_of(self.read(&data)?)),
                    "result" => return self.read(&data),
                    _ => {}
                }
            }
            if events.len() > ANSWER_BYTES {
                return Err(self.unreadable("it is too large"));
            }
        }
        Err(self.unreadable("it ends before the result"))
    }

    /// A request to a path of the server, with the key.
    pub(super) fn request(&self, method: reqwest::Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.url));
        match &self.key {
            Some(key) => request.bearer_auth(key.reveal()),
            None => request,
        }
    }

    /// The beginning of an answer that is not an error.
    pub(super) async fn answered(
        &self,
        request: reqwest::RequestBuilder,
    ) -> Result<reqwest::Response, Error> {
        let request = request.header(COMMAND_HEADER, "1");
        let mut response = request.send().await.map_err(|error| self.failed(error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let mut body = Vec::new();
        while let Some(part) = self.part(&mut response).await? {
            body.extend_from_slice(&part);
            if body.len() > PROBLEM_BYTES {
                break;
            }
        }
        match serde_json::from_slice::<Problem>(&body) {
            Ok(mut problem) => {
                if problem.status == 401 {
                    problem.hint = Some(self.key_hint().to_owned());
                }
                Err(error_of(problem))
            }
            Err(_) => {
                Err(self.unreadable(&format!("it has the status {status} and is not of Mnemon")))
            }
        }
    }

    /// What to do where the server accepts no key, or not this one.
    fn key_hint(&self) -> &'static str {
        match self.key {
            Some(_) => {
                "check the key in MNEMON_API_KEY or MNEMON_API_KEY_FILE; the log of the server says \
                 why it was refused"
            }
            None => "set MNEMON_API_KEY or MNEMON_API_KEY_FILE to a key of this server",
        }
    }

    /// The next part of an answer.
    pub(super) async fn part(
        &self,
        response: &mut reqwest::Response,
    ) -> Result<Option<Bytes>, Error> {
        response.chunk().await.map_err(|error| self.failed(error))
    }

    fn failed(&self, error: reqwest::Error) -> Error {
        let causes = std::iter::successors(error.source(), |&cause| cause.source());
        let mut causes = causes.map(ToString::to_string);
        match causes.find(|cause| cause.starts_with("invalid peer certificate")) {
            Some(cause) => Error::Remote {
                kind: ErrorKind::Unavailable,
                message: format!("the certificate of {} is not accepted", self.url),
                causes: vec![cause],
                hint: Some(
                    "set MNEMON_SERVER_CA to a file with the certificate of its authority"
                        .to_owned(),
                ),
            },
            None => Error::Server {
                url: self.url.clone(),
                // Its own words repeat the URL.
                source: Box::new(error.without_url()),
            },
        }
    }

    pub(super) fn read_value<T: DeserializeOwned>(&self, json: Value) -> Result<T, Error> {
        serde_json::from_value(json).map_err(|error| self.unreadable(&error.to_string()))
    }

    fn read<T: DeserializeOwned>(&self, json: &[u8]) -> Result<T, Error> {
        serde_json::from_slice(json).map_err(|error| self.unreadable(&error.to_string()))
    }

    pub(super) fn unreadable(&self, why: &str) -> Error {
        let what = format!("the answer of {} cannot be read: {why}", self.url);
        Error::Remote {
            kind: ErrorKind::Unavailable,
            message: what,
            causes: Vec::new(),
            hint: Some("check the URL, and that both programs have the same version".to_owned()),
        }
    }
}

/// The certificates of a file.
fn authorities(path: &Path) -> Result<Vec<u8>, Error> {
    let pem = std::fs::read(path).map_err(Error::file("read", path))?;
    let certs: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    match certs.is_ok_and(|certs| !certs.is_empty()) {
        true => Ok(pem),
        false => {
            let what = format!("{} holds no certificate in the PEM format", path.display());
            Err(Invalid::new("MNEMON_SERVER_CA", what).into())
        }
    }
}

/// The answer without the notices of the server, which become our own.
pub(super) fn noted(mut answer: Value, notices: &Notices) -> Value {
    let fields = answer.as_object_mut();
    if let Some(Value::Array(sent)) = fields.and_then(|fields| fields.remove("notices")) {
        let sent = sent.into_iter();
        let sent = sent.filter_map(|notice| notice.as_str().map(str::to_owned));
        notices.extend(sent);
    }
    answer
}

/// A request whose answer is watched, and may take long.
pub(super) fn watched(request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
    request
        .header(reqwest::header::ACCEPT, events::MEDIA_TYPE)
        .timeout(LONG_TIMEOUT)
}

fn is_stream(response: &reqwest::Response) -> bool {
    let kind = response.headers().get(reqwest::header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(events::MEDIA_TYPE.as_bytes()))
}

/// Server-sent events that have arrived.
#[derive(Default)]
struct Events(Vec<u8>);

impl Events {
    fn push(&mut self, part: &[u8]) {
        self.0.extend_from_slice(part);
    }

    /// Bytes that wait for the rest of their event.
    fn len(&self) -> usize {
        self.0.len()
    }

    /// The name and the data of the next whole event.
    fn next(&mut self) -> Option<(String, Vec<u8>)> {
        let end = self.0.windows(2).position(|pair| pair == b"\n\n")?;
        let event: Vec<u8> = self.0.drain(..end + 2).collect();
        let (mut name, mut data) = (String::new(), Vec::new());
        for line in event.split(|byte| *byte == b'\n') {
            if let Some(text) = line.strip_prefix(b"event: ") {
                name = String::from_utf8_lossy(text).into_owned();
            } else if let Some(text) = line.strip_prefix(b"data: ") {
                data.extend_from_slice(text);
            }
        }
        Some((name, data))
    }
}

/// The error that the server had, as if it had happened here.
fn error_of(problem: Problem) -> Error {
    let by_status = ErrorKind::ALL
        .into_iter()
        .find(|kind| code::of(*kind).http == problem.status);
    let kind = match (problem.kind(), problem.status) {
        (Some(kind), _) => kind,
        (None, 401 | 403) => ErrorKind::Denied,
        _ => by_status.unwrap_or(ErrorKind::Unavailable),
    };
    match problem.field {
        Some(field) if kind == ErrorKind::Invalid => Invalid::new(field, problem.detail).into(),
        _ => Error::Remote {
            kind,
            message: problem.detail,
            causes: problem.causes,
            hint: problem.hint,
        },
    }
}

/// The path with its fields, which are taken out of the others.
fn path(template: &str, fields: &mut Map<String, Value>) -> String {
    let mut taken = |part: &str| {
        let name = part.strip_prefix('{')?.strip_suffix('}')?;
        let field = fields.keys().find(|field| is_in_path(name, field))?.clone();
        fields.remove(&field)
    };
    let parts = template.split('/').map(|part| match taken(part) {
        Some(Value::Array(items)) => {
            let items: Vec<String> = items.iter().map(encoded).collect();
            items.join(",")
        }
        Some(value) => encoded(&value),
        None => part.to_owned(),
    });
    let parts: Vec<String> = parts.collect();
    parts.join("/")
}

pub(super) fn query(fields: &Map<String, Value>) -> String {
    let mut pairs = Vec::new();
    for (name, value) in fields {
        match value {
            Value::Array(items) => {
                pairs.extend(items.iter().map(|item| format!("{name}={}", encoded(item))));
            }
            value => pairs.push(format!("{name}={}", encoded(value))),
        }
    }
    match pairs.is_empty() {
        true => String::new(),
        false => format!("?{}", pairs.join("&")),
    }
}

fn encoded(value: &Value) -> String {
    let text = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    utf8_percent_encode(&text, PLAIN).to_string()
}
