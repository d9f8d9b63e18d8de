//! all-MiniLM-L6-v2 as int8, run on this machine from weights in a folder.
//!
//! One file per feature: without `minilm` this one and its dependency are not there.

use std::path::Path;
use std::sync::Arc;

use mnemon_core::embed::{EmbedError, Embedder, ModelId};

use super::bert::{Bert, Pieces, broken, failure};
use super::pull::{MINILM_FILES, check};
use super::unit;

const NAME: &str = "minilm:all-MiniLM-L6-v2-int8@1";
const DIMENSION: usize = 384;
/// What the model was made for, `[CLS]` and `[SEP]` included; the rest of a text is not read.
const MAX_PIECES: usize = 256;
/// Texts between two chances to stop.
const TEXTS_PER_TASK: usize = 8;
/// Texts of one call.
const MAX_TEXTS: usize = 100_000;

/// Reads nothing but the folder it is given, and that once.
pub struct MiniLm {
    model: ModelId,
    bert: Arc<Bert>,
}

impl MiniLm {
    /// Loads the weights that [`pull`](super::pull) put into `folder`. They are checked against
    /// their known size and hash first, so that a file cut short is named as such.
    pub fn open(folder: &Path) -> Result<Self, EmbedError> {
        let file = MINILM_FILES
            .first()
            .ok_or_else(|| failure(folder, "no file is known for it"))?;
        let path = folder.join(file.name);
        let bytes = check(&path, file)?;
        let bert = Arc::new(Bert::load(&path, bytes, "last_hidden_state")?);
        Ok(Self {
            model: ModelId {
                name: NAME.to_owned(),
                dimension: DIMENSION,
            },
            bert,
        })
    }
}

#[async_trait::async_trait]
impl Embedder for MiniLm {
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
        let mut out = Vec::with_capacity(texts.len());
        for task in texts.chunks(TEXTS_PER_TASK) {
            let pieces = task.iter().map(|text| self.bert.text(text, MAX_PIECES));
            let pieces: Vec<Pieces> = pieces.collect();
            let bert = Arc::clone(&self.bert);
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
    let hidden = bert.run(pieces)?.into_shape_vec::<f32, 3>();
    let ([_, rows, got], hidden) = hidden.map_err(|e| broken("its output has another form", e))?;
    if got != DIMENSION || rows != pieces.len() {
        return Err(EmbedError::WrongDimension {
            expected: DIMENSION,
            got,
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
        vector: Vec<f32>,
    }

    /// Made by onnxruntime and the `tokenizers` library from the same weights.
    fn references() -> Vec<Reference> {
        let lines = include_str!("../../tests/data/minilm-reference.jsonl").lines();
        lines.map(|l| serde_json::from_str(l).unwrap()).collect()
    }

    fn folder() -> std::path::PathBuf {
        std::env::var_os("MNEMON_MINILM_DIR")
            .expect("MNEMON_MINILM_DIR names the folder of the weights")
            .into()
    }

    #[test]
    fn reads_the_pieces_that_the_reference_reads() {
        let vocabulary = Vocabulary::parse(VOCABULARY).unwrap().with_unknown();
        for r in references() {
            let pieces = vocabulary.pieces(&r.text, MAX_PIECES - 2);
            assert_eq!(pieces, r.ids[1..r.ids.len() - 1], "{:?}", r.text);
        }
    }

    #[test]
    fn weights_that_are_missing_or_cut_short_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let error = |expected: &str| {
            let e = MiniLm::open(dir.path()).err().unwrap();
            assert!(
                e.to_string().contains(expected) && e.to_string().contains("model_quantized.onnx"),
                "{e}"
            );
        };
        error("cannot be read");
        let path = dir.path().join("model_quantized.onnx");
        std::fs::write(&path, vec![0; 1000]).unwrap();
        error("1000 bytes, not 22972370");
        std::fs::write(&path, vec![0; 22_972_370]).unwrap();
        error("SHA-256");
    }

    #[tokio::test]
    #[ignore = "needs the weights: MNEMON_MINILM_DIR=folder cargo test --features minilm -- --ignored"]
    async fn matches_the_reference() {
        let model = MiniLm::open(&folder()).unwrap();
        let references = references();
        let mut texts: Vec<&str> = references.iter().map(|r| r.text.as_str()).collect();
        texts.extend(["", " \n"]);
        let vectors = model.embed(&texts).await.unwrap();
        assert_eq!(&vectors[references.len()..], [None, None]);
        assert_eq!(
            model.embed(&texts[1..2]).await.unwrap()[0],
            vectors[1],
            "neighbours do not matter"
        );
        for (r, vector) in references.iter().zip(&vectors) {
            let vector = vector.as_ref().unwrap();
            let cosine: f32 = vector.iter().zip(&r.vector).map(|(a, b)| a * b).sum();
            // Two runtimes round int8 activations a little differently.
            assert!(cosine > 0.995, "{:?}: {cosine}", r.text);
        }
    }
}
