//! The port to a long-term memory that extracts and ranks by itself: our engine, or a service.

use async_trait::async_trait;

use crate::error::ErrorKind;
use crate::model::{Ctx, Message, Owner};

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
    #[error("the long-term memory {service} refused the request: {what}")]
    Refused { service: String, what: String },
    #[error(transparent)]
    Store(#[from] crate::ports::StoreError),
}

impl LongTermError {
    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Unavailable { .. } => ErrorKind::Unavailable,
            Self::Refused { .. } => ErrorKind::Denied,
            Self::Store(error) => error.kind(),
        }
    }
}
