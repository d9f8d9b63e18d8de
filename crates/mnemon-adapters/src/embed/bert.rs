//! Models of the BERT family in ONNX files, run on this machine: what the embedder and the
//! cross-encoder have in common. The vocabulary is the built-in one, the lower-case English one
//! that most small models of the family share.
//!
//! Texts are run one by one. Together they would go twice as fast, but int8 models round by the
//! largest value in a batch: what a text gets would depend on its neighbours (cosine 0.99 to
//! itself), and a rebuilt store would differ from the first.

use std::path::Path;

use mnemon_core::embed::EmbedError;
use rten::{Model, NodeId, Value};

use super::builtin::VOCABULARY;
use super::wordpiece::Vocabulary;

pub(super) struct Bert {
    model: Model,
    vocabulary: Vocabulary<'static>,
    /// `[CLS]` and `[SEP]`.
    ends: (u32, u32),
    /// Pieces, mask and types; some models know no types.
    inputs: (NodeId, NodeId, Option<NodeId>),
    output: NodeId,
}

/// Pieces with their ends, and for each whether it belongs to the second text.
pub(super) struct Pieces {
    ids: Vec<u32>,
    second: Vec<i32>,
}

impl Pieces {
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }
}

impl Bert {
    /// Loads what stands in the file at `path`, whose `output` is wanted.
    pub(super) fn load(path: &Path, bytes: Vec<u8>, output: &str) -> Result<Self, EmbedError> {
        let model = Model::load(bytes).map_err(|e| EmbedError::Weights {
            path: path.to_owned(),
            what: "they cannot be loaded".to_owned(),
            source: Some(Box::new(e)),
        })?;
        let vocabulary = Vocabulary::parse(VOCABULARY).map(Vocabulary::with_unknown);
        let vocabulary =
            vocabulary.ok_or_else(|| failure(path, "the vocabulary has no usable size"))?;
        let id = |line| {
            vocabulary
                .id(line)
                .ok_or_else(|| failure(path, "the vocabulary has no [CLS] or [SEP]"))
        };
        let node = |name: &str| {
            model
                .find_node(name)
                .ok_or_else(|| failure(path, &format!("the model has no {name}")))
        };
        Ok(Self {
            ends: (id("[CLS]")?, id("[SEP]")?),
            inputs: (
                node("input_ids")?,
                node("attention_mask")?,
                model.find_node("token_type_ids"),
            ),
            output: node(output)?,
            vocabulary,
            model,
        })
    }

    /// The pieces of a text between their ends, at most `max` of them; nothing where the text has
    /// none.
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

    /// What the model makes of the pieces.
    pub(super) fn run(&self, pieces: &Pieces) -> Result<Value, EmbedError> {
        let ids: Vec<i32> = pieces.ids.iter().map(|id| id.cast_signed()).collect();
        let (id, mask, types) = self.inputs;
        let mut data = vec![(id, ids), (mask, vec![1; pieces.len()])];
        data.extend(types.map(|types| (types, pieces.second.clone())));
        let mut inputs = Vec::with_capacity(data.len());
        for (node, data) in data {
            let value = Value::from_shape([1, pieces.len()], data);
            let value = value.map_err(|e| broken("its input has no shape", e))?;
            inputs.push((node, value.into()));
        }
        let [output] = self
            .model
            .run_n(inputs, [self.output], None)
            .map_err(|e| broken("it failed", e))?;
        Ok(output)
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

pub(super) fn failure(path: &Path, what: &str) -> EmbedError {
    EmbedError::Weights {
        path: path.to_owned(),
        what: what.to_owned(),
        source: None,
    }
}
