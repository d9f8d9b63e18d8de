//! The port to a model that turns text into vectors.

use std::error::Error;
use std::path::PathBuf;

use async_trait::async_trait;

use crate::error::ErrorKind;

/// A model that places texts so that near meanings lie near each other.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// Name and dimension of the model. One that must be asked for its dimension knows it once
    /// it is [`ready`](Self::ready) or has embedded something.
    fn model(&self) -> &ModelId;

    /// Makes sure that the model can be used and its dimension is known.
    async fn ready(&self) -> Result<(), EmbedError> {
        Ok(())
    }

    /// One unit vector per text, in order; `None` for a text that means nothing to the model.
    async fn embed(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, EmbedError>;

    /// Words that mean nearly the same as this one, which is in lower case, the nearest first, each
    /// with its cosine.
    fn similar_words(&self, _word: &str) -> Vec<(&'static str, f32)> {
        Vec::new()
    }

    /// How far the model understands the language of a text, from 0 to 1.
    fn fluency(&self, _text: &str) -> f32 {
        1.0
    }
}

/// The [`Embedder::fluency`] of a model that knows only English: 1 if most words are written in
/// plain ASCII, 0 if every second word is not, as in Vietnamese.
pub fn english_fluency(text: &str) -> f32 {
    let (mut words, mut plain) = (0_u32, 0_u32);
    for word in text.split_whitespace() {
        let mut letters = word.chars().filter(|c| c.is_alphabetic()).peekable();
        if letters.peek().is_some() {
            words += 1;
            plain += u32::from(letters.all(|c| c.is_ascii()));
        }
    }
    match words {
        0 => 1.0,
        _ => (4.0 * plain as f32 / words as f32 - 2.0).clamp(0.0, 1.0),
    }
}

/// Which model made a vector. Vectors are comparable only if these are equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModelId {
    /// Unique, such as `builtin:static-256@2`.
    pub name: String,
    pub dimension: usize,
}

type Source = Box<dyn Error + Send + Sync>;

/// Why there is no vector.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    #[error("the embedder cannot be reached: {what}")]
    Unavailable {
        what: String,
        #[source]
        source: Option<Source>,
    },
    #[error("the embedder refused the request ({status}): {message}")]
    Refused { status: u16, message: String },
    #[error("the answer of the embedder is not valid: {what}")]
    BadAnswer {
        what: String,
        #[source]
        source: Option<Source>,
    },
    #[error("the embedder answers with {got} dimensions where {expected} were expected")]
    WrongDimension { expected: usize, got: usize },
    #[error("the embedder returned a vector with a value that is not finite for text {index}")]
    NotFinite { index: usize },
    #[error("the weights at {} cannot be used: {what}", path.display())]
    Weights {
        path: PathBuf,
        what: String,
        #[source]
        source: Option<Source>,
    },
    #[error("{what} is larger than the limit of {max}")]
    TooLarge { what: &'static str, max: usize },
}

impl EmbedError {
    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Unavailable { .. } | Self::BadAnswer { .. } => ErrorKind::Unavailable,
            Self::WrongDimension { .. } | Self::NotFinite { .. } => ErrorKind::Unavailable,
            Self::Refused { .. } => ErrorKind::Denied,
            Self::Weights { .. } => ErrorKind::Corrupt,
            Self::TooLarge { .. } => ErrorKind::TooLarge,
        }
    }
}
