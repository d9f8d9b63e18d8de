//! Any endpoint that speaks OpenAI's `/embeddings`: OpenAI, Ollama, vLLM, LM Studio and others.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use mnemon_core::embed::{EmbedError, Embedder, ModelId};

use super::unit;
use crate::http::{self, MAX_WAIT, Secret, Unread};

/// Inputs and characters of one request; larger calls become several.
const MAX_BATCH_INPUTS: usize = 128;
const MAX_BATCH_CHARS: usize = 100_000;
/// Characters of one text that are sent: models read a few thousand tokens and refuse more.
const MAX_TEXT_CHARS: usize = 24_000;
/// Texts of one call.
const MAX_TEXTS: usize = 100_000;
/// Bytes of an answer: 128 vectors of 8192 dimensions, written out, with room to spare.
const MAX_ANSWER_BYTES: usize = 64 << 20;
/// What is embedded to learn the dimension.
const PROBE: &str = "dimension";

#[derive(Clone, Debug)]
pub struct OpenAiConfig {
    /// Up to and including the version: `https://api.openai.com/v1`.
    pub base_url: String,
    pub model: String,
    pub key: Option<Secret>,
    /// What the store remembers of this model. `None` asks the endpoint; with it, a store opens
    /// without the network.
    pub dimension: Option<usize>,
    pub timeout_ms: u64,
    /// Requests for one batch, the first included.
    pub attempts: u32,
    /// Wait before the second attempt; it doubles with each one.
    pub backoff_ms: u64,
}

impl OpenAiConfig {
    pub fn new(base_url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            model: model.into(),
            key: None,
            dimension: None,
            timeout_ms: 30_000,
            attempts: 5,
            backoff_ms: 500,
        }
    }
}

#[derive(Debug)]
pub struct OpenAi {
    client: reqwest::Client,
    url: String,
    config: OpenAiConfig,
    model: ModelId,
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    input: Vec<&'a str>,
    encoding_format: &'static str,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    index: usize,
    /// Read as f64: a number too large for an f32 is then told as such.
    embedding: Vec<f64>,
}

/// How an attempt failed: whether another may succeed, and when.
struct Failure {
    error: EmbedError,
    again: Again,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Again {
    Never,
    AfterBackoff,
    After(Duration),
}

impl OpenAi {
    /// Makes an embedder of the dimension that the configuration states, or else that the
    /// endpoint shows by embedding one word.
    pub async fn connect(config: OpenAiConfig) -> Result<Self, EmbedError> {
        let url = format!("{}/embeddings", config.base_url.trim_end_matches('/'));
        let name = format!(
            "openai:{}@{}",
            config.model,
            config.base_url.trim_end_matches('/')
        );
        let client = client(&config)?;
        let mut embedder = Self {
            client,
            url,
            model: ModelId { name, dimension: 0 },
            config,
        };
        embedder.model.dimension = match embedder.config.dimension {
            Some(dimension) => dimension,
            None => embedder.probe().await?,
        };
        Ok(embedder)
    }

    async fn probe(&self) -> Result<usize, EmbedError> {
        let vectors = self.batch(&[PROBE]).await?;
        let dimension = vectors.first().map_or(0, Vec::len);
        if dimension == 0 {
            return Err(bad_answer("a vector without dimensions"));
        }
        Ok(dimension)
    }

    /// One request, tried as often as the configuration allows.
    async fn batch(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let mut attempt = 1;
        loop {
            let Failure { error, again } = match self.attempt(texts).await {
                Ok(vectors) => return Ok(vectors),
                Err(failure) => failure,
            };
            let wait = match again {
                Again::Never => return Err(error),
                _ if attempt >= self.config.attempts => return Err(error),
                Again::AfterBackoff => http::backoff(self.config.backoff_ms, attempt),
                Again::After(wait) => wait.min(MAX_WAIT),
            };
            tokio::time::sleep(wait).await;
            attempt += 1;
        }
    }

