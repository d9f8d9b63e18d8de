//! Embedders: text to vectors of unit length.
//!
//! [`Builtin`] needs nothing: its weights are in the binary. `MiniLm` (feature `minilm`) reads
//! weights from a folder that `mnemon model pull` filled. [`OpenAi`] asks an endpoint.
//! `CrossEncoder` (feature `crossencoder`) makes no vectors: it reads a question and a text together.
//!
//! **Invariant:** what an embedder hands out is finite, of unit length and of the dimension its
//! model states, or it is an error. None of them downloads anything to embed a text.

#[cfg(any(feature = "minilm", feature = "crossencoder"))]
mod bert;
mod builtin;
#[cfg(feature = "crossencoder")]
mod crossencoder;
mod lazy;
#[cfg(feature = "minilm")]
mod minilm;
#[cfg(any(feature = "minilm", feature = "crossencoder"))]
mod onnxruntime;
mod openai;
mod pull;
#[cfg(any(feature = "minilm", feature = "crossencoder"))]
mod rten;
mod safetensors;
mod wordpiece;

pub use crate::http::Secret;
pub use builtin::Builtin;
#[cfg(feature = "crossencoder")]
pub use crossencoder::CrossEncoder;
pub use lazy::LazyOpenAi;
#[cfg(feature = "minilm")]
pub use minilm::MiniLm;
#[cfg(any(feature = "minilm", feature = "crossencoder"))]
pub use onnxruntime::OnnxRuntime;
pub use openai::{OpenAi, OpenAiConfig};
pub use pull::{MINILM_FILES, MINILM_URL, ModelFile, PullSource, pull};

use mnemon_core::embed::EmbedError;

/// Scales a vector to unit length. `None` where it has no direction; an error where it holds
/// anything that is not a number.
fn unit(mut vector: Vec<f32>, index: usize) -> Result<Option<Vec<f32>>, EmbedError> {
    // Squares of large f32 overflow; as f64 they do not.
    let square: f64 = vector.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
    if !square.is_finite() {
        return Err(EmbedError::NotFinite { index });
    }
    if square == 0.0 {
        return Ok(None);
    }
    let scale = 1.0 / square.sqrt();
    for x in &mut vector {
        *x = (f64::from(*x) * scale) as f32;
    }
    Ok(Some(vector))
}
