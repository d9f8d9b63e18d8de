//! Models computed by rten, which is pure Rust and part of the binary.

use std::path::Path;

use mnemon_core::embed::EmbedError;
use rten::{Model, NodeId, Value};

use super::bert::{IDS, MASK, Network, Pieces, TYPES, broken, failure, not_loaded, unusable};

pub(super) struct Rten {
    model: Model,
    /// Pieces, mask and types.
    inputs: (NodeId, NodeId, Option<NodeId>),
    output: NodeId,
}

impl Rten {
    pub(super) fn load(path: &Path, bytes: Vec<u8>, output: &str) -> Result<Self, EmbedError> {
        let model = Model::load(bytes);
        let model = model.map_err(|e| not_loaded(path, "they cannot be loaded", e))?;
        let node = |name: &str| {
            model
                .find_node(name)
                .ok_or_else(|| failure(path, &format!("the model has no {name}")))
        };
        Ok(Self {
            inputs: (node(IDS)?, node(MASK)?, model.find_node(TYPES)),
            output: node(output)?,
            model,
        })
    }
}

impl Network for Rten {
    fn run(&self, pieces: &Pieces) -> Result<Vec<f32>, EmbedError> {
        let numbers = |of: &[u32]| of.iter().map(|n| n.cast_signed()).collect();
        let (ids, mask, types) = self.inputs;
        let mut data: Vec<(NodeId, Vec<i32>)> =
            vec![(ids, numbers(&pieces.ids)), (mask, vec![1; pieces.len()])];
        data.extend(types.map(|types| (types, numbers(&pieces.second))));
        let mut inputs = Vec::with_capacity(data.len());
        for (node, data) in data {
            let value = Value::from_shape([1, pieces.len()], data);
            let value = value.map_err(|e| broken("its input has no shape", e))?;
            inputs.push((node, value.into()));
        }
        let output = self.model.run_n(inputs, [self.output], None);
        let [output] = output.map_err(|e| broken("it failed", e))?;
        let numbers = output.into_tensor::<f32>();
        let numbers = numbers.ok_or_else(|| unusable("its output is not of type f32"))?;
        Ok(numbers.into_data())
    }
}
