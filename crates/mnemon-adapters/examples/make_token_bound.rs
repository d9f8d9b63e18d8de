//! Makes the tables of `core::budget::Bound` from the vocabularies that ship with this program:
//! `cargo run --release -p mnemon-adapters --example make_token_bound -- crates/mnemon-core/src/context/budget/bound`

#![allow(
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a tool that is run by hand"
)]

use std::collections::{BTreeSet, HashSet};
use std::error::Error;
use std::path::Path;

use mnemon_core::budget::word_mark;
use tiktoken_rs::CoreBPE;

/// What may stand right before a word and be cut into one piece with it.
const BEFORE: &str = "\t!\"#$%&()*+,-./:;<=>?@[\\]^_`{|}~“‘—–…•";
/// What one vocabulary glues to the end of a word.
const AFTER: [&str; 7] = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d"];

type Vocabulary = HashSet<Vec<u8>>;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args()
        .nth(1)
        .ok_or("name the folder to write to")?;
    let folder = Path::new(&folder);
    let models = [
        tiktoken_rs::o200k_base_singleton(),
        tiktoken_rs::cl100k_base_singleton(),
    ];
    let vocabularies = models.map(vocabulary);
    let in_all = |token: &[u8]| vocabularies.iter().all(|known| known.contains(token));
    let in_any = |token: &[u8]| vocabularies.iter().any(|known| known.contains(token));

    std::fs::write(folder.join("pairs_all.bin"), pairs(in_all))?;
    std::fs::write(folder.join("pairs_any.bin"), pairs(in_any))?;
    let long = |token: &&Vec<u8>| token.len() > 2;
    let long: Vec<&Vec<u8>> = vocabularies.iter().flatten().filter(long).collect();
    let starts: HashSet<&[u8]> = long.iter().map(|token| &token[..2]).collect();
    let ends: HashSet<&[u8]> = long.iter().map(|token| &token[token.len() - 2..]).collect();
    let starts = pairs(|pair| starts.contains(pair));
    std::fs::write(folder.join("starts_any.bin"), starts)?;
    let ends = pairs(|pair| ends.contains(pair));
    std::fs::write(folder.join("ends_any.bin"), ends)?;
    std::fs::write(folder.join("triples.bin"), triples(in_all))?;
    std::fs::write(folder.join("chars.txt"), chars(in_all))?;
    // The words of an older vocabulary are the most frequent ones: half as many as in the others.
    let frequent = vocabulary(tiktoken_rs::r50k_base_singleton());
    let words = words(&frequent, &models, in_all);
    println!("{} words", words.len());
    let marks: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
    std::fs::write(folder.join("words.bin"), marks)?;
    Ok(())
}

fn vocabulary(model: &CoreBPE) -> Vocabulary {
    // No vocabulary here has more; numbers that are none are passed over.
    (0..210_000)
        .filter_map(|token| model.decode_bytes(&[token]).ok())
        .collect()
}

fn bits(flags: impl Iterator<Item = bool>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (at, flag) in flags.enumerate() {
        if at % 8 == 0 {
            bytes.push(0);
        }
        if let Some(last) = bytes.last_mut() {
            *last |= u8::from(flag) << (at % 8);
        }
    }
    bytes
}

fn pairs(known: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let all = (0..=255u8).flat_map(|a| (0..=255u8).map(move |b| [a, b]));
    bits(all.map(|pair| known(&pair)))
}

/// A space or a letter, then two small letters.
fn triples(known: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let first = std::iter::once(b' ').chain(b'a'..=b'z').chain(b'A'..=b'Z');
    let all =
        first.flat_map(|a| (b'a'..=b'z').flat_map(move |b| (b'a'..=b'z').map(move |c| [a, b, c])));
    bits(all.map(|triple| known(&triple)))
}

/// The characters of three bytes that are a token of their own.
fn chars(known: impl Fn(&[u8]) -> bool) -> String {
    let all = ('\u{800}'..='\u{ffff}').filter(|c| known(c.to_string().as_bytes()));
    all.collect()
}

/// Marks of the words that are one token after a space; the lowest bit says whether they are
/// without one, too.
fn words(
    frequent: &Vocabulary,
    models: &[&CoreBPE],
    known: impl Fn(&[u8]) -> bool,
) -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    for token in frequent {
        let Some(word) = token.strip_prefix(b" ") else {
            continue;
        };
        let is_word = word.len() > 1 && word.iter().all(u8::is_ascii_alphabetic);
        let Ok(word) = std::str::from_utf8(word) else {
            continue;
        };
        // Where a small letter meets a capital one vocabulary cuts.
        let plain = word.bytes().skip(1).all(|byte| byte.is_ascii_lowercase());
        if !is_word || !plain || !known(token) || !stays_whole(word, models) {
            continue;
        }
        let bare = known(word.as_bytes()) && stays_whole_after(word, models);
        found.insert(word_mark(word.as_bytes()) | u64::from(bare));
    }
    found
}

/// Whether the word and what is glued to it never take more than they do apart.
fn stays_whole(word: &str, models: &[&CoreBPE]) -> bool {
    AFTER.iter().all(|after| {
        let text = format!(" {word}{after}");
        models.iter().all(|model| model.count_ordinary(&text) <= 3)
    })
}

fn stays_whole_after(word: &str, models: &[&CoreBPE]) -> bool {
    let glued = AFTER.iter().all(|after| {
        let text = format!("{word}{after}");
        models.iter().all(|model| model.count_ordinary(&text) <= 3)
    });
    glued
        && BEFORE.chars().all(|before| {
            let text = format!("{before}{word}");
            models.iter().all(|model| {
                let alone = model.count_ordinary(&before.to_string());
                model.count_ordinary(&text) <= alone + 1
            })
        })
}
