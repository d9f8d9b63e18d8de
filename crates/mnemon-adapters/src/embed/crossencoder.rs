//! A cross-encoder: a model that reads a question and a text together and says how well the one
//! answers the other. Any small one of the BERT family will do, as `model.onnx` in a folder.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use mnemon_core::embed::EmbedError;
use mnemon_core::rerank::Reranker;

use super::bert::{Bert, broken, failure, not_loaded, unusable};
use super::onnxruntime::OnnxRuntime;

/// The file in the folder.
const FILE: &str = "model.onnx";
/// What is read of a question and a text together; longer ones cost more than they tell.
const MAX_PIECES: usize = 256;
/// Weights that are larger are no small model.
const MAX_BYTES: u64 = 1 << 30;

/// Reads nothing but the folder it is given, and that once.
pub struct CrossEncoder {
    bert: Arc<Bert>,
}

impl CrossEncoder {
    /// Loads `model.onnx` of the folder. A library makes it faster.
    pub fn open(folder: &Path, library: Option<&OnnxRuntime>) -> Result<Self, EmbedError> {
        let path = folder.join(FILE);
        let unreadable = |e: std::io::Error| not_loaded(&path, "it cannot be read", e);
        if std::fs::metadata(&path).map_err(unreadable)?.len() > MAX_BYTES {
            return Err(failure(&path, "it has more than 1 GiB"));
        }
        let bytes = std::fs::read(&path).map_err(unreadable)?;
        let bert = Arc::new(Bert::load(&path, bytes, "logits", library)?);
        Ok(Self { bert })
    }
}

#[async_trait]
impl Reranker for CrossEncoder {
    async fn scores(&self, question: &str, texts: &[&str]) -> Result<Vec<f32>, EmbedError> {
        let mut scores = Vec::with_capacity(texts.len());
        for text in texts {
            let pieces = self.bert.pair(question, text, MAX_PIECES);
            let bert = Arc::clone(&self.bert);
            // Milliseconds of computing: not on a thread that others wait for; and one by one, so
            // that a search that is given up stops.
            let work = tokio::task::spawn_blocking(move || bert.run(&pieces));
            let logits = work.await.map_err(|e| broken("its thread died", e))??;
            // One number says how well; of two, the second says yes and the first no.
            scores.push(match logits.as_slice() {
                [yes] => *yes,
                [no, yes] => yes - no,
                _ => {
                    let what = format!("it returns {} numbers per text", logits.len());
                    return Err(unusable(&what));
                }
            });
        }
        Ok(scores)
    }
}