    async fn attempt(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Failure> {
        let input = texts.iter().map(|t| head(t)).collect();
        let body = Request {
            model: &self.config.model,
            input,
            encoding_format: "float",
        };
        let mut request = self.client.post(&self.url).json(&body);
        if let Some(key) = &self.config.key {
            request = request.bearer_auth(key.reveal());
        }
        let response = request.send().await.map_err(unreachable)?;
        let (status, wait) = (response.status(), http::retry_after(response.headers()));
        let body = read(response).await?;
        if status.is_success() {
            return ordered(&body, texts.len()).map_err(|error| Failure {
                error,
                again: Again::Never,
            });
        }
        let again = match http::is_passing(status.as_u16()) {
            true => wait.map_or(Again::AfterBackoff, Again::After),
            false => Again::Never,
        };
        Err(Failure {
            error: EmbedError::Refused {
                status: status.as_u16(),
                message: http::said(&body, self.config.key.as_ref()),
            },
            again,
        })
    }

    fn checked(&self, vector: Vec<f32>, index: usize) -> Result<Option<Vec<f32>>, EmbedError> {
        let (expected, got) = (self.model.dimension, vector.len());
        if got != expected {
            return Err(EmbedError::WrongDimension { expected, got });
        }
        unit(vector, index)
    }
}

#[async_trait::async_trait]
impl Embedder for OpenAi {
    fn model(&self) -> &ModelId {
        &self.model
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        if texts.len() > MAX_TEXTS {
            return Err(EmbedError::TooLarge {
                what: "the number of texts",
                max: MAX_TEXTS,
            });
        }
        let mut out = vec![None; texts.len()];
        // Endpoints refuse empty inputs, and there is no meaning in them.
        let full: Vec<usize> = (0..)
            .zip(texts)
            .filter(|(_, t)| !t.trim().is_empty())
            .map(|(i, _)| i)
            .collect();
        for batch in batches(&full, texts) {
            let inputs: Vec<&str> = batch
                .iter()
                .filter_map(|&i| texts.get(i).copied())
                .collect();
            for (&index, vector) in batch.iter().zip(self.batch(&inputs).await?) {
                if let Some(slot) = out.get_mut(index) {
                    *slot = self.checked(vector, index)?;
                }
            }
        }
        Ok(out)
    }
}

/// Cuts the texts numbered `full` into requests.
fn batches<'i>(full: &'i [usize], texts: &[&str]) -> Vec<&'i [usize]> {
    let chars = |i: usize| texts.get(i).map_or(0, |t| head(t).len());
    let mut out = Vec::new();
    let mut rest = full;
    while !rest.is_empty() {
        let mut sum = 0;
        let fits = rest.iter().take(MAX_BATCH_INPUTS).take_while(|&&i| {
            sum += chars(i);
            sum <= MAX_BATCH_CHARS
        });
        let (batch, tail) = rest.split_at(fits.count().max(1));
        out.push(batch);
        rest = tail;
    }
    out
}

/// The part of a text that is sent.
fn head(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_TEXT_CHARS))
        .unwrap_or(text)
}

fn client(config: &OpenAiConfig) -> Result<reqwest::Client, EmbedError> {
    http::client(Duration::from_millis(config.timeout_ms)).map_err(|e| EmbedError::Unavailable {
        what: "no HTTP client".to_owned(),
        source: Some(Box::new(e)),
    })
}

async fn read(response: reqwest::Response) -> Result<Vec<u8>, Failure> {
    http::read(response, MAX_ANSWER_BYTES)
        .await
        .map_err(|unread| match unread {
            Unread::Failed(e) => unreachable(e),
            Unread::TooLarge => Failure {
                error: EmbedError::TooLarge {
                    what: "the embedder's answer",
                    max: MAX_ANSWER_BYTES,
                },
                again: Again::Never,
            },
        })
}

fn unreachable(e: reqwest::Error) -> Failure {
    let what = if e.is_timeout() {
        "it timed out"
    } else {
        "the connection failed"
    };
    // A URL may carry a key; the error goes on without it.
    let source = Some(Box::new(e.without_url()) as Box<_>);
    Failure {
        error: EmbedError::Unavailable {
            what: what.to_owned(),
            source,
        },
        again: Again::AfterBackoff,
    }
}

/// The vectors in the order of their index, exactly one for each text.
fn ordered(body: &[u8], count: usize) -> Result<Vec<Vec<f32>>, EmbedError> {
    let answer: Answer = serde_json::from_slice(body).map_err(|e| EmbedError::BadAnswer {
        what: "it is not a list of vectors".to_owned(),
        source: Some(Box::new(e)),
    })?;
    if answer.data.len() != count {
        return Err(bad_answer(&format!(
            "{} vectors for {count} texts",
            answer.data.len()
        )));
    }
    let mut out = vec![None; count];
    for item in answer.data {
        let wrong = match out.get_mut(item.index) {
            Some(slot @ None) => {
                *slot = Some(item.embedding.iter().map(|x| *x as f32).collect());
                continue;
            }
            Some(Some(_)) => format!("two vectors for text {}", item.index),
            None => format!("a vector for text {} of {count}", item.index),
        };
        return Err(bad_answer(&wrong));
    }
    Ok(out.into_iter().flatten().collect())
}

fn bad_answer(what: &str) -> EmbedError {
    EmbedError::BadAnswer {
        what: what.to_owned(),
        source: None,
    }
}
