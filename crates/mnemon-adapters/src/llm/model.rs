//! A model at an endpoint: paid for, retried, bounded.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use mnemon_core::budget::{Bound, Counter};
use mnemon_core::json::Schema;
use mnemon_core::limits;
use mnemon_core::llm::{Completion, Llm, LlmError, Prompt};
use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::ledger::{Ledger, LedgerError};
use super::structured::{self, without_thoughts};
use super::wire::{Provider, Quirks, Reply};
use crate::http::{self, MAX_WAIT, Secret, Unread};

/// Tokens that a service may put around a request: its template, marks of roles.
const TEMPLATE_TOKENS: u64 = 256;

/// Where a model is, and how patient we are with it.
#[derive(Debug, Clone)]
pub struct ModelConfig {
    pub provider: Provider,
    /// For an OpenAI-compatible endpoint up to and including the version.
    pub base_url: String,
    pub model: String,
    pub key: Option<Secret>,
    /// For one attempt, the whole answer included.
    pub timeout_ms: u64,
    /// Requests for one answer, the first included.
    pub attempts: u32,
    /// Wait before the second attempt; it doubles with each one.
    pub backoff_ms: u64,
    /// Requests that are under way at the same time.
    pub concurrent: usize,
}

impl ModelConfig {
    pub fn new(provider: Provider, base_url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            provider,
            base_url: base_url.into(),
            model: model.into(),
            key: None,
            timeout_ms: 60_000,
            attempts: 3,
            backoff_ms: 500,
            concurrent: 4,
        }
    }
}

/// A language model at an endpoint.
#[derive(Debug)]
pub struct Model {
    config: ModelConfig,
    url: String,
    ledger: Arc<Ledger>,
    /// Made with the first call: most commands never ask a model.
    client: OnceLock<reqwest::Client>,
    permits: Semaphore,
    waiting: AtomicUsize,
    quirks: Quirks,
}

/// How an attempt failed.
struct Failure {
    error: LlmError,
    again: Again,
    /// Whether the endpoint may have done the work, and charge for it.
    may_cost: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Again {
    Never,
    /// In other words: the endpoint did not understand a part of the request.
    AtOnce,
    AfterBackoff,
    After(Duration),
}

impl Model {
    /// A model; nothing is sent before the first call.
    pub fn new(config: ModelConfig, ledger: Arc<Ledger>) -> Self {
        Self {
            url: config.provider.url(&config.base_url),
            permits: Semaphore::new(config.concurrent.clamp(1, Semaphore::MAX_PERMITS)),
            config,
            ledger,
            client: OnceLock::new(),
            waiting: AtomicUsize::new(0),
            quirks: Quirks::default(),
        }
    }

    /// Waits for its turn, unless too many wait already.
    async fn turn(&self) -> Result<SemaphorePermit<'_>, LlmError> {
        let _place = QueuePosition::take(&self.waiting).ok_or_else(|| {
            self.unavailable(format!(
                "{} calls are already waiting for it",
                limits::LLM_WAITING
            ))
        })?;
        let permit = self.permits.acquire().await;
        permit.map_err(|_| self.unavailable("it was closed"))
    }

    /// One answer, tried as often as the configuration allows.
    async fn ask(&self, prompt: &Prompt) -> Result<Completion, LlmError> {
        let mut attempt = 1;
        loop {
            let Failure { error, again, .. } = match self.attempt(prompt).await {
                Ok(done) => return Ok(done),
                Err(failure) => failure,
            };
            let wait = match again {
                Again::Never => return Err(error),
                // Learnt at most twice, so this ends.
                Again::AtOnce => continue,
                _ if attempt >= self.config.attempts => return Err(error),
                Again::AfterBackoff => http::backoff(self.config.backoff_ms, attempt),
                Again::After(wait) if wait > MAX_WAIT => return Err(error),
                Again::After(wait) => wait,
            };
            tokio::time::sleep(wait).await;
            attempt += 1;
        }
    }

