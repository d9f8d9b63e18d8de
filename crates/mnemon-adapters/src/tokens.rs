//! Exact counts of tokens, for the families whose vocabulary ships with this program.

use std::sync::LazyLock;

use mnemon_core::budget::{Bound, Bytes, Counter, Family};
use tiktoken_rs::{CoreBPE, O200K_BASE_PAT_STR};

/// `None` if the file in the program is damaged.
type Vocabulary = LazyLock<Option<CoreBPE>>;

static O200K: Vocabulary = LazyLock::new(|| {
    let deflated = include_bytes!("../assets/o200k.deflate");
    vocabulary(deflated, O200K_BASE_PAT_STR)
});
static CL100K: Vocabulary = LazyLock::new(|| {
    let deflated = include_bytes!("../assets/cl100k.deflate");
    vocabulary(deflated, CL100K_PATTERN)
});

/// How cl100k cuts a text before it merges bytes; `tiktoken-rs` does not export it.
const CL100K_PATTERN: &str = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s";

/// Inflates tokens in the order of their ranks, each after a byte with its length. The tables of
/// `tiktoken-rs` are base64 and would add 3.8 MB to the program; the linker leaves them out.
fn vocabulary(deflated: &[u8], pattern: &str) -> Option<CoreBPE> {
    let tokens = miniz_oxide::inflate::decompress_to_vec(deflated).ok()?;
    let mut rest = tokens.as_slice();
    let tokens = std::iter::from_fn(|| {
        let (length, after) = rest.split_first()?;
        let (token, after) = after.split_at_checked(usize::from(*length))?;
        rest = after;
        Some(token.to_vec())
    });
    let ranks = tokens.zip(0..).collect();
    CoreBPE::new(ranks, Default::default(), pattern).ok()
}

/// Counts as the models of one family do.
///
/// The vocabulary is read on the first count, in some hundred milliseconds, and then kept for all
/// counters of the family.
#[derive(Clone, Copy)]
struct Exact {
    family: Family,
    vocabulary: &'static Vocabulary,
}

impl Counter for Exact {
    fn family(&self) -> Family {
        self.family
    }

    fn count(&self, text: &str) -> usize {
        match &**self.vocabulary {
            Some(vocabulary) => vocabulary.count_ordinary(text),
            None => Bound.count(text),
        }
    }
}

/// The counter of this family. Making it costs nothing.
pub fn counter(family: Family) -> Box<dyn Counter> {
    let vocabulary = match family {
        Family::O200k => &O200K,
        Family::Cl100k => &CL100K,
        Family::Any => return Box::new(Bound),
        Family::Bytes => return Box::new(Bytes),
    };
    Box::new(Exact { family, vocabulary })
}
