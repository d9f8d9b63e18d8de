//! Keys, tokens and passwords that got into a text by mistake: where they are, and the text
//! without them.
//!
//! The kinds that are recognised stand in one table, `rules.rs`: tokens that their prefix proves,
//! names that announce a value, and shapes such as blocks of private keys, addresses with a
//! password and card numbers. A value that only a name announces must also look like a secret, so
//! that prose and programs are left alone.
//!
//! The work is linear in the length of the text, whatever the text is; `work.rs` counts it.

mod address;
mod block;
mod command;
mod named;
mod number;
mod prefixed;
mod rules;
mod scan;
mod shapes;
mod spoken;
mod unescaped;
mod value;
mod words;
mod work;

use crate::error::words;

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
    pub kind: &'static str,
    /// Where it begins and ends, in bytes.
    pub start: usize,
    pub end: usize,
}

/// The secrets of a text, in its order; none overlaps another.
pub fn find(text: &str) -> Vec<Secret> {
    let mut found = Vec::new();
    scan::scan(text, &mut found);
    unescaped::lines(text, |line| {
        let mut within = Vec::new();
        scan::scan(&line.text, &mut within);
        found.extend(within.into_iter().map(|secret| Secret {
            kind: secret.kind,
            start: line.original(secret.start),
            end: line.original(secret.end),
        }));
    });
    merged(found)
}

/// In order, and two that overlap as one: nothing of either may stay.
fn merged(mut found: Vec<Secret>) -> Vec<Secret> {
    let is_general = |secret: &Secret| matches!(secret.kind, rules::KEY | rules::PASSWORD);
    found.sort_by_key(|secret| {
        let end = std::cmp::Reverse(secret.end);
        (secret.start, is_general(secret), end)
    });
    // It is called what the first is, and the more specific of two that begin together.
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
pub fn find_under(name: &str, text: &str) -> Vec<Secret> {
    let mut found = find(text);
    if let Some((start, end, kind)) = named::member(name, text) {
        found.push(Secret { kind, start, end });
        return merged(found);
    }
    found
}

/// The first secret in a name that a caller chose: an id or an idempotency key. Names made of
/// digits pass the check of a payment card by chance, and so are not taken for one.
pub fn find_in_identifier(name: &str) -> Option<Secret> {
    let mut found = find(name).into_iter();
    found.find(|secret| secret.kind != rules::CARD)
}

/// What a mark in the place of a secret begins with.
const MARK: &str = "[secret removed: ";

/// Whether something was taken out of the text.
pub fn is_masked(text: &str) -> bool {
    text.contains(MARK)
}

/// The text with a mark in the place of each secret.
pub fn mask(text: &str, secrets: &[Secret]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for secret in secrets {
        out.push_str(text.get(from..secret.start).unwrap_or_default());
        out.push_str(MARK);
        out.push_str(secret.kind);
        out.push(']');
        from = secret.end;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests;
