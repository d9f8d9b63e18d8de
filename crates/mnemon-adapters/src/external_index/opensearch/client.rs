//! Requests to OpenSearch: attempts, time limits, and what a refusal means.

use std::io;
use std::time::Duration;

use mnemon_core::StoreError;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, Response};
use serde_json::Value;

use crate::external_index::{IndexAccess, IndexUrl, ServerError, unavailable};
use crate::http::{self, Secret, Unread};

/// Requests for one answer, the first included. Every request may be repeated.
const ATTEMPTS: u32 = 4;
/// The wait before the second attempt; it doubles with each one.
const BACKOFF_MS: u64 = 100;
/// The longest wait, as somebody may be waiting.
const MOST_WAIT: Duration = Duration::from_secs(5);
/// Bytes of an answer: 10,000 hits of each arm, with room to spare.
const ANSWER_BYTES: usize = 64 << 20;

/// A server that is asked over HTTP.
pub(super) struct Client {
    client: reqwest::Client,
    base: String,
    place: String,
    user: Option<String>,
    password: Option<Secret>,
}

/// A request.
pub(super) struct Request {
    method: Method,
    path: String,
    body: Option<(&'static str, String)>,
}

impl Request {
    pub(super) fn get(path: String) -> Self {
        Self::new(Method::GET, path)
    }

    pub(super) fn post(path: String) -> Self {
        Self::new(Method::POST, path)
    }

    pub(super) fn put(path: String) -> Self {
        Self::new(Method::PUT, path)
    }

    fn new(method: Method, path: String) -> Self {
        let body = None;
        Self { method, path, body }
    }

    pub(super) fn json(mut self, body: &Value) -> Self {
        self.body = Some(("application/json", body.to_string()));
        self
    }

    /// JSON values, each on its line.
    pub(super) fn lines(mut self, body: String) -> Self {
        self.body = Some(("application/x-ndjson", body));
        self
    }
}

/// An answer that is JSON, whatever its status.
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) body: Value,
}

impl Reply {
    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The server's word for its error: `index_not_found_exception`.
    pub(super) fn error_type(&self) -> &str {
        error_type(&self.body)
    }
}

pub(super) fn error_type(body: &Value) -> &str {
    let word = body.pointer("/error/type").and_then(Value::as_str);
    word.unwrap_or_default()
}

/// How an attempt failed, and whether another one may succeed.
struct Failure {
    error: StoreError,
    wait: Option<Duration>,
    is_passing: bool,
}

impl Client {
    pub(super) fn new(url: &IndexUrl, access: IndexAccess) -> Result<Self, StoreError> {
        access.check(url)?;
        let scheme = if url.uses_tls { "https" } else { "http" };
        let client = http::client_of(url.timeout, &access.authorities).map_err(|error| {
            unavailable(url.as_str(), format!("no HTTP client: {error}"), error)
        })?;
        Ok(Self {
            client,
            base: format!("{scheme}://{}", url.address),
            place: url.as_str().to_owned(),
            user: access.user,
            password: access.password,
        })
    }

    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// The answer, if it is one of success.
    pub(super) async fn ask(&self, request: Request) -> Result<Value, ServerError> {
        let reply = self.reply(request).await?;
        match reply.is_success() {
            true => Ok(reply.body),
            false => Err(self.refused(reply.status, &reply.body)),
        }
    }

    /// The answer, whatever its status, as long as it is an answer of OpenSearch.
    pub(super) async fn reply(&self, request: Request) -> Result<Reply, StoreError> {
        let mut attempt = 1;
        loop {
            match self.attempt(&request).await {
                Ok(reply) => return Ok(reply),
                Err(failure) if failure.is_passing && attempt < ATTEMPTS => {
                    let wait = failure.wait;
                    let wait = wait.unwrap_or_else(|| http::backoff(BACKOFF_MS, attempt));
                    tokio::time::sleep(wait.min(MOST_WAIT)).await;
                    attempt += 1;
                }
                Err(failure) => return Err(failure.error),
            }
        }
    }

