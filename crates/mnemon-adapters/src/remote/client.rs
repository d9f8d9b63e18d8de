//! What all services have in common: a time limit, a limit on the answer, typed errors, and a key
//! that is in no message.

use std::sync::OnceLock;
use std::time::Duration;

use mnemon_core::external::ExternalHit;
use mnemon_core::longterm::LongTermError;
use reqwest::header::HeaderMap;
use reqwest::{Method, RequestBuilder, StatusCode, Url};
use serde_json::Value;

use crate::http::{self, Secret, Unread};

/// Bytes of an answer that are accepted.
const ANSWER_BYTES: usize = 4 * 1024 * 1024;

/// Where the key goes in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyHeader {
    /// `Authorization: WORD KEY`.
    Authorization(&'static str),
    /// `X-API-Key: KEY`.
    ApiKey,
}

/// A request to a service.
#[derive(Debug, Clone)]
pub(super) struct Request<'a> {
    pub(super) method: Method,
    /// Begins with a slash.
    pub(super) path: String,
    pub(super) query: Vec<(&'a str, String)>,
    pub(super) body: Option<Value>,
    /// Statuses of errors that the caller handles.
    pub(super) expected: &'a [u16],
}

impl Request<'_> {
    pub(super) fn get(path: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            query: Vec::new(),
            body: None,
            expected: &[],
        }
    }

    pub(super) fn post(path: impl Into<String>, body: Value) -> Self {
        Self {
            method: Method::POST,
            body: Some(body),
            ..Self::get(path)
        }
    }
}

/// An answer, or an error that the caller expected.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reply {
    pub(super) status: u16,
    /// `null` if the answer has no body.
    pub(super) body: Value,
}

pub(super) struct RemoteClient {
    service: String,
    base: String,
    key: Option<Secret>,
    key_header: KeyHeader,
    timeout: Duration,
    /// Made with the first request, since it reads the certificates of the system.
    client: OnceLock<reqwest::Client>,
}

impl RemoteClient {
    pub(super) fn at(
        name: &str,
        base: &str,
        key: Option<Secret>,
        key_header: KeyHeader,
        timeout: Duration,
    ) -> Self {
        Self {
            service: format!("{name} at {base}"),
            base: base.to_owned(),
            key,
            key_header,
            timeout,
            client: OnceLock::new(),
        }
    }

    /// The service and its address, for messages.
    pub(super) fn service(&self) -> &str {
        &self.service
    }

