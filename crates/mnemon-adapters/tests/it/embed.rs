//! Embedders and rerankers, through what a caller sees of them.

mod builtin;
#[cfg(feature = "crossencoder")]
mod crossencoder;
#[cfg(feature = "minilm")]
mod minilm;
mod openai;
mod pull;
#[cfg(any(feature = "minilm", feature = "crossencoder"))]
mod weights;
