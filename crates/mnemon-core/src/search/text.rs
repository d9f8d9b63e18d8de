//! One analysis of text for every backend, so that results agree between them.
//!
//! A document and a query go through the same function; only the weights differ. What a word
//! becomes is decided by the word alone (its script, its shape), never by a guess about the
//! whole text: a two-word query would be guessed differently from the page it looks for.
//!
//! A word yields one *loose* term that all its spellings share, and where the spelling differs
//! from it, a *tight* term as well:
//!
//! | word        | loose              | tight              |
//! |-------------|--------------------|--------------------|
//! | `run`       | `run` (Exact)      |                    |
//! | `running`   | `run` (Stem)       | `ǀrunning` (Surface) |
//! | `quyết`     | `quyet` (Folded)   | `quyết` (Exact)    |
//! | `parseJSON` | `pars`, `json` (Part) | `parsejson` (Exact) |
//! | `東京都`    | `東京`, `京都`, `京` (Gram) | `東京`, `都` (Exact) |
//!
//! **Invariant:** every occurrence of a tight term also yields its loose term, so the document
//! frequency of the loose one is never smaller. Scores may therefore simply be added
//! (`Σ weight × idf × saturation(tf)`): a rarer spelling can never outrank the exact one by its
//! idf alone.
//!
//! Terms hold letters, digits and no ASCII punctuation: FTS5 (`ascii` or `unicode61`) and
//! `tsvector` keep each of them whole.
//!
//! Stop words are flagged, never dropped: a query of nothing but stop words still works.
//!
//! ```
//! use mnemon_core::text::{index_terms, query_terms};
//! let page = index_terms("Chúng tôi quyết định dùng parseJSON từ 2023-05-07");
//! let finds = |query: &str| {
//!     query_terms(query).iter().any(|q| page.iter().any(|t| t.text == q.text))
//! };
//! assert!(finds("quyet dinh") && finds("json") && finds("May 2023"));
//! ```

mod analysis;
mod compound;
mod dates;
mod fold;
mod irregular;
mod scan;
mod script;
mod sink;
mod stem;
mod stop;
#[cfg(test)]
mod tests;

pub(crate) use dates::MONTHS;
pub(crate) use script::is_unspaced;

pub use analysis::{Analysis, IndexTerm, Kind, QueryTerm, Term};
pub use irregular::leave_out_irregular_forms;

/// Bytes of a text that are analysed; the rest is not searchable by words.
pub const MAX_TEXT_BYTES: usize = 1 << 20;
/// Terms one text may yield.
pub const MAX_TERMS: usize = 1 << 19;
/// Bytes of one term; a longer word is known by its beginning.
pub const MAX_TERM_BYTES: usize = 64;
/// Bytes of a query that are analysed.
pub const MAX_QUERY_BYTES: usize = 8 << 10;
/// Distinct terms a query may yield.
pub const MAX_QUERY_TERMS: usize = 256;

/// The terms of `text` in reading order.
pub fn analyse(text: &str) -> Analysis {
    let text = cut(text, MAX_TEXT_BYTES);
    let mut sink = sink::Sink::with_capacity(text.len());
    scan::scan(text, &mut sink);
    sink.finish()
}

/// What a document is indexed under: each distinct term once, in order of first occurrence,
/// with its weighted number of occurrences.
pub fn index_terms(text: &str) -> Vec<IndexTerm> {
    analyse(text).counts()
}

/// What a query looks for: each distinct term once, the best-weighted first kept when there are
/// more than [`MAX_QUERY_TERMS`].
pub fn query_terms(text: &str) -> Vec<QueryTerm> {
    analyse(cut(text, MAX_QUERY_BYTES)).wanted()
}

/// The longest beginning of `text` of at most `max` bytes, ending before white space if there is
/// any, so that no half word gets indexed.
fn cut(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let head = text
        .get(..text.floor_char_boundary(max))
        .unwrap_or_default();
    match head.rfind(|c: char| c.is_ascii_whitespace()) {
        Some(end) => head.get(..end).unwrap_or(head),
        None => head,
    }
}
