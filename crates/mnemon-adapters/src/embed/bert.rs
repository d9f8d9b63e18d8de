//! Models of the BERT family in ONNX files, run on this machine: what the embedder and the
//! cross-encoder have in common. The vocabulary is the built-in one, the lower-case English one
//! that most small models of the family share.
//!
//! Texts are run one by one. Together they would go twice as fast, but int8 models round by the
//! largest value in a batch: what a text gets would depend on its neighbours (cosine 0.99 to
//! itself), and a rebuilt store would differ from the first.

use std::path::Path;

use mnemon_core::embed::EmbedError;

use super::builtin::VOCABULARY;
use super::onnxruntime::OnnxRuntime;
use super::rten::Rten;
use super::wordpiece::Vocabulary;

pub(super) struct Bert {
    network: Box<dyn Network>,
    vocabulary: Vocabulary<'static>,
    /// `[CLS]` and `[SEP]`.
    ends: (u32, u32),
}

/// A loaded model in the runtime that computes it.
pub(super) trait Network: Send + Sync {
    /// The numbers of the output, row by row, for one text.
    fn run(&self, pieces: &Pieces) -> Result<Vec<f32>, EmbedError>;
}

/// The inputs of such models; some have no types.
pub(super) const IDS: &str = "input_ids";
pub(super) const MASK: &str = "attention_mask";
pub(super) const TYPES: &str = "token_type_ids";

/// Pieces with their ends, and for each whether it belongs to the second text.
pub(super) struct Pieces {
    pub(super) ids: Vec<u32>,
    pub(super) second: Vec<u32>,
}

impl Pieces {
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }
}

impl Bert {
    /// Loads the model from the bytes of the file at `path`; its `output` is wanted. Without an
    /// ONNX runtime library rten computes it.
    pub(super) fn load(
        path: &Path,
        bytes: Vec<u8>,
        output: &'static str,
        library: Option<&OnnxRuntime>,
    ) -> Result<Self, EmbedError> {
        let network: Box<dyn Network> = match library {
            Some(library) => Box::new(library.model(path, &bytes, output)?),
            None => Box::new(Rten::load(path, bytes, output)?),
        };
        let vocabulary = Vocabulary::parse(VOCABULARY).map(Vocabulary::with_unknown);
        let vocabulary =
            vocabulary.ok_or_else(|| failure(path, "the vocabulary has no usable size"))?;
        let id = |line| {
            vocabulary
                .id(line)
                .ok_or_else(|| failure(path, "the vocabulary has no [CLS] or [SEP]"))
        };
        Ok(Self {
            ends: (id("[CLS]")?, id("[SEP]")?),
            vocabulary,
            network,
        })
    }

    /// The pieces of a text between their ends, at most `max` of them; nothing where the text has
    /// none.
    #[cfg(feature = "minilm")]
    pub(super) fn text(&self, text: &str, max: usize) -> Pieces {
        let mut ids = self.vocabulary.pieces(text, max.saturating_sub(2));
        if !ids.is_empty() {
            ids.insert(0, self.ends.0);
            ids.push(self.ends.1);
        }
        let second = vec![0; ids.len()];
        Pieces { ids, second }
    }

    /// A question and a text, with an end after each; of the question at most half of `max`.
    #[cfg(feature = "crossencoder")]
    pub(super) fn pair(&self, question: &str, text: &str, max: usize) -> Pieces {
        let question = self.vocabulary.pieces(question, max / 2);
        let room = max.saturating_sub(question.len() + 3);
        let mut ids = vec![self.ends.0];
        ids.extend(question);
        ids.push(self.ends.1);
        let mut second = vec![0; ids.len()];
        ids.extend(self.vocabulary.pieces(text, room));
        ids.push(self.ends.1);
        second.resize(ids.len(), 1);
        Pieces { ids, second }
    }

    /// The numbers of the model's output.
    pub(super) fn run(&self, pieces: &Pieces) -> Result<Vec<f32>, EmbedError> {
        self.network.run(pieces)
    }
}

pub(super) fn broken(
    what: &str,
    source: impl std::error::Error + Send + Sync + 'static,
) -> EmbedError {
    EmbedError::BadAnswer {
        what: format!("the local model: {what}"),
        source: Some(Box::new(source)),
    }
}

pub(super) fn unusable(what: &str) -> EmbedError {
    EmbedError::BadAnswer {
        what: format!("the local model: {what}"),
        source: None,
    }
}

pub(super) fn failure(path: &Path, what: &str) -> EmbedError {
    EmbedError::Weights {
        path: path.to_owned(),
        what: what.to_owned(),
        source: None,
    }
}

pub(super) fn not_loaded(
    path: &Path,
    what: &str,
    source: impl std::error::Error + Send + Sync + 'static,
) -> EmbedError {
    EmbedError::Weights {
        path: path.to_owned(),
        what: what.to_owned(),
        source: Some(Box::new(source)),
    }
}
