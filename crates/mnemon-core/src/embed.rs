//! The port to a model that turns text into vectors.

use async_trait::async_trait;

use crate::ErrorKind;

/// A model that places texts so that near meanings lie near each other.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// Names the model and its version; vectors of different models are never compared.
    fn model(&self) -> &str;

    /// How long its vectors are.
    fn dimension(&self) -> usize;

    /// One unit vector per text, in order; `None` for a text that means nothing to the model.
    async fn embed(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, EmbedError>;
}

/// Why there is no vector.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    #[error("the embedder {model} cannot be reached: {what}")]
    Unavailable {
        model: String,
        what: String,
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    #[error("the embedder {model} refused the request: {what}")]
    Refused { model: String, what: String },
    #[error("the embedder {model} answered something that is not a vector: {what}")]
    BadAnswer { model: String, what: String },
    #[error("the embedder {model} gave vectors of {got} dimensions where {expected} were expected")]
    WrongDimension {
        model: String,
        expected: usize,
        got: usize,
    },
    #[error("the weights at {path} cannot be used: {what}")]
    Weights { path: String, what: String },
}

impl EmbedError {
    /// What the caller can do about it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Unavailable { .. } => ErrorKind::Unavailable,
            Self::Refused { .. } => ErrorKind::Denied,
            Self::BadAnswer { .. } | Self::WrongDimension { .. } => ErrorKind::Unavailable,
            Self::Weights { .. } => ErrorKind::Corrupt,
        }
    }
}
