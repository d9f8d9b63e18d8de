//! Vector arithmetic for the meaning arm.
//!
//! A [`VectorSet`] keeps each vector small, in three grains: one sign bit per dimension
//! (dimension / 8 + 4 bytes), int8 with a scale (dimension + 4 bytes), and four bits more of each
//! value (dimension / 2 bytes); 424 bytes at 256 dimensions. A search over few candidates scans
//! the int8 codes; over many it lets the bits choose a few percent of them first. Either way the
//! best are scored again by all twelve bits, with the query as it came.
//!
//! Filters come first: a search looks at the candidates it is given and at nothing else, so
//! asking for ten gives ten wherever ten exist.
//!
//! **Invariant:** equal input gives equal output, on every machine: all comparisons that choose
//! are made on integers or on sums in one fixed order, and ties go to the smaller slot.
//!
//! ```
//! use mnemon_core::vector::{Candidates, ScanConfig, VectorSet};
//! let mut set = VectorSet::new(4)?;
//! set.push(&[1.0, 0.0, 0.0, 0.0])?;
//! set.push(&[0.6, 0.8, 0.0, 0.0])?;
//! let best = set.search(&[0.0, 1.0, 0.0, 0.0], 1, Candidates::All, &ScanConfig::default())?;
//! assert_eq!(best[0].slot, 1);
//! # Ok::<(), mnemon_core::vector::VectorError>(())
//! ```

mod dense;
mod rotate;
mod scan;
mod set;
mod simd;
mod sketches;
#[cfg(test)]
mod tests;
mod top;

pub use dense::{VectorError, dot, normalise};
pub use scan::{Candidates, ScanConfig, Scored};
pub use set::{MAX_DIMENSION, Quantised, VectorSet, quantise};
pub use top::TopK;
