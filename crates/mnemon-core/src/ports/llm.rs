//! The port to a language model. Everything works without one.

use async_trait::async_trait;

use crate::error::ErrorKind;
use crate::model::{Ctx, Message, Tenant, Time};

/// A model that answers.
#[async_trait]
pub trait Llm: Send + Sync {
    /// Names the model, for accounts and provenance.
    fn model(&self) -> &str;

    /// Answers the prompt. It never returns an empty answer, nor one that does not fit the
    /// prompt's schema: those are errors.
    async fn complete(&self, prompt: &Prompt) -> Result<Completion, LlmError>;
}

/// What a model is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// Who pays, for what, and when.
    pub account: Account,
    pub system: Option<String>,
    pub messages: Vec<Message>,
    pub max_tokens: u32,
    /// The answer must be JSON that fits this schema.
    pub schema: Option<serde_json::Value>,
}

/// Whom a call is charged to. Budgets are kept by tenant, by task and by day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub tenant: Tenant,
    /// What it is for, in one word: `window`, `skills`.
    pub task: String,
    /// The moment of the call.
    pub at: Time,
}

impl Default for Account {
    /// Nobody's in particular, for tests and prompts that are yet to be charged.
    fn default() -> Self {
        Self {
            tenant: Tenant::default(),
            task: "other".to_owned(),
            at: Time::EPOCH,
        }
    }
}

impl Account {
    /// The account of this call's tenant for this task.
    pub fn of(ctx: &Ctx, task: &str) -> Self {
        Self {
            tenant: ctx.tenant.clone(),
            task: task.to_owned(),
            at: ctx.now,
        }
    }
}

/// What it answered, and what that cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// With a schema: the JSON, and nothing around it.
    pub text: String,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// How long it took, waits and retries included.
    pub took_ms: u64,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum LlmError {
    #[error("the model {model} cannot be reached: {what}")]
    Unavailable {
        model: String,
        what: String,
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    #[error("the model {model} refused the request: {what}")]
    Refused { model: String, what: String },
    #[error("the model {model} answered something that cannot be used: {what}")]
    BadAnswer { model: String, what: String },
    #[error("the prompt cannot be sent: {what}")]
    BadPrompt { what: String },
    #[error("the budget for {what} is used up; nothing was sent; it is renewed at midnight UTC")]
    Budget { what: String },
}

impl LlmError {
    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Unavailable { .. } | Self::BadAnswer { .. } => ErrorKind::Unavailable,
            Self::Refused { .. } => ErrorKind::Denied,
            Self::BadPrompt { .. } => ErrorKind::Invalid,
            Self::Budget { .. } => ErrorKind::TooOften,
        }
    }
}
