//! budget (draft)
mod bound;
mod counter;

pub use bound::{Bound, word_mark};
pub use counter::{Bytes, Counter, Family, Named};
