//! Keys that are known by their beginning and length.

use super::{Secret, in_key, is_random, run};

/// What follows the beginning of a key.
#[derive(Clone, Copy)]
enum Rest {
    /// So many upper case letters and digits, no more.
    Upper(usize),
    /// At least so many letters and digits.
    Plain(usize),
    /// At least so many letters, digits, `-` and `_` that look drawn by lot.
    Random(usize),
}

/// Beginning, what follows, what it is. A longer beginning stands before a shorter one.
const SHAPES: &[(&str, Rest, &str)] = &[
    ("AKIA", Rest::Upper(16), "cloud access key"),
    ("ASIA", Rest::Upper(16), "cloud access key"),
    ("AIza", Rest::Random(35), "cloud access key"),
    ("dop_v1_", Rest::Plain(64), "cloud access key"),
    ("ya29.", Rest::Random(30), "cloud access token"),
    ("ghp_", Rest::Plain(36), "repository token"),
    ("gho_", Rest::Plain(36), "repository token"),
    ("ghu_", Rest::Plain(36), "repository token"),
    ("ghs_", Rest::Plain(36), "repository token"),
    ("ghr_", Rest::Plain(36), "repository token"),
    ("github_pat_", Rest::Random(22), "repository token"),
    ("glpat-", Rest::Random(20), "repository token"),
    ("xoxb-", Rest::Random(20), "chat token"),
    ("xoxp-", Rest::Random(20), "chat token"),
    ("xoxa-", Rest::Random(20), "chat token"),
    ("xoxr-", Rest::Random(20), "chat token"),
    ("xoxs-", Rest::Random(20), "chat token"),
    ("xapp-", Rest::Random(20), "chat token"),
    ("sk-ant-", Rest::Random(20), "model API key"),
    ("sk-proj-", Rest::Random(20), "model API key"),
    ("sk-", Rest::Random(20), "model API key"),
    ("gsk_", Rest::Random(30), "model API key"),
    ("hf_", Rest::Plain(30), "model API key"),
    ("sk_live_", Rest::Plain(16), "payment key"),
    ("sk_test_", Rest::Plain(16), "payment key"),
    ("rk_live_", Rest::Plain(16), "payment key"),
    ("rk_test_", Rest::Plain(16), "payment key"),
    ("whsec_", Rest::Plain(24), "payment key"),
    ("shpat_", Rest::Plain(32), "shop token"),
    ("npm_", Rest::Plain(36), "package registry token"),
    ("pypi-", Rest::Random(50), "package registry token"),
    ("SG.", Rest::Random(20), "mail key"),
];

/// A part of a signed token is no longer than this.
const TOKEN_PART_BYTES: usize = 4096;

/// What a byte may be for a key, looked up: it is asked of every byte of every text.
const INSIDE: u8 = 1;
const FIRST: u8 = 2;

#[allow(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "worked out while it is compiled: what goes wrong does not compile"
)]
const SORTS: [u8; 256] = {
    let mut sorts = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let it = byte as u8;
        if it.is_ascii_alphanumeric() || it == b'-' || it == b'_' {
            sorts[byte] |= INSIDE;
        }
        byte += 1;
    }
    // A signed token begins with this one.
    sorts[b'e' as usize] |= FIRST;
    let mut at = 0;
    while at < SHAPES.len() {
        sorts[SHAPES[at].0.as_bytes()[0] as usize] |= FIRST;
        at += 1;
    }
    sorts
};

pub(super) fn find(text: &str, found: &mut Vec<Secret>) {
    let bytes = text.as_bytes();
    let mut before = 0;
    let mut from = 0;
    for (at, byte) in bytes.iter().copied().enumerate() {
        let sort = SORTS.get(usize::from(byte)).copied().unwrap_or(0);
        let begins = sort & FIRST != 0 && before & INSIDE == 0;
        before = sort;
        if !begins || at < from {
            continue;
        }
        let here = bytes.get(at..).unwrap_or_default();
        let hit = known(here).or_else(|| web_token(here));
        if let Some((length, what)) = hit {
            found.push(Secret {
                what,
                start: at,
                end: at + length,
            });
            from = at + length;
        }
    }
}

/// The length of the key that the bytes begin with.
fn known(here: &[u8]) -> Option<(usize, &'static str)> {
    // Two letters tell most words from all of them.
    let first: &[u8; 2] = here.first_chunk()?;
    let mut near = SHAPES
        .iter()
        .filter(|(prefix, _, _)| prefix.as_bytes().first_chunk() == Some(first));
    near.find_map(|(prefix, rest, what)| {
        let after = here.strip_prefix(prefix.as_bytes())?;
        let length = match *rest {
            Rest::Upper(wanted) => {
                let length = run(after, |byte| byte.is_ascii_alphanumeric());
                let key = after.get(..length)?;
                let fits = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
                (length == wanted && key.iter().all(fits)).then_some(length)
            }
            Rest::Plain(least) => {
                let length = run(after, |byte| byte.is_ascii_alphanumeric());
                (length >= least).then_some(length)
            }
            Rest::Random(least) => {
                let length = run(after, |byte| in_key(byte) || byte == b'.');
                let key = std::str::from_utf8(after.get(..length)?).ok()?;
                let key = key.trim_end_matches(['.', '-']);
                (key.len() >= least && is_random(key)).then_some(key.len())
            }
        };
        Some((prefix.len() + length?, *what))
    })
}

/// Three parts in Base64 with dots between them, the first two of them JSON objects.
fn web_token(here: &[u8]) -> Option<(usize, &'static str)> {
    let mut length = 0;
    for number in 0..3 {
        let part = here.get(length..)?;
        let is_json = part.starts_with(b"eyJ");
        // Such a token says things, so that it may be longer than a key.
        let part = part.get(..TOKEN_PART_BYTES).unwrap_or(part);
        let size = part.iter().take_while(|byte| in_key(**byte)).count();
        if (number < 2 && !is_json) || size < 10 {
            return None;
        }
        length += size;
        if number < 2 {
            here.get(length).filter(|byte| **byte == b'.')?;
            length += 1;
        }
    }
    Some((length, "signed web token"))
}
