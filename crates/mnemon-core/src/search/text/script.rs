//! Runs of scripts that are written without spaces, or whose words carry their particles.
//!
//! A dictionary cuts such a run into words; where it cuts a document otherwise than a query,
//! the one- and two-character grams of the run still meet.

use icu_segmenter::WordSegmenter;
use icu_segmenter::options::WordBreakInvariantOptions;

use super::analysis::Kind;
use super::sink::Sink;
use super::stop;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Script {
    /// Chinese characters and kana.
    Cjk,
    /// Written with spaces, but particles hang on the word.
    Hangul,
    /// Thai, Lao, Khmer, Burmese.
    SouthEastAsian,
}

impl Script {
    pub(super) fn of(c: char) -> Option<Self> {
        Some(match c {
            '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' => {
                Self::SouthEastAsian
            }
            '\u{1100}'..='\u{11ff}' | '\u{3131}'..='\u{318e}' | '\u{ac00}'..='\u{d7ff}' => {
                Self::Hangul
            }
            '\u{2e80}'..='\u{2fdf}' | '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{309f}' => {
                Self::Cjk
            }
            '\u{30a1}'..='\u{30fa}' | '\u{30fc}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' => {
                Self::Cjk
            }
            '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' => {
                Self::Cjk
            }
            '\u{20000}'..='\u{3ffff}' => Self::Cjk,
            _ => return None,
        })
    }
}

/// Whether the character belongs to a script that is written without spaces, or to Hangul.
pub(crate) fn is_unspaced(c: char) -> bool {
    Script::of(c).is_some()
}

/// What a character of a word is worth beside the word: it finds another inflection or another
/// cut, and much that is not meant.
const CHARACTER_WEIGHT: f32 = 0.2;

pub(super) fn run(script: Script, text: &str, sink: &mut Sink) {
    match script {
        Script::Cjk => cjk(text, sink),
        Script::Hangul => hangul(text, sink),
        Script::SouthEastAsian => dictionary_words(&recomposed(text), sink),
    }
}

/// NFKC takes the Thai and Lao vowel `am` apart, and the dictionary knows it only whole.
fn recomposed(text: &str) -> String {
    text.replace("\u{e4d}\u{e32}", "\u{e33}")
        .replace("\u{ecd}\u{eb2}", "\u{eb3}")
}

fn dictionary_words(text: &str, sink: &mut Sink) {
    for word in words(text) {
        sink.push(word, Kind::Exact, false);
        sink.advance();
    }
}

fn hangul(text: &str, sink: &mut Sink) {
    sink.begin();
    sink.push(text, Kind::Exact, false);
    for gram in pairs(text) {
        sink.push_new(gram, Kind::Gram, false);
    }
    sink.advance();
}

fn cjk(text: &str, sink: &mut Sink) {
    let mut rest = text;
    for word in words(text) {
        if sink.is_full() {
            return;
        }
        sink.begin();
        cjk_word(word, word.len() == text.len(), sink);
        // Grams that begin in this word; the last one reaches into the next.
        let reach = rest
            .get(word.len()..)
            .and_then(|r| r.chars().next())
            .map_or(0, char::len_utf8);
        let window = rest.get(..word.len() + reach).unwrap_or(word);
        for gram in pairs(window) {
            let stop = gram.chars().all(stop::is_stop_char);
            sink.push_new(gram, Kind::Gram, stop);
        }
        sink.advance();
        rest = rest.get(word.len()..).unwrap_or_default();
    }
}

fn cjk_word(word: &str, alone: bool, sink: &mut Sink) {
    let stop = stop::is_stop_unspaced(word);
    let single = word.chars().nth(1).is_none();
    let weight = if single && !alone {
        CHARACTER_WEIGHT
    } else {
        1.0
    };
    sink.push_weighed(word, Kind::Exact, stop, weight);
    for (at, c) in word.char_indices().filter(|_| !single) {
        let character = word.get(at..at + c.len_utf8()).unwrap_or_default();
        if is_han(c) {
            let stop = stop || stop::is_stop_unspaced(character);
            sink.push_weighed(character, Kind::Gram, stop, CHARACTER_WEIGHT);
        }
    }
}

fn is_han(c: char) -> bool {
    !matches!(c, '\u{3005}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}')
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let segmenter = WordSegmenter::new_dictionary(WordBreakInvariantOptions::default());
    let mut start = 0;
    segmenter.segment_str(text).filter_map(move |end| {
        let word = text.get(start..end).filter(|w| !w.is_empty());
        start = end;
        word
    })
}

/// Every two neighbouring characters.
fn pairs(text: &str) -> impl Iterator<Item = &str> {
    let ends = text
        .char_indices()
        .skip(2)
        .map(|(at, _)| at)
        .chain(std::iter::once(text.len()));
    let starts = text.char_indices().map(|(at, _)| at);
    let two = text.chars().nth(1).is_some();
    starts
        .zip(ends)
        .filter_map(move |(start, end)| text.get(start..end).filter(|_| two))
}
