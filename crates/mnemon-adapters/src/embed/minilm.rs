//! all-MiniLM-L6-v2 as int8, run on this machine from weights in a folder.
//!
//! One file per feature: without `minilm` this one and its dependency are not there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mnemon_core::embed::{EmbedError, Embedder, ModelId, english_fluency};
use tokio::sync::OnceCell;

use super::bert::{Bert, Pieces, broken};
use super::builtin::Builtin;
use super::onnxruntime::OnnxRuntime;
use super::pull::{MINILM_WEIGHTS as WEIGHTS, check, check_size};
use super::unit;

const NAME: &str = "minilm:all-MiniLM-L6-v2-int8@1";
const DIMENSION: usize = 384;
/// What the model was made for, `[CLS]` and `[SEP]` included; the rest of a text is not read.
const MAX_PIECES: usize = 256;
/// Texts between two chances to stop.
const TEXTS_PER_TASK: usize = 8;
/// Texts of one call.
const MAX_TEXTS: usize = 100_000;

/// Reads nothing but the folder it is given, and that when there is something to embed: loading takes
/// up to 0.2 s, and most commands embed nothing.
pub struct MiniLm {
    model: ModelId,
    path: PathBuf,
    library: Option<OnnxRuntime>,
    bert: OnceCell<Arc<Bert>>,
}

impl MiniLm {
    /// Uses the weights that [`pull`](super::pull) put into `folder`. Their size is checked here, their
    /// hash before they are loaded. A library makes it faster; the vectors are near enough to those
    /// without it to be compared with them.
    pub fn open(folder: &Path, library: Option<&OnnxRuntime>) -> Result<Self, EmbedError> {
        let path = folder.join(WEIGHTS.name);
        check_size(&path, &WEIGHTS)?;
        Ok(Self {
            model: ModelId {
                name: NAME.to_owned(),
                dimension: DIMENSION,
            },
            path,
            library: library.cloned(),
            bert: OnceCell::new(),
        })
    }

    async fn bert(&self) -> Result<&Arc<Bert>, EmbedError> {
        let load = async || {
            let (path, library) = (self.path.clone(), self.library.clone());
            let load = move || {
                let bytes = check(&path, &WEIGHTS)?;
                Bert::load(&path, bytes, "last_hidden_state", library.as_ref()).map(Arc::new)
            };
            let loaded = tokio::task::spawn_blocking(load).await;
            loaded.map_err(|e| broken("its thread died", e))?
        };
        self.bert.get_or_try_init(load).await
    }
}

#[async_trait::async_trait]
impl Embedder for MiniLm {
    fn fluency(&self, text: &str) -> f32 {
        english_fluency(text)
    }

    /// The rows of the built-in table stand for words; this model reads whole texts.
    fn similar_words(&self, word: &str) -> Vec<(&'static str, f32)> {
        Builtin::new().map_or_else(|_| Vec::new(), |table| table.similar_words(word))
    }

    fn model(&self) -> &ModelId {
        &self.model
    }

    async fn ready(&self) -> Result<(), EmbedError> {
        self.bert().await.map(|_| ())
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        if texts.len() > MAX_TEXTS {
            return Err(EmbedError::TooLarge {
                what: "the number of texts",
                max: MAX_TEXTS,
            });
        }
        let bert = self.bert().await?;
        let mut out = Vec::with_capacity(texts.len());
        for task in texts.chunks(TEXTS_PER_TASK) {
            let pieces = task.iter().map(|text| bert.text(text, MAX_PIECES));
            let pieces: Vec<Pieces> = pieces.collect();
            let bert = Arc::clone(bert);
            // Tens of milliseconds of computing: not on a thread that others wait for.
            let work = move || {
                pieces
                    .iter()
                    .map(|p| encode(&bert, p))
                    .collect::<Result<Vec<_>, _>>()
            };
            let done = tokio::task::spawn_blocking(work)
                .await
                .map_err(|e| broken("its thread died", e))??;
            for vector in done {
                out.push(unit(vector, out.len())?);
            }
        }
        Ok(out)
    }
}

/// The mean of the last layer over the pieces; zeros where there are none.
fn encode(bert: &Bert, pieces: &Pieces) -> Result<Vec<f32>, EmbedError> {
    let mut mean = vec![0.0; DIMENSION];
    if pieces.len() == 0 {
        return Ok(mean);
    }
    let hidden = bert.run(pieces)?;
    if hidden.len() != DIMENSION * pieces.len() {
        return Err(EmbedError::WrongDimension {
            expected: DIMENSION,
            got: hidden.len() / pieces.len(),
        });
    }
    for row in hidden.chunks_exact(DIMENSION) {
        mean.iter_mut()
            .zip(row)
            .for_each(|(sum, x)| *sum += x / pieces.len() as f32);
    }
    Ok(mean)
}

#[cfg(test)]
mod tests {
    use super::super::builtin::VOCABULARY;
    use super::super::wordpiece::Vocabulary;
    use super::*;

    #[derive(serde::Deserialize)]
    struct Reference {
        text: String,
        ids: Vec<u32>,
    }

    #[test]
    fn reads_the_pieces_that_the_reference_reads() {
        let vocabulary = Vocabulary::parse(VOCABULARY).unwrap().with_unknown();
        let references = include_str!("../../tests/data/minilm-reference.jsonl").lines();
        for line in references {
            let r: Reference = serde_json::from_str(line).unwrap();
            let pieces = vocabulary.pieces(&r.text, MAX_PIECES - 2);
            assert_eq!(pieces, r.ids[1..r.ids.len() - 1], "{:?}", r.text);
        }
    }
}
