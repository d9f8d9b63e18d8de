//! The port to a long-term memory that extracts and ranks by itself: our engine, or a service.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::error::ErrorKind;
use crate::model::{Ctx, Message, Owner};
use crate::ports::external::ExternalHit;

/// Remembers conversations, and says what is worth knowing for the next message.
#[async_trait]
pub trait LongTerm: Send + Sync {
    /// Takes in what was said. What cannot be used is left out, not an error.
    async fn record(
        &self,
        ctx: &Ctx,
        owner: &Owner,
        messages: &[Message],
    ) -> Result<(), LongTermError>;

    /// What is worth knowing for this message, as text for a prompt; empty when nothing is.
    async fn retrieve(
        &self,
        ctx: &Ctx,
        owner: &Owner,
        message: &Message,
    ) -> Result<String, LongTermError>;

    /// The texts that fit a query best, at most `limit`. A memory that is not searched finds none.
    async fn find(
        &self,
        _ctx: &Ctx,
        _owner: &Owner,
        _query: &str,
        _limit: usize,
    ) -> Result<Vec<ExternalHit>, LongTermError> {
        Ok(Vec::new())
    }

    /// The service and its address, without a key or password. Messages that wait for a service are
    /// sent to the service of the same name only.
    fn service(&self) -> &str {
        "mnemon"
    }
}

/// Answers of a service to the question whether it can be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteReport {
    /// The service and its address.
    pub service: String,
    /// The protocol, with its version.
    pub protocol: String,
    /// What the service can be used for: `record`, `retrieve`, `skills`, `search`.
    pub capabilities: Vec<String>,
    /// Sentences about what is missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// A service that can be asked whether it is there.
#[async_trait]
pub trait RemoteCheck: Send + Sync {
    /// Sends a request that changes nothing and needs the key.
    async fn check(&self, ctx: &Ctx) -> Result<RemoteReport, LongTermError>;
}

/// Why a long-term memory did not answer.
#[derive(Debug, thiserror::Error)]
pub enum LongTermError {
    #[error("the long-term memory {service} cannot be reached: {what}")]
    Unavailable {
        service: String,
        what: String,
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// The key is missing, wrong or without the right.
    #[error("the long-term memory {service} refused the request: {what}")]
    Refused { service: String, what: String },
    /// The request is not one that the service accepts; a repetition would fail, too.
    #[error("the long-term memory {service} rejected the request: {what}")]
    Rejected { service: String, what: String },
    #[error("the long-term memory {service} allows no more requests now{}", after(*.wait))]
    TooOften {
        service: String,
        wait: Option<Duration>,
    },
    /// The answer has another form than that of the service.
    #[error("the answer of the long-term memory {service} cannot be read: {what}")]
    Unreadable { service: String, what: String },
    #[error(transparent)]
    Store(#[from] crate::ports::StoreError),
}

fn after(wait: Option<Duration>) -> String {
    wait.map_or(String::new(), |wait| {
        format!("; try again in {} s", wait.as_secs_f64().ceil())
    })
}

impl LongTermError {
    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Unavailable { .. } => ErrorKind::Unavailable,
            Self::Refused { .. } => ErrorKind::Denied,
            Self::Rejected { .. } => ErrorKind::Invalid,
            Self::TooOften { .. } => ErrorKind::TooOften,
            Self::Unreadable { .. } => ErrorKind::Foreign,
            Self::Store(error) => error.kind(),
        }
    }

    /// Whether other requests to the same service would fail now, too.
    pub fn is_of_service(&self) -> bool {
        !matches!(self, Self::Rejected { .. } | Self::Store(_))
    }
}
