//! Words that mean nearly the same as a word of the query.

use mnemon_core::embed::Embedder;
use mnemon_core::rank::SIMILAR_WEIGHT;
use mnemon_core::text::{self, Kind};
use mnemon_core::{QueryTerm, SimilarTerm};

/// Words that count for one word of the query, at the most.
const PER_WORD: usize = 4;

/// The terms that count in part as one of the query's terms. Those of the query itself are not
/// among them.
pub(super) fn terms(embedder: &dyn Embedder, query: &str, known: &[QueryTerm]) -> Vec<SimilarTerm> {
    let weight = SIMILAR_WEIGHT * embedder.fluency(query);
    let mut found: Vec<SimilarTerm> = Vec::new();
    if weight == 0.0 {
        return found;
    }
    let is_known = |text: &str| known.iter().any(|known| known.text == text);
    for (term, word) in words(query) {
        if !is_known(&term) || found.iter().any(|found| found.of == term) {
            continue;
        }
        let start = found.len();
        for (other, nearness) in embedder.similar_words(&word) {
            let Some((text, _)) = words(other).pop().filter(|(text, _)| !is_known(text)) else {
                continue;
            };
            let own = found.get(start..).unwrap_or_default();
            if own.iter().all(|found| found.text != text) {
                found.push(SimilarTerm {
                    of: term.clone(),
                    text,
                    similarity: weight * nearness,
                });
            }
            if found.len() - start == PER_WORD {
                break;
            }
        }
    }
    found
}

/// The words of a text that say something, each as a term of the index and as it is written.
fn words(text: &str) -> Vec<(String, String)> {
    let mut words: Vec<(String, String)> = Vec::new();
    let analysis = text::analyse(text);
    for term in analysis.terms().filter(|term| !term.stop) {
        match term.kind {
            Kind::Exact | Kind::Stem => words.push((term.text.to_owned(), term.text.to_owned())),
            // It follows the stem of the word.
            Kind::Surface => {
                if let Some((_, written)) = words.last_mut() {
                    *written = term.text.trim_start_matches('ǀ').to_owned();
                }
            }
            Kind::Folded | Kind::Part | Kind::Gram => {}
        }
    }
    words
}
