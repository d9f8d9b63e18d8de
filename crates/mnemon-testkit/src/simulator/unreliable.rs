use async_trait::async_trait;
use mnemon_core::embed::{EmbedError, Embedder, ModelId};
use mnemon_core::llm::{Completion, Llm, LlmError, Prompt};

use super::Sim;
use crate::fakes::{BadEmbedder, HashEmbedder, Mischief};

/// An embedder that fails or answers nonsense as often as stores fail.
pub struct UnreliableEmbedder {
    sim: Sim,
    good: HashEmbedder,
}

impl UnreliableEmbedder {
    /// Vectors of this length, when it works.
    #[must_use]
    pub fn new(sim: &Sim, dimension: usize) -> Self {
        Self {
            sim: sim.clone(),
            good: HashEmbedder::new(dimension),
        }
    }
}

#[async_trait]
impl Embedder for UnreliableEmbedder {
    fn model(&self) -> &ModelId {
        self.good.model()
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        let mischief = {
            let mut state = self.sim.lock();
            let fault = state.draw_fault();
            let mischief = fault.map(|_| Mischief::ALL[state.random.index(Mischief::ALL.len())]);
            // A vector without direction says that the text means nothing: no failure.
            if mischief.is_some_and(|mischief| mischief != Mischief::Zeros) {
                let running = state.running;
                state.without_vectors.insert(running);
            }
            mischief
        };
        match mischief {
            None => self.good.embed(texts).await,
            Some(mischief) => BadEmbedder::new(mischief).embed(texts).await,
        }
    }
}

/// A language model that answers nonsense, nothing, or not at all.
pub struct UnreliableLlm(pub Sim);

#[async_trait]
impl Llm for UnreliableLlm {
    fn model(&self) -> &str {
        "unreliable"
    }

    async fn complete(&self, _prompt: &Prompt) -> Result<Completion, LlmError> {
        let text = {
            let mut state = self.0.lock();
            let answers = ["", "{\"half\": ", "A short summary.", "[1, 2]"];
            answers.get(state.random.index(answers.len() + 1)).copied()
        };
        let Some(text) = text else {
            return Err(LlmError::Unavailable {
                model: "unreliable".to_owned(),
                what: "an injected fault".to_owned(),
                source: None,
            });
        };
        Ok(Completion {
            text: text.to_owned(),
            input_tokens: 1,
            output_tokens: 1,
            took_ms: 1,
        })
    }
}
