//! Errors as `application/problem+json` (RFC 9457), with codes that stay the same.

use std::error::Error as _;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use mnemon_core::{ErrorKind, Invalid, StoreError, secrets};
use serde::{Deserialize, Serialize};

use super::words;
use mnemon_operations::{Error, code};

tokio::task_local! {
    /// The request that is being answered.
    pub(super) static REQUEST: Asked;
}

/// What an error must know of its request.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) id: String,
    /// The command line of another machine asked: its user knows options, not fields.
    pub(super) by_command: bool,
}

/// The header by which the command line says so.
pub const COMMAND_HEADER: &str = "mnemon-command";

pub const MEDIA_TYPE: &str = "application/problem+json";

/// What went wrong. The client of the command line reads it back.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Problem {
    pub title: String,
    pub status: u16,
    /// A word that stays the same: programs decide by it.
    pub code: String,
    pub detail: String,
    /// Errors that this one came from, the nearest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The field that is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Seconds until it may be repeated, for the header.
    #[serde(skip)]
    pub retry: Option<u64>,
}

impl Problem {
    pub fn new(status: StatusCode, code: &str, detail: impl Into<String>) -> Self {
        Self {
            title: status.canonical_reason().unwrap_or("Error").to_owned(),
            status: status.as_u16(),
            code: code.to_owned(),
            detail: detail.into(),
            causes: Vec::new(),
            hint: None,
            field: None,
            request_id: None,
            retry: None,
        }
    }

    pub fn of(error: &Error) -> Self {
        let kind = error.kind();
        let status = StatusCode::from_u16(code::of(kind).http);
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let wrong = invalid(error);
        let detail = match wrong {
            Some(wrong) => wrong.what.clone(),
            None => error.to_string(),
        };
        Self {
            causes: causes(error),
            hint: error.hint(),
            field: wrong.map(|wrong| wrong.field.clone()),
            ..Self::new(status, &word(kind), discreet(&detail))
        }
    }

    /// The kind of error, if it is one of the engine's.
    pub fn kind(&self) -> Option<ErrorKind> {
        let mut all = ErrorKind::ALL.into_iter();
        all.find(|kind| word(*kind) == self.code)
    }
}

/// The word for a kind of error, which the JSON of the command line uses, too.
pub fn word(kind: ErrorKind) -> String {
    let word = serde_json::to_value(kind).unwrap_or_default();
    word.as_str().unwrap_or_default().to_owned()
}

/// The field that is wrong, and how.
fn invalid(error: &Error) -> Option<&Invalid> {
    use mnemon_engine::Error as Engine;
    match error {
        Error::Invalid(wrong)
        | Error::Store(StoreError::Invalid(wrong))
        | Error::Engine(Engine::Invalid(wrong) | Engine::Store(StoreError::Invalid(wrong))) => {
            Some(wrong)
        }
        _ => None,
    }
}

/// An error repeats what was sent, but no secret: it may be logged.
fn discreet(text: &str) -> String {
    secrets::mask(text, &secrets::find(text))
}

fn causes(error: &Error) -> Vec<String> {
    let mut last = error.to_string();
    let mut causes = Vec::new();
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        if !last.contains(&text) {
            causes.push(discreet(&text));
            last = text;
        }
        source = cause.source();
    }
    causes
}

impl Problem {
    /// As it is sent to this request: with its id, and in the words of its interface.
    pub(super) fn to(mut self, asked: Option<Asked>) -> Self {
        if !asked.as_ref().is_some_and(|asked| asked.by_command) {
            self.detail = words::of_api(&self.detail);
            self.hint = self.hint.map(|hint| words::of_api(&hint));
            self.field = self.field.map(|field| words::field(&field));
        }
        self.request_id = asked.map(|asked| asked.id);
        self
    }
}

impl IntoResponse for Problem {
    fn into_response(mut self) -> Response {
        self = self.to(REQUEST.try_with(Asked::clone).ok());
        let status = StatusCode::from_u16(self.status);
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        // Texts always have a JSON form.
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let kind = [(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE))];
        let mut response = (status, kind, body).into_response();
        let headers = response.headers_mut();
        // A quota of records does not recover by waiting.
        let retry = match status {
            StatusCode::SERVICE_UNAVAILABLE => Some(self.retry.unwrap_or(1)),
            StatusCode::TOO_MANY_REQUESTS => self.retry,
            _ => None,
        };
        if let Some(seconds) = retry {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
