//! Tokens that are known by the form of their parts.

use super::rules::{Alphabet, CHAT_TOKEN, MAIL_KEY, OFFICE_TOKEN, WEB_TOKEN};
use super::work;

fn run(bytes: &[u8], alphabet: Alphabet) -> usize {
    let length = bytes
        .iter()
        .take_while(|byte| alphabet.holds(**byte))
        .count();
    work::add(length);
    length
}

/// The same, but at most this many: enough to refuse a long run.
fn short_run(bytes: &[u8], alphabet: Alphabet, most: usize) -> usize {
    run(bytes.get(..most).unwrap_or(bytes), alphabet)
}

/// The length and kind of the token that the bytes begin with.
pub(super) fn token(here: &[u8]) -> Option<(usize, &'static str)> {
    match here.first()? {
        b'e' => Some((web_token(here)?, WEB_TOKEN)),
        b'M' | b'N' | b'O' => Some((bot_token(here)?, CHAT_TOKEN)),
        b'p' => Some((table_token(here)?, OFFICE_TOKEN)),
        _ => None,
    }
}

/// Whether one of these may begin with such bytes.
pub(super) fn may_begin(first: u8, second: u8) -> bool {
    matches!(
        (first, second),
        (b'e', b'y') | (b'M' | b'N' | b'O', b'D' | b'T' | b'j' | b'z') | (b'p', b'a')
    )
}

/// Whether a web token may hold this byte, the dots between its parts left out.
pub(super) fn in_web_token(byte: u8) -> bool {
    Alphabet::Word.holds(byte)
}

/// JSON Web Tokens: parts in Base64 with dots between them, the first a JSON object. A signed token
/// has three parts, of which the second is an object, too; an encrypted one has five.
fn web_token(here: &[u8]) -> Option<usize> {
    if !here.starts_with(b"eyJ") {
        return None;
    }
    let header = run(here, Alphabet::Word);
    if header < 10 || here.get(header) != Some(&b'.') {
        return None;
    }
    let payload = here.get(header + 1..)?;
    if payload.starts_with(b"eyJ") {
        let length = run(payload, Alphabet::Word);
        let signed = length >= 4 && payload.get(length) == Some(&b'.');
        let signature = payload.get(length + 1..).unwrap_or_default();
        return signed.then(|| header + length + 2 + run(signature, Alphabet::Word));
    }
    let mut length = header;
    for _ in 0..4 {
        here.get(length).filter(|byte| **byte == b'.')?;
        length += 1 + run(here.get(length + 1..)?, Alphabet::Word);
    }
    (length >= header + 40).then_some(length)
}

/// Discord's: the first part is a number in Base64, digit by digit.
fn bot_token(here: &[u8]) -> Option<usize> {
    let first = short_run(here, Alphabet::Alnum, 32);
    let is_digits = here
        .get(..first)?
        .iter()
        .enumerate()
        .all(|(at, byte)| match at % 4 {
            0 => matches!(byte, b'M'..=b'O'),
            1 => matches!(byte, b'D' | b'T' | b'j' | b'z' | b'A' | b'Q' | b'g' | b'w'),
            2 => b"AEIMQUYcgk".contains(byte),
            _ => matches!(byte, b'w'..=b'z' | b'0'..=b'5'),
        });
    if !is_digits || !(22..=28).contains(&first) || here.get(first) != Some(&b'.') {
        return None;
    }
    let second = short_run(here.get(first + 1..)?, Alphabet::Word, 10);
    let dot = first + 1 + second;
    let third = run(here.get(dot + 1..)?, Alphabet::Word);
    (here.get(dot) == Some(&b'.') && (5..=8).contains(&second) && third >= 25)
        .then_some(dot + 1 + third)
}

/// Airtable's: `pat`, fourteen characters, a dot and 64 hexadecimal digits.
fn table_token(here: &[u8]) -> Option<usize> {
    let id = here.strip_prefix(b"pat")?;
    if short_run(id, Alphabet::Alnum, 15) != 14 || id.get(14) != Some(&b'.') {
        return None;
    }
    let digits = short_run(id.get(15..)?, Alphabet::Hex, 65);
    (digits == 64).then_some(3 + 14 + 1 + 64)
}

/// Telegram's, around the colon at this place: eight to ten digits before, 35 characters after.
pub(super) fn around_colon(bytes: &[u8], at: usize) -> Option<(usize, usize, &'static str)> {
    let after = bytes.get(at + 1..)?;
    if after.first() != Some(&b'A') {
        return None;
    }
    let before = bytes.get(..at)?.iter().rev().take(12);
    let digits = before.take_while(|byte| byte.is_ascii_digit()).count();
    if !(8..=11).contains(&digits) || short_run(after, Alphabet::Word, 36) < 34 {
        return None;
    }
    let length = run(after, Alphabet::Word);
    Some((at - digits, at + 1 + length, CHAT_TOKEN))
}

/// Mailchimp's, around the hyphen at this place: a digest before and the data centre after it.
pub(super) fn around_hyphen(bytes: &[u8], at: usize) -> Option<(usize, usize, &'static str)> {
    let centre = bytes.get(at + 1..)?.strip_prefix(b"us")?;
    let digits = short_run(centre, Alphabet::Alnum, 4);
    let numbers = centre.get(..digits)?.iter().all(u8::is_ascii_digit);
    let before = bytes.get(..at)?.iter().rev().take(33);
    let hex = before.take_while(|byte| byte.is_ascii_hexdigit()).count();
    work::add(hex);
    let fits = (1..=2).contains(&digits) && numbers && hex == 32;
    let start = at.checked_sub(32).filter(|_| fits)?;
    Some((start, at + 3 + digits, MAIL_KEY))
}
