//! Finding: text to terms, the built-in index, vectors, and the order of what was found.

pub(crate) mod column_file;
pub mod dates;
pub mod index;
pub mod rank;
pub mod speakers;
pub mod text;
pub mod vector;

pub use rank::Candidate;