    async fn attempt(&self, prompt: &Prompt) -> Result<Completion, Failure> {
        let body = self
            .config
            .provider
            .request(&self.config.model, prompt, &self.quirks)
            .to_string();
        if body.len() > limits::LLM_PROMPT_BYTES {
            let (size, most) = (body.len(), limits::LLM_PROMPT_BYTES);
            let what = format!("it has {size} bytes, at most {most} are sent");
            return Err(Failure::never(LlmError::BadPrompt { what }));
        }
        let input = Bound.count(&body) as u64 + TEMPLATE_TOKENS;
        let output = u64::from(prompt.max_tokens);
        let charged = prompt.account.clone();
        let hold = self
            .book(move |ledger| ledger.hold(&charged, input, output))
            .await?;
        match self.send(body).await {
            Ok(reply) => {
                // An endpoint that does not count is charged by our own count, which is higher.
                let own = || (input, Bound.count(&reply.text) as u64);
                let (input_tokens, output_tokens) = reply.tokens.unwrap_or_else(own);
                self.book(move |ledger| ledger.settle(&hold, input_tokens, output_tokens))
                    .await?;
                Ok(Completion {
                    text: reply.text,
                    input_tokens,
                    output_tokens,
                    took_ms: 0,
                })
            }
            Err(failure) => {
                if !failure.may_cost {
                    self.book(move |ledger| ledger.release(&hold)).await?;
                }
                Err(failure)
            }
        }
    }

    /// The books may lie on a disk: they are kept off the threads that must not wait.
    async fn book<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Ledger) -> Result<T, LedgerError> + Send + 'static,
    ) -> Result<T, Failure> {
        let ledger = self.ledger.clone();
        let done = tokio::task::spawn_blocking(move || change(&ledger)).await;
        let done = done.map_err(|error| Failure::never(self.unavailable(error.to_string())))?;
        done.map_err(|error| {
            Failure::never(match error {
                LedgerError::Spent(what) => LlmError::Budget { what },
                other => self.unavailable(other.to_string()),
            })
        })
    }

    async fn send(&self, body: String) -> Result<Reply, Failure> {
        let request = self.client()?.post(&self.url);
        let request = request
            .header("content-type", "application/json")
            .body(body);
        let key = self.config.key.as_ref();
        let Some(request) = self.config.provider.signed(request, key) else {
            let what = "the key holds characters that cannot be sent; write it again".to_owned();
            return Err(Failure::never(self.refused(what)));
        };
        let response = request.send().await.map_err(|error| self.lost(error))?;
        let (status, wait) = (response.status(), http::retry_after(response.headers()));
        let body = http::read(response, limits::LLM_ANSWER_BYTES)
            .await
            .map_err(|unread| match unread {
                Unread::Failed(error) => self.lost(error),
                Unread::TooLarge => {
                    let most = limits::LLM_ANSWER_BYTES;
                    let what = format!("it did not end after {most} bytes");
                    Failure::costly(self.bad_answer(what), Again::Never)
                }
            })?;
        if !status.is_success() {
            return Err(self.refusal(status.as_u16(), wait, &body));
        }
        self.reply(&body)
            .map_err(|what| Failure::costly(self.bad_answer(what), Again::AfterBackoff))
    }

    fn reply(&self, body: &[u8]) -> Result<Reply, String> {
        let answer: Value =
            serde_json::from_slice(body).map_err(|_| "it is not JSON".to_owned())?;
        let mut reply = self.config.provider.read(&answer)?;
        reply.text = without_thoughts(&reply.text).to_owned();
        match reply.text.is_empty() {
            true => Err("it is empty".to_owned()),
            false => Ok(reply),
        }
    }

    fn refusal(&self, status: u16, wait: Option<Duration>, body: &[u8]) -> Failure {
        let said = http::said(body, self.config.key.as_ref());
        let again = match http::is_passing(status) {
            _ if self.quirks.learn(status, &said) => Again::AtOnce,
            true => wait.map_or(Again::AfterBackoff, Again::After),
            false => Again::Never,
        };
        let mut what = match said.is_empty() {
            true => format!("status {status}"),
            false => format!("{said} (status {status})"),
        };
        if let Again::After(wait) = again
            && wait > MAX_WAIT
        {
            what.push_str(&format!("; it asks to wait {} s", wait.as_secs()));
        }
        let error = match http::is_passing(status) {
            true => self.unavailable(what),
            false => self.refused(what),
        };
        Failure {
            error,
            again,
            // A gateway does not know what became of the request behind it.
            may_cost: matches!(status, 502 | 504),
        }
    }

    fn client(&self) -> Result<&reqwest::Client, Failure> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let timeout = Duration::from_millis(self.config.timeout_ms);
        let made = http::client(timeout).map_err(|error| {
            Failure::never(LlmError::Unavailable {
                model: self.config.model.clone(),
                what: "there is no HTTP client".to_owned(),
                source: Some(Box::new(error)),
            })
        })?;
        Ok(self.client.get_or_init(|| made))
    }

    /// The connection failed, or the answer did not arrive whole or in time.
    fn lost(&self, error: reqwest::Error) -> Failure {
        let what = match error.is_timeout() {
            true => format!("no answer within {} ms", self.config.timeout_ms),
            false => "the connection failed".to_owned(),
        };
        Failure {
            again: Again::AfterBackoff,
            may_cost: !error.is_connect(),
            error: LlmError::Unavailable {
                model: self.config.model.clone(),
                what,
                // A URL may carry a key; the error goes on without it.
                source: Some(Box::new(error.without_url())),
            },
        }
    }

    fn unavailable(&self, what: impl Into<String>) -> LlmError {
        LlmError::Unavailable {
            model: self.config.model.clone(),
            what: what.into(),
            source: None,
        }
    }

    fn refused(&self, what: String) -> LlmError {
        let model = self.config.model.clone();
        LlmError::Refused { model, what }
    }

    fn bad_answer(&self, what: String) -> LlmError {
        let model = self.config.model.clone();
        LlmError::BadAnswer { model, what }
    }
}