    fn client(&self) -> Result<&reqwest::Client, LongTermError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let made = http::client(self.timeout).map_err(|error| self.failed(error))?;
        Ok(self.client.get_or_init(|| made))
    }

    /// Sends the request once. A status of an error is an error unless the request expects it.
    pub(super) async fn send(&self, request: Request<'_>) -> Result<Reply, LongTermError> {
        let response = self.call(&request)?.send().await;
        let response = response.map_err(|error| self.failed(error))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = http::read(response, ANSWER_BYTES).await;
        let body = body.map_err(|unread| match unread {
            Unread::TooLarge => self.unreadable(format!("it has more than {ANSWER_BYTES} bytes")),
            Unread::Failed(error) => self.failed(error),
        })?;
        if !status.is_success() && !request.expected.contains(&status.as_u16()) {
            return Err(self.error(status, &headers, &body));
        }
        Ok(Reply {
            status: status.as_u16(),
            body: match (body.is_empty(), status.is_success()) {
                (true, _) => Value::Null,
                (false, true) => self.json(&body)?,
                // The page of an error need not be JSON.
                (false, false) => serde_json::from_slice(&body).unwrap_or_default(),
            },
        })
    }

    fn call(&self, request: &Request<'_>) -> Result<RequestBuilder, LongTermError> {
        let url = Url::parse(&format!("{}{}", self.base, request.path));
        let mut url = url.map_err(|error| self.rejected(format!("the address: {error}")))?;
        if !request.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&request.query);
        }
        let mut call = self.client()?.request(request.method.clone(), url);
        call = call.header("Accept", "application/json");
        if let Some(key) = &self.key {
            call = match self.key_header {
                KeyHeader::Authorization(word) => {
                    call.header("Authorization", format!("{word} {}", key.reveal()))
                }
                KeyHeader::ApiKey => call.header("X-API-Key", key.reveal()),
            };
        }
        Ok(match &request.body {
            Some(body) => call.json(body),
            None => call,
        })
    }

    fn json(&self, body: &[u8]) -> Result<Value, LongTermError> {
        serde_json::from_slice(body).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            self.unreadable(format!("it is not JSON (line {line}, column {column})"))
        })
    }

    fn error(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> LongTermError {
        let said = http::said(body, self.key.as_ref());
        self.status_error(status.as_u16(), &said, http::retry_after(headers))
    }

    /// The error for this status, or for a code that means the same.
    pub(super) fn status_error(
        &self,
        status: u16,
        said: &str,
        wait: Option<Duration>,
    ) -> LongTermError {
        let service = self.service.clone();
        let what = match said.is_empty() {
            true => format!("it answered {status}"),
            false => format!("it answered {status}: {said}"),
        };
        match status {
            401 | 403 => LongTermError::Refused { service, what },
            429 => LongTermError::TooOften { service, wait },
            300..=399 => LongTermError::Rejected {
                service,
                what: format!("{what}, a redirect, which is not followed; correct the address"),
            },
            code if http::is_passing(code) => LongTermError::Unavailable {
                service,
                what,
                source: None,
            },
            _ => LongTermError::Rejected { service, what },
        }
    }

    fn failed(&self, error: reqwest::Error) -> LongTermError {
        // The URL holds no key, but may hold words of a query.
        let error = error.without_url();
        let what = match (error.is_timeout(), error.is_connect()) {
            (true, _) => format!("no answer within {} s", self.timeout.as_secs_f64()),
            (_, true) => "the connection was refused or the host is unknown".to_owned(),
            _ => "the connection broke off".to_owned(),
        };
        LongTermError::Unavailable {
            service: self.service.clone(),
            what,
            source: Some(Box::new(error)),
        }
    }

    /// The answer has another form than the service's.
    pub(super) fn unreadable(&self, what: impl Into<String>) -> LongTermError {
        LongTermError::Unreadable {
            service: self.service.clone(),
            what: what.into(),
        }
    }

    /// A request that this service cannot serve.
    pub(super) fn rejected(&self, what: impl Into<String>) -> LongTermError {
        LongTermError::Rejected {
            service: self.service.clone(),
            what: what.into(),
        }
    }

    /// The list at this place of an answer; `""` is the answer itself.
    pub(super) fn list<'v>(
        &self,
        body: &'v Value,
        place: &str,
    ) -> Result<&'v [Value], LongTermError> {
        let list = body.pointer(place).and_then(Value::as_array);
        list.map(Vec::as_slice).ok_or_else(|| {
            let place = if place.is_empty() {
                "the answer"
            } else {
                place
            };
            self.unreadable(format!("{place} is not a list"))
        })
    }

    /// A text that every item of a list must have.
    pub(super) fn text(&self, item: &Value, field: &str) -> Result<String, LongTermError> {
        let text = item.get(field).and_then(Value::as_str);
        let text = text.ok_or_else(|| self.unreadable(format!("`{field}` is not a text")))?;
        Ok(text.to_owned())
    }

    /// An item with these fields as a hit.
    pub(super) fn hit(
        &self,
        item: &Value,
        id: &str,
        text: &str,
    ) -> Result<ExternalHit, LongTermError> {
        let created = item.get("created_at").and_then(Value::as_str);
        Ok(ExternalHit {
            id: self.text(item, id)?,
            text: self.text(item, text)?,
            created: created.and_then(|at| at.parse().ok()),
            ..ExternalHit::default()
        })
    }
}
