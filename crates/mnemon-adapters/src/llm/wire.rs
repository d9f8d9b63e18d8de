//! What differs between providers: where a request goes, what it says, how an answer reads.

use std::sync::atomic::{AtomicBool, Ordering};

use mnemon_core::llm::Prompt;
use reqwest::RequestBuilder;
use reqwest::header::HeaderValue;
use serde_json::Value;

use super::{anthropic, openai};
use crate::http::Secret;

/// Whose language an endpoint speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// `/chat/completions`, as many servers offer it.
    OpenAi,
    /// `/v1/messages`.
    Anthropic,
}

/// What an endpoint has shown not to understand; it is not sent again.
#[derive(Debug, Default)]
pub(super) struct Quirks {
    /// It wants `max_completion_tokens` where others want `max_tokens`.
    new_limit: AtomicBool,
    /// It does not know `response_format`.
    no_format: AtomicBool,
}

impl Quirks {
    pub(super) fn new_limit(&self) -> bool {
        self.new_limit.load(Ordering::Relaxed)
    }

    pub(super) fn no_format(&self) -> bool {
        self.no_format.load(Ordering::Relaxed)
    }

    /// Learns from a refusal. Whether the request should be put in other words.
    pub(super) fn learn(&self, status: u16, said: &str) -> bool {
        if !matches!(status, 400 | 422) {
            return false;
        }
        let first = |flag: &AtomicBool| !flag.swap(true, Ordering::Relaxed);
        if said.contains("max_completion_tokens") {
            return first(&self.new_limit);
        }
        if said.contains("response_format") || said.contains("json_schema") {
            return first(&self.no_format);
        }
        false
    }
}

/// What came back.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) text: String,
    /// As the endpoint counted them, if it did.
    pub(super) tokens: Option<(u64, u64)>,
}

impl Provider {
    /// Where requests go.
    pub(super) fn url(self, base: &str) -> String {
        let base = base.trim_end_matches('/');
        match self {
            Self::OpenAi => format!("{base}/chat/completions"),
            Self::Anthropic => format!("{}/v1/messages", base.trim_end_matches("/v1")),
        }
    }

    /// What is sent.
    pub(super) fn request(self, model: &str, prompt: &Prompt, quirks: &Quirks) -> Value {
        match self {
            Self::OpenAi => openai::request(model, prompt, quirks),
            Self::Anthropic => anthropic::request(model, prompt),
        }
    }

    /// The request with its headers; `None` if the key cannot be a header.
    pub(super) fn signed(
        self,
        request: RequestBuilder,
        key: Option<&Secret>,
    ) -> Option<RequestBuilder> {
        let mut request = request;
        if self == Self::Anthropic {
            request = request.header("anthropic-version", anthropic::VERSION);
        }
        let Some(key) = key else {
            return Some(request);
        };
        let (name, text) = match self {
            Self::OpenAi => ("authorization", format!("Bearer {}", key.reveal())),
            Self::Anthropic => ("x-api-key", key.reveal().to_owned()),
        };
        let mut value = HeaderValue::from_str(&text).ok()?;
        value.set_sensitive(true);
        Some(request.header(name, value))
    }

    /// What an answer says; the error tells what is wrong with it.
    pub(super) fn read(self, answer: &Value) -> Result<Reply, String> {
        match self {
            Self::OpenAi => openai::read(answer),
            Self::Anthropic => anthropic::read(answer),
        }
    }
}

/// Two counts in an answer.
pub(super) fn tokens(answer: &Value, input: &str, output: &str) -> Option<(u64, u64)> {
    let count = |name: &str| answer.get("usage")?.get(name)?.as_u64();
    Some((count(input)?, count(output)?))
}