impl Failure {
    fn never(error: LlmError) -> Self {
        Self {
            error,
            again: Again::Never,
            may_cost: false,
        }
    }

    fn costly(error: LlmError, again: Again) -> Self {
        Self {
            error,
            again,
            may_cost: true,
        }
    }
}

/// A place among those that wait; given up when it is dropped, also by a caller that went away.
struct QueuePosition<'a>(&'a AtomicUsize);

impl<'a> QueuePosition<'a> {
    fn take(waiting: &'a AtomicUsize) -> Option<Self> {
        let before = waiting.fetch_add(1, Ordering::Relaxed);
        let place = Self(waiting);
        (before < limits::LLM_WAITING).then_some(place)
    }
}

impl Drop for QueuePosition<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What can be told about a prompt before it is sent.
fn check(prompt: &Prompt) -> Result<Option<Schema>, LlmError> {
    let wrong = |what: String| Err(LlmError::BadPrompt { what });
    let most = limits::LLM_OUTPUT_TOKENS;
    if !(1..=most).contains(&prompt.max_tokens) {
        let what = format!(
            "max_tokens is {}, it must be between 1 and {most}",
            prompt.max_tokens
        );
        return wrong(what);
    }
    let task = &prompt.account.task;
    if task.trim().is_empty() || task.chars().count() > limits::LLM_TASK_CHARS {
        let most = limits::LLM_TASK_CHARS;
        return wrong(format!(
            "its task must have between 1 and {most} characters"
        ));
    }
    if prompt.messages.is_empty() {
        return wrong("it has no messages".to_owned());
    }
    match prompt.schema.clone().map(Schema::read).transpose() {
        Ok(schema) => Ok(schema),
        Err(invalid) => wrong(invalid.to_string()),
    }
}

#[async_trait]
impl Llm for Model {
    fn model(&self) -> &str {
        &self.config.model
    }

    async fn complete(&self, prompt: &Prompt) -> Result<Completion, LlmError> {
        let begun = Instant::now();
        let done = self.answer(prompt).await?;
        let took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(Completion { took_ms, ..done })
    }
}

impl Model {
    /// The answer; with a schema, the JSON in it.
    async fn answer(&self, prompt: &Prompt) -> Result<Completion, LlmError> {
        let schema = check(prompt)?;
        let _permit = self.turn().await?;
        let first = self.ask(prompt).await?;
        let Some(schema) = schema else {
            return Ok(first);
        };
        let wrong = match structured::fit(&first.text, &schema) {
            Ok(text) => return Ok(Completion { text, ..first }),
            Err(wrong) => wrong,
        };
        let repair = structured::again(prompt, &first.text, &wrong);
        let second = self.ask(&repair).await?;
        match structured::fit(&second.text, &schema) {
            Ok(text) => Ok(Completion {
                text,
                input_tokens: first.input_tokens.saturating_add(second.input_tokens),
                output_tokens: first.output_tokens.saturating_add(second.output_tokens),
                took_ms: 0,
            }),
            Err(wrong) => Err(self.bad_answer(format!("twice, and the second time {wrong}"))),
        }
    }
}
