//! An endpoint that is asked only when there is something to embed.

use mnemon_core::embed::{EmbedError, Embedder, ModelId};
use tokio::sync::OnceCell;

use super::{OpenAi, OpenAiConfig};

/// Connects at its first use: opening a store needs no network, and an endpoint that cannot be
/// reached costs no more than the vectors.
pub struct LazyOpenAi {
    config: OpenAiConfig,
    connected: OnceCell<OpenAi>,
    /// Until it is connected: the name is known, the dimension is not, so it equals no real model.
    unknown: ModelId,
}

impl LazyOpenAi {
    pub fn new(config: OpenAiConfig) -> Self {
        let base_url = config.base_url.trim_end_matches('/');
        let unknown = ModelId {
            name: format!("openai:{}@{base_url}", config.model),
            dimension: 0,
        };
        Self {
            config,
            connected: OnceCell::new(),
            unknown,
        }
    }

    async fn connected(&self) -> Result<&OpenAi, EmbedError> {
        let connect = || OpenAi::connect(self.config.clone());
        self.connected.get_or_try_init(connect).await
    }
}

#[async_trait::async_trait]
impl Embedder for LazyOpenAi {
    fn model(&self) -> &ModelId {
        self.connected.get().map_or(&self.unknown, Embedder::model)
    }

    async fn ready(&self) -> Result<(), EmbedError> {
        self.connected().await.map(|_| ())
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        self.connected().await?.embed(texts).await
    }
}
