//! all-MiniLM-L6-v2 as int8, run on this machine from weights in a folder.
//!
//! Texts are run one by one. Together they would go twice as fast, but this kind of int8 rounds
//! by the largest value in a batch: a text's vector would depend on its neighbours (cosine 0.99
//! to itself), and a rebuilt store would differ from the first.
//!
//! One file per feature: without `minilm` this one and its dependency are not there.

use std::path::Path;
use std::sync::Arc;

use rten::{Model, NodeId, Value};

use super::builtin::VOCABULARY;
use super::pull::{MINILM_FILES, check};
use super::wordpiece::Vocabulary;
use mnemon_core::embed::{EmbedError, Embedder, ModelId};

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
    encoder: Arc<Encoder>,
}

struct Encoder {
    model: Model,
    vocabulary: Vocabulary<'static>,
    /// `[CLS]` and `[SEP]`.
    ends: (u32, u32),
    inputs: [NodeId; 3],
    output: NodeId,
}

impl MiniLm {
    /// Loads the weights that [`pull`](super::pull) put into `folder`. They are checked against
    /// their known size and hash first, so that a file cut short is named as such.
    pub fn open(folder: &Path) -> Result<Self, EmbedError> {
        let encoder = Arc::new(Encoder::open(folder)?);
        Ok(Self {
            model: ModelId {
                name: NAME.to_owned(),
                dimension: DIMENSION,
            },
            encoder,
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
            let pieces: Vec<Vec<u32>> = task.iter().map(|text| self.encoder.pieces(text)).collect();
            let encoder = Arc::clone(&self.encoder);
            // Tens of milliseconds of computing: not on a thread that others wait for.
            let work = move || {
                pieces
                    .iter()
                    .map(|p| encoder.encode(p))
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

impl Encoder {
    fn open(folder: &Path) -> Result<Self, EmbedError> {
        let file = MINILM_FILES
            .first()
            .ok_or_else(|| failure(folder, "no file is known for it"))?;
        let path = folder.join(file.name);
        let bytes = check(&path, file)?;
        let model = Model::load(bytes).map_err(|e| EmbedError::Weights {
            path: path.clone(),
            what: "they cannot be loaded".to_owned(),
            source: Some(Box::new(e)),
        })?;
        let vocabulary = Vocabulary::parse(VOCABULARY).map(Vocabulary::with_unknown);
        let vocabulary =
            vocabulary.ok_or_else(|| failure(&path, "the vocabulary has no usable size"))?;
        let id = |line| {
            vocabulary
                .id(line)
                .ok_or_else(|| failure(&path, "the vocabulary has no [CLS] or [SEP]"))
        };
        let node = |name| {
            model
                .find_node(name)
                .ok_or_else(|| failure(&path, &format!("the model has no {name}")))
        };
        let ends = (id("[CLS]")?, id("[SEP]")?);
        let inputs = [
            node("input_ids")?,
            node("attention_mask")?,
            node("token_type_ids")?,
        ];
        let output = node("last_hidden_state")?;
        Ok(Self {
            vocabulary,
            ends,
            inputs,
            output,
            model,
        })
    }

    /// The pieces of a text between their ends; nothing where the text has none.
    fn pieces(&self, text: &str) -> Vec<u32> {
        let mut pieces = self.vocabulary.pieces(text, MAX_PIECES - 2);
        if !pieces.is_empty() {
            pieces.insert(0, self.ends.0);
            pieces.push(self.ends.1);
        }
        pieces
    }

    /// The mean of the last layer over the pieces; zeros where there are none.
    fn encode(&self, pieces: &[u32]) -> Result<Vec<f32>, EmbedError> {
        let mut mean = vec![0.0; DIMENSION];
        if pieces.is_empty() {
            return Ok(mean);
        }
        let hidden = self.run(pieces)?;
        for row in hidden.chunks_exact(DIMENSION) {
            mean.iter_mut()
                .zip(row)
                .for_each(|(sum, x)| *sum += x / pieces.len() as f32);
        }
        Ok(mean)
    }

    /// The last layer: one row per piece.
    fn run(&self, pieces: &[u32]) -> Result<Vec<f32>, EmbedError> {
        let ids = pieces.iter().map(|id| id.cast_signed()).collect();
        let (mask, types) = (vec![1; pieces.len()], vec![0; pieces.len()]);
        let mut inputs = Vec::with_capacity(3);
        for (node, data) in self.inputs.into_iter().zip([ids, mask, types]) {
            let value = Value::from_shape([1, pieces.len()], data);
            inputs.push((
                node,
                value
                    .map_err(|e| broken("its input has no shape", e))?
                    .into(),
            ));
        }
        let [hidden] = self
            .model
            .run_n(inputs, [self.output], None)
            .map_err(|e| broken("it failed", e))?;
        let hidden = hidden.into_shape_vec::<f32, 3>();
        let ([_, rows, got], hidden) =
            hidden.map_err(|e| broken("its output has another form", e))?;
        if got != DIMENSION || rows != pieces.len() {
            return Err(EmbedError::WrongDimension {
                expected: DIMENSION,
                got,
            });
        }
        Ok(hidden)
    }
}

fn broken(what: &str, source: impl std::error::Error + Send + Sync + 'static) -> EmbedError {
    EmbedError::BadAnswer {
        what: format!("the local model: {what}"),
        source: Some(Box::new(source)),
    }
}

fn failure(path: &Path, what: &str) -> EmbedError {
    EmbedError::Weights {
        path: path.to_owned(),
        what: what.to_owned(),
        source: None,
    }
}

#[cfg(test)]
mod tests {
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
