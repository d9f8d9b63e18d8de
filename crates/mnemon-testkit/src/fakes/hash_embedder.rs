use async_trait::async_trait;
use mnemon_core::embed::{EmbedError, Embedder, ModelId};

use super::fnv;

/// Places a text by its words: each one points in a direction that its hash decides, so that texts
/// with words in common lie near each other, and the same text always at the same place.
#[derive(Debug, Clone)]
pub struct HashEmbedder {
    model: ModelId,
}

impl Default for HashEmbedder {
    fn default() -> Self {
        Self::new(64)
    }
}

impl HashEmbedder {
    /// Vectors of this length.
    #[must_use]
    pub fn new(dimension: usize) -> Self {
        Self::named("hash", dimension)
    }

    /// Vectors of this length under another name, as if another model had made them.
    #[must_use]
    pub fn named(name: &str, dimension: usize) -> Self {
        Self {
            model: ModelId {
                name: name.to_owned(),
                dimension,
            },
        }
    }

    fn place(&self, text: &str) -> Option<Vec<f32>> {
        let mut vector = vec![0.0_f32; self.model.dimension];
        for word in text.split_whitespace() {
            let hash = fnv(word.to_lowercase().as_bytes());
            let sign = if hash & 1 == 0 { 1.0 } else { -1.0 };
            vector[usize::try_from(hash >> 1).unwrap() % self.model.dimension] += sign;
        }
        let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        (length > 0.0).then(|| vector.iter().map(|x| x / length).collect())
    }
}

#[async_trait]
impl Embedder for HashEmbedder {
    fn model(&self) -> &ModelId {
        &self.model
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        Ok(texts.iter().map(|text| self.place(text)).collect())
    }
}
