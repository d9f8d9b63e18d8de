//! Tokens that their prefix proves.

use super::rules::{Form, Length, Prefix, RULES, Rule};
use super::value;
use super::work;

/// How many characters after the prefix decide whether a token looks drawn. The rest of a longer
/// one is removed without being judged, which bounds the work on hostile text.
const JUDGED_BYTES: usize = 128;

/// Number of prefixes in the table.
#[allow(
    clippy::indexing_slicing,
    reason = "evaluated at compile time: an index out of range does not compile"
)]
const PREFIXES: usize = {
    let (mut count, mut at) = (0, 0);
    while at < RULES.len() {
        if let Form::Prefix(prefix) = &RULES[at].form {
            count += prefix.starts.len();
        }
        at += 1;
    }
    count
};

/// Marks the end of a chain.
const END: u16 = u16::MAX;

/// The prefixes of the table, chained by their first byte: only rules that can begin with a byte
/// are compared there.
struct Index {
    first: [u16; 256],
    /// Bytes that may stand second after this first one.
    second: [u128; 256],
    links: [Link; PREFIXES],
}

#[derive(Clone, Copy)]
struct Link {
    rule: u16,
    /// The number of the prefix within its rule.
    number: u16,
    next: u16,
    /// The third byte of the prefix, compared before the whole; 0 if there is none.
    third: u8,
}

#[allow(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "evaluated at compile time: an index out of range does not compile"
)]
static INDEX: Index = {
    let mut index = Index {
        first: [END; 256],
        second: [0; 256],
        links: [Link {
            rule: 0,
            number: 0,
            next: END,
            third: 0,
        }; PREFIXES],
    };
    let mut link = PREFIXES;
    let mut at = RULES.len();
    // From the end, so that every chain has the order of the table.
    while at > 0 {
        at -= 1;
        if let Form::Prefix(prefix) = &RULES[at].form {
            let mut number = prefix.starts.len();
            while number > 0 {
                number -= 1;
                link -= 1;
                let start = prefix.starts[number].as_bytes();
                let first = start[0] as usize;
                index.links[link] = Link {
                    rule: at as u16,
                    number: number as u16,
                    next: index.first[first],
                    third: if start.len() > 2 { start[2] } else { 0 },
                };
                index.first[first] = link as u16;
                index.second[first] |= 1 << start[1];
            }
        }
    }
    index
};

/// Whether a token of the table may begin with these two bytes.
pub(super) fn may_begin(first: u8, second: u8) -> bool {
    let seconds = INDEX.second.get(usize::from(first)).copied().unwrap_or(0);
    second.is_ascii() && seconds >> second & 1 == 1
}

/// The length and kind of the token that the bytes begin with.
pub(super) fn token(here: &[u8]) -> Option<(usize, &'static str)> {
    let first = usize::from(*here.first()?);
    let mut link = INDEX.first.get(first).copied()?;
    let third = here.get(2).copied().unwrap_or(0);
    while let Some(it) = INDEX.links.get(usize::from(link)) {
        link = it.next;
        if it.third != third && it.third != 0 {
            continue;
        }
        let rule = RULES.get(usize::from(it.rule))?;
        if let Some(length) = length(here, rule, usize::from(it.number)) {
            return Some((length, rule.kind));
        }
    }
    None
}

fn length(here: &[u8], rule: &Rule, number: usize) -> Option<usize> {
    let Form::Prefix(prefix) = &rule.form else {
        return None;
    };
    let start = prefix.starts.get(number)?;
    let after = here.strip_prefix(start.as_bytes())?;
    rest(after, prefix).map(|length| start.len() + length)
}

/// The length of the token after its prefix.
fn rest(after: &[u8], prefix: &Prefix) -> Option<usize> {
    let least = match prefix.length {
        Length::AtLeast(least) | Length::Exactly(least) => least,
    };
    let head = after.get(..least + JUDGED_BYTES).unwrap_or(after);
    let fits = |byte: &u8| prefix.rest.holds(*byte);
    let length = head.iter().take_while(|byte| fits(byte)).count();
    work::add(length);
    let text = std::str::from_utf8(head.get(..length)?).ok()?;
    let exact = matches!(prefix.length, Length::Exactly(_));
    let ends = |at: usize| !after.get(at).is_some_and(u8::is_ascii_alphanumeric);
    if length < least || (exact && !(length == least && ends(length))) {
        return None;
    }
    if value::is_token_placeholder(text) || (prefix.drawn && !value::is_drawn(text)) {
        return None;
    }
    let length = match length == head.len() {
        true => after.iter().take_while(|byte| fits(byte)).count(),
        false => length,
    };
    work::add(length);
    // A full stop ends the sentence, not the token.
    let dots = after.get(..length)?.iter().rev();
    Some(length - dots.take_while(|byte| **byte == b'.').count())
}
