//! Exact counts of tokens, for the families whose vocabulary ships with this program.

use mnemon_core::budget::{Bound, Bytes, Counter, Family};
use tiktoken_rs::CoreBPE;

/// Counts as the models of one family do.
///
/// The vocabulary is read on the first count, in some hundred milliseconds, and then kept for all
/// counters of the family.
#[derive(Debug, Clone, Copy)]
struct Exact {
    family: Family,
    vocabulary: fn() -> &'static CoreBPE,
}

impl Counter for Exact {
    fn family(&self) -> Family {
        self.family
    }

    fn count(&self, text: &str) -> usize {
        (self.vocabulary)().count_ordinary(text)
    }
}

/// The counter of this family. Making it costs nothing.
pub fn counter(family: Family) -> Box<dyn Counter> {
    let vocabulary = match family {
        Family::O200k => tiktoken_rs::o200k_base_singleton,
        Family::Cl100k => tiktoken_rs::cl100k_base_singleton,
        Family::Any => return Box::new(Bound),
        Family::Bytes => return Box::new(Bytes),
    };
    Box::new(Exact { family, vocabulary })
}
