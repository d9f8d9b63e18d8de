//! Keys, tokens and passwords that got into a text by mistake: where they are, and the text
//! without them.
//!
//! It knows the shapes that keys have (a prefix and a length), blocks of private keys, passwords in
//! addresses, and what is said to be a key or a token and looks drawn by lot. It would rather miss
//! one than take a word of prose or a name in a program for a secret.

mod assigned;
mod block;
mod shape;
mod url;

use serde::{Deserialize, Serialize};

use crate::scope::words;

words! {
    /// What to do with a secret in what is written.
    SecretPolicy, "secrets" {
        /// Nothing is written; the error says what was found.
        Refuse = "refuse",
        /// The secret is taken out, the rest is written, and the answer says so.
        Mask = "mask",
        /// It is written as it is.
        Allow = "allow",
    }
}

/// Something secret in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Secret {
    /// What it is, in words.
    pub what: &'static str,
    /// Where it begins and ends, in bytes.
    pub start: usize,
    pub end: usize,
}

/// The secrets of a text, in its order; none overlaps another.
#[must_use]
pub fn find(text: &str) -> Vec<Secret> {
    // Every text that is written comes by here, and most hold nothing: whether a mark is there at
    // all is known much sooner than where.
    let mut found = Vec::new();
    if text.contains(block::BEGIN) {
        block::find(text, &mut found);
    }
    shape::find(text, &mut found);
    if text.contains(url::MARK) {
        url::find(text, &mut found);
    }
    assigned::find(text, &mut found);
    found.sort_by_key(|secret| (secret.start, std::cmp::Reverse(secret.end)));
    // Two that overlap are one: nothing of either may stay. It is called what the first is.
    found.dedup_by(|later, first| {
        let overlaps = later.start < first.end;
        if overlaps {
            first.end = first.end.max(later.end);
        }
        overlaps
    });
    found
}

/// The secrets of a text that has a name, as in `{"password": "…"}`: those that it holds, and the
/// text itself if its name says so.
#[must_use]
pub fn find_under(name: &str, text: &str) -> Vec<Secret> {
    if !assigned::names_secret(name) {
        return find(text);
    }
    // As long as a name is; the end of a longer one says what it is.
    let from = name.ceil_char_boundary(name.len().saturating_sub(KEY_BYTES));
    let said = format!("{}=", name.get(from..).unwrap_or_default());
    let mut found = find(&format!("{said}{text}"));
    // What the name itself holds is looked for where names are.
    found.retain(|secret| secret.end > said.len());
    for secret in &mut found {
        secret.start = secret.start.saturating_sub(said.len());
        secret.end -= said.len();
    }
    found
}

/// What a mark in the place of a secret begins with.
const MARK: &str = "[secret removed: ";

/// Whether something was taken out of the text.
#[must_use]
pub fn is_masked(text: &str) -> bool {
    text.contains(MARK)
}

/// The text with a mark in the place of each secret.
#[must_use]
pub fn mask(text: &str, secrets: &[Secret]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for secret in secrets {
        out.push_str(text.get(from..secret.start).unwrap_or_default());
        out.push_str(MARK);
        out.push_str(secret.what);
        out.push(']');
        from = secret.end;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    out
}

/// Whether the text looks drawn by lot rather than thought up: letters and digits that take turns.
fn is_random(text: &str) -> bool {
    let class = |byte: u8| match byte {
        b'0'..=b'9' => Some(0),
        b'a'..=b'z' => Some(1),
        b'A'..=b'Z' => Some(2),
        _ => None,
    };
    let bytes = text.as_bytes();
    let digits = bytes.iter().filter(|byte| byte.is_ascii_digit()).count();
    let letters = bytes.iter().filter(|byte| byte.is_ascii_alphabetic());
    let pairs = bytes.iter().zip(bytes.iter().skip(1));
    let turns = pairs.filter(|(one, next)| {
        let (one, next) = (class(**one), class(**next));
        one.is_some() && next.is_some() && one != next
    });
    digits >= 2 && letters.count() >= 2 && turns.count() * 4 >= bytes.len()
}

/// Whether the byte may stand in a key.
fn in_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

/// A key is no longer than this. It also bounds the work: a text is looked at from many places.
const KEY_BYTES: usize = 256;

/// The length of the run of such bytes at the beginning, as far as a key goes.
fn run(bytes: &[u8], wanted: impl Fn(u8) -> bool) -> usize {
    let bytes = bytes.get(..KEY_BYTES).unwrap_or(bytes);
    bytes.iter().take_while(|byte| wanted(**byte)).count()
}

#[cfg(test)]
mod tests;
