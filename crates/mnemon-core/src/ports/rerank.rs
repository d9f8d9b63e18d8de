//! The port to a model that reads a question and a text together.

use async_trait::async_trait;

use crate::ports::embed::EmbedError;

/// A model that says how well texts answer a question. It is slow, so it sees only what the arms
/// have found; and it is optional: where it fails, the order stays what it was.
#[async_trait]
pub trait Reranker: Send + Sync {
    /// One finite number for each text, in order; the greater, the better it answers.
    async fn scores(&self, question: &str, texts: &[&str]) -> Result<Vec<f32>, EmbedError>;
}