    async fn attempt(&self, request: &Request) -> Result<Reply, Failure> {
        let url = format!("{}/{}", self.base, request.path);
        let mut sent = self.client.request(request.method.clone(), url);
        if let (Some(user), Some(password)) = (&self.user, &self.password) {
            sent = sent.basic_auth(user, Some(password.reveal()));
        }
        if let Some((kind, body)) = &request.body {
            sent = sent.header(CONTENT_TYPE, *kind).body(body.clone());
        }
        let answer = sent.send().await.map_err(|error| self.unreached(error))?;
        self.read(answer).await
    }

    async fn read(&self, answer: Response) -> Result<Reply, Failure> {
        let status = answer.status().as_u16();
        let wait = http::retry_after(answer.headers());
        let body = match http::read(answer, ANSWER_BYTES).await {
            Ok(body) => body,
            Err(Unread::Failed(error)) => return Err(self.unreached(error)),
            Err(Unread::TooLarge) => {
                let what = format!("answered with more than {ANSWER_BYTES} bytes");
                return Err(self.failed(unavailable(&self.place, what, "too large"), false));
            }
        };
        if matches!(status, 429 | 500 | 502 | 503 | 504) {
            let said = self.said(&body);
            let what = format!("answered with status {status} {ATTEMPTS} times: {said}");
            let error = unavailable(&self.place, what, "status");
            return Err(Failure {
                wait,
                ..self.failed(error, true)
            });
        }
        if matches!(status, 401 | 403) && serde_json::from_slice::<Value>(&body).is_err() {
            return Err(self.failed(self.denied(status, &self.said(&body)), false));
        }
        match serde_json::from_slice(&body) {
            Ok(body) => Ok(Reply { status, body }),
            Err(error) => {
                let what = format!(
                    "answered with something that is not JSON ({error}); is it an OpenSearch \
                     server?"
                );
                Err(self.failed(unavailable(&self.place, what, error), false))
            }
        }
    }

    fn failed(&self, error: StoreError, is_passing: bool) -> Failure {
        Failure {
            error,
            wait: None,
            is_passing,
        }
    }

    fn unreached(&self, error: reqwest::Error) -> Failure {
        let what = match error.is_timeout() {
            true => {
                "did not answer in time; is the server overloaded? ?timeout_s=N in the URL \
                     waits longer"
            }
            false => "cannot be reached; start the server, or correct `index` in mnemon.toml",
        };
        let is_passing = !error.is_timeout();
        self.failed(
            unavailable(&self.place, what, error.without_url()),
            is_passing,
        )
    }

    fn said(&self, body: &[u8]) -> String {
        http::said(body, self.password.as_ref())
    }

    fn denied(&self, status: u16, said: &str) -> StoreError {
        let what = format!(
            "refused the credentials ({status}: {said}); check MNEMON_INDEX_USER, \
             MNEMON_INDEX_PASSWORD and the user's permissions"
        );
        let source = io::Error::from(io::ErrorKind::PermissionDenied);
        unavailable(&self.place, what, source)
    }

    /// What an answer means that is not one of success. It may also be that of one part of a
    /// request.
    pub(super) fn refused(&self, status: u16, body: &Value) -> ServerError {
        let reason = body.pointer("/error/reason").and_then(Value::as_str);
        let said = reason.map_or_else(|| self.said(body.to_string().as_bytes()), str::to_owned);
        let said: String = said.chars().take(300).collect();
        let error = match (status, error_type(body)) {
            (404, "index_not_found_exception") => return ServerError::Gone,
            (403, "cluster_block_exception") => StoreError::ReadOnly {
                place: self.place.clone(),
            },
            (401 | 403, _) => self.denied(status, &said),
            (_, "mapper_parsing_exception" | "strict_dynamic_mapping_exception") => {
                StoreError::Foreign {
                    place: self.place.clone(),
                    what: format!("{said}; name another index"),
                }
            }
            _ => {
                let what = format!("answered with status {status}: {said}");
                unavailable(&self.place, what, "status")
            }
        };
        error.into()
    }

    /// The error for an answer that lacks something.
    pub(super) fn unreadable(&self, lacks: &str) -> StoreError {
        let what = format!("answered without {lacks}; is it an OpenSearch server?");
        unavailable(&self.place, what, "unexpected answer")
    }
}
