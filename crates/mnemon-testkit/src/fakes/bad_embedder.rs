use async_trait::async_trait;
use mnemon_core::embed::{EmbedError, Embedder, ModelId};

/// How an embedder goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mischief {
    /// A number that is none.
    NotANumber,
    /// A number without end.
    Infinite,
    /// Another dimension than its model has.
    WrongDimension,
    /// No direction.
    Zeros,
    /// Fewer answers than texts.
    TooFew,
    /// No answer at all.
    Silent,
}

impl Mischief {
    /// All of it.
    pub const ALL: [Self; 6] = [
        Self::NotANumber,
        Self::Infinite,
        Self::WrongDimension,
        Self::Zeros,
        Self::TooFew,
        Self::Silent,
    ];
}

/// An embedder whose answers cannot be used.
#[derive(Debug, Clone)]
pub struct BadEmbedder {
    model: ModelId,
    mischief: Mischief,
}

impl BadEmbedder {
    /// One that goes wrong like this.
    #[must_use]
    pub fn new(mischief: Mischief) -> Self {
        let model = ModelId {
            name: "bad".to_owned(),
            dimension: 4,
        };
        Self { model, mischief }
    }
}

#[async_trait]
impl Embedder for BadEmbedder {
    fn model(&self) -> &ModelId {
        &self.model
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        let answer = match self.mischief {
            Mischief::NotANumber => vec![0.5, f32::NAN, 0.5, 0.5],
            Mischief::Infinite => vec![0.5, f32::INFINITY, 0.5, 0.5],
            Mischief::WrongDimension => vec![0.6, 0.8],
            Mischief::Zeros => vec![0.0; 4],
            Mischief::TooFew => vec![0.5; 4],
            Mischief::Silent => {
                return Err(EmbedError::Unavailable {
                    what: "nobody is there".to_owned(),
                    source: None,
                });
            }
        };
        let missing = usize::from(self.mischief == Mischief::TooFew);
        Ok(vec![Some(answer); texts.len().saturating_sub(missing)])
    }
}
