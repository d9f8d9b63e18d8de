//! Places to cut at inside of a paragraph: sentences, lines, words, graphemes.

use icu_segmenter::options::{SentenceBreakInvariantOptions, WordBreakInvariantOptions};
use icu_segmenter::{GraphemeClusterSegmenter, SentenceSegmenter, WordSegmenter};

/// Where sentences begin, the beginning and the end of the text left out. A line break does not
/// end a sentence: people wrap their lines.
pub(super) fn sentences(text: &str) -> Vec<usize> {
    let unwrapped = text.replace(['\n', '\r'], " ");
    let segmenter = SentenceSegmenter::new(SentenceBreakInvariantOptions::default());
    inner(segmenter.segment_str(&unwrapped), text)
}

/// Where lines begin, but for the first.
pub(super) fn lines(text: &str) -> Vec<usize> {
    inner(text.match_indices('\n').map(|(at, _)| at + 1), text)
}

/// Where words begin, in scripts without spaces as well.
pub(super) fn words(text: &str) -> Vec<usize> {
    let segmenter = WordSegmenter::new_dictionary(WordBreakInvariantOptions::default());
    let breaks = inner(segmenter.segment_str(text), text).into_iter();
    let begins = |at: &usize| {
        let next = text.get(*at..).and_then(|rest| rest.chars().next());
        next.is_some_and(char::is_alphanumeric)
    };
    breaks.filter(begins).collect()
}

/// Where graphemes begin.
pub(super) fn graphemes(text: &str) -> Vec<usize> {
    inner(GraphemeClusterSegmenter::new().segment_str(text), text)
}

fn inner(places: impl Iterator<Item = usize>, text: &str) -> Vec<usize> {
    places.filter(|at| (1..text.len()).contains(at)).collect()
}
