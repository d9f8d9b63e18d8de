//! What all inflections of a word share.

use std::borrow::Cow;
use std::cell::RefCell;

use rust_stemmers::{Algorithm, Stemmer};

use super::sink::clip;
use super::{MAX_TERM_BYTES, irregular, stop};

/// The stem of a word. The script decides the language: it is all that a word alone gives away,
/// and a query has little more than a word.
pub(super) fn stem(word: &str) -> Cow<'_, str> {
    if word.len() <= 2 || word.len() > MAX_TERM_BYTES {
        return Cow::Borrowed(clip(word, MAX_TERM_BYTES));
    }
    if word.bytes().all(|b| b.is_ascii_lowercase()) {
        let word = irregular::base(word).unwrap_or(word);
        return if may_be_inflected(word) {
            english(word)
        } else {
            Cow::Borrowed(word)
        };
    }
    if word.chars().all(|c| ('а'..='я').contains(&c)) {
        return Stemmer::create(Algorithm::Russian).stem(word);
    }
    Cow::Borrowed(word)
}

/// Whether the English stemmer could change the word, by its ending. Two letters rule out half
/// of all words at a hundredth of the stemmer's cost.
pub(super) fn may_be_inflected(word: &str) -> bool {
    matches!(
        word.as_bytes(),
        [.., b'e' | b's' | b'y' | b'i']
            | [.., b'a' | b'u' | b'l', b'l']
            | [.., b'e' | b'o', b'r']
            | [.., b'e', b'd']
            | [.., b'n', b'g' | b't']
            | [.., b'o', b'n']
            | [.., b's', b'm']
            | [.., b'i', b'c']
    )
}

fn english(word: &str) -> Cow<'_, str> {
    MEMO.with_borrow_mut(|memo| {
        if let Some(known) = memo.recall(word) {
            return known;
        }
        let stem = if stop::is_stop(word) {
            Cow::Borrowed(word)
        } else {
            Stemmer::create(Algorithm::English).stem(word)
        };
        memo.keep(word, &stem);
        stem
    })
}

thread_local! {
    /// Text repeats its words, and the stemmer costs a microsecond: it took half the time of an
    /// analysis. What is remembered changes no answer.
    static MEMO: RefCell<Memo> = RefCell::new(Memo::default());
}

/// Bytes of a word that is worth remembering.
const SHORT: usize = 20;
/// Letters that a stem may have instead of an ending (`skies`, `sky`).
const TAIL: usize = 3;
/// Words that are remembered; another word may take the place of one.
const PLACES: usize = 16_384;

#[derive(Default)]
struct Memo {
    places: Vec<Known>,
}

/// A word, and its stem as a beginning of the word and other letters after it.
#[derive(Clone, Default)]
struct Known {
    word: [u8; SHORT],
    len: u8,
    kept: u8,
    tail: [u8; TAIL],
    tail_len: u8,
}

impl Memo {
    fn recall<'a>(&self, word: &'a str) -> Option<Cow<'a, str>> {
        let known = self.places.get(place(word))?;
        if known.word.get(..usize::from(known.len))? != word.as_bytes() {
            return None;
        }
        let kept = word.get(..usize::from(known.kept))?;
        let tail = known.tail.get(..usize::from(known.tail_len))?;
        if tail.is_empty() {
            return Some(Cow::Borrowed(kept));
        }
        let tail = std::str::from_utf8(tail).ok()?;
        Some(Cow::Owned([kept, tail].concat()))
    }

    fn keep(&mut self, word: &str, stem: &str) {
        let alike = word.bytes().zip(stem.bytes()).take_while(|(a, b)| a == b);
        let kept = alike.count();
        let tail = stem.as_bytes().get(kept..).unwrap_or_default();
        let mut known = Known::default();
        let (Some(place_of_word), Some(place_of_tail)) = (
            known.word.get_mut(..word.len()),
            known.tail.get_mut(..tail.len()),
        ) else {
            return;
        };
        place_of_word.copy_from_slice(word.as_bytes());
        place_of_tail.copy_from_slice(tail);
        // All three are below 256, as the places above were long enough.
        (known.len, known.kept, known.tail_len) = (word.len() as u8, kept as u8, tail.len() as u8);
        if self.places.is_empty() {
            self.places = vec![Known::default(); PLACES];
        }
        if let Some(place) = self.places.get_mut(place(word)) {
            *place = known;
        }
    }
}

fn place(word: &str) -> usize {
    let hash = word.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    (hash ^ (hash >> 15)) as usize % PLACES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_what_the_stemmer_says() {
        let stemmer = Stemmer::create(Algorithm::English);
        let words = [
            "running",
            "runs",
            "skies",
            "dying",
            "hoping",
            "relational",
            "happily",
            "generously",
            "internationalisation",
            "early",
            "the",
        ];
        // Twice: first from the stemmer, then from memory.
        for word in words.iter().chain(&words) {
            let expected = if stop::is_stop(word) {
                Cow::Borrowed(*word)
            } else {
                stemmer.stem(word)
            };
            assert_eq!(stem(word), expected, "{word}");
        }
    }

    #[test]
    fn words_that_share_a_place_do_not_share_a_stem() {
        let made = |number: usize| format!("word{}ing", letters(number));
        for number in 0..3 * PLACES {
            assert_eq!(stem(&made(number)), format!("word{}", letters(number)));
        }
    }

    fn letters(number: usize) -> String {
        // Vowels and final consonants would be changed by the stemmer's rules.
        let digits = format!("{number:05}");
        let letters = digits.bytes().map(|digit| char::from(digit - b'0' + b'f'));
        letters
            .map(|c| if "aeiouy".contains(c) { 'x' } else { c })
            .collect::<String>()
            + "ck"
    }
}
