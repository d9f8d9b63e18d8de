//! An upper bound on tokens that needs no vocabulary of megabytes.
//!
//! A byte-pair tokenizer cuts the text into pieces, then merges neighbours in each piece until no
//! two neighbours make a token. So in the end no two neighbouring tokens of a piece make one that
//! the vocabulary has. The bound is the largest number of tokens that this rule allows, found by
//! walking over the bytes once; words that are one token in every vocabulary count as one.
//!
//! What "the vocabulary has" is a table of pairs and triples that stand in both public
//! vocabularies in use (o200k and cl100k), made by `adapters/examples/make_token_bound.rs`. For
//! these two it is a bound by construction, as long as two bytes are only called neighbours of
//! one piece when both cut there alike. For other families it is a bound by experience.

use std::sync::LazyLock;

use super::{Counter, Family};

/// Two bytes that are a token in both vocabularies, one bit each.
static PAIRS_ALL: &[u8; 8192] = include_bytes!("bound/pairs_all.bin");
/// Two bytes that are a token in at least one of them.
static PAIRS_ANY: &[u8; 8192] = include_bytes!("bound/pairs_any.bin");
/// The first two bytes of a token of three or more in at least one of them.
static STARTS_ANY: &[u8; 8192] = include_bytes!("bound/starts_any.bin");
/// The last two bytes of such a token. Few tokens begin or end within a character.
static ENDS_ANY: &[u8; 8192] = include_bytes!("bound/ends_any.bin");
/// A space or a letter and two small letters that are a token in both.
static TRIPLES: &[u8] = include_bytes!("bound/triples.bin");
/// Characters of three bytes that are a token in both.
static CHARS: &str = include_str!("bound/chars.txt");
/// Marks of words that are a token in both. Marks, because nobody needs to read them here.
static WORDS: &[u8] = include_bytes!("bound/words.bin");

/// At most this many tokens, whatever the model: fast, and never below the two public
/// vocabularies.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bound;

impl Counter for Bound {
    fn family(&self) -> Family {
        Family::Any
    }

    fn count(&self, text: &str) -> usize {
        let bytes = text.as_bytes();
        let mut walk = Walk::new();
        let mut at = 0;
        while at < bytes.len() {
            match word_end(bytes, at).filter(|end| is_known(bytes, at, *end)) {
                Some(end) => {
                    walk.one_token(bytes.get(end - 1).copied().unwrap_or_default());
                    at = end;
                }
                None => {
                    walk.step(bytes.get(at).copied().unwrap_or_default());
                    at += 1;
                }
            }
        }
        walk.best()
    }
}

/// Where the ASCII word that begins at `at` (with its space, if it has one) ends; `None` if no
/// word begins there that both vocabularies would cut out alike.
fn word_end(bytes: &[u8], at: usize) -> Option<usize> {
    let first = *bytes.get(at)?;
    let from = match first {
        b' ' => at + 1,
        _ if first.is_ascii_alphabetic() && may_precede_word(bytes, at) => at,
        _ => return None,
    };
    let rest = bytes.get(from..)?;
    let len = rest.iter().take_while(|b| b.is_ascii_alphabetic()).count();
    // What goes on in another alphabet is a longer word.
    let ends = rest.get(len).is_none_or(u8::is_ascii);
    (len > 0 && ends).then_some(from + len)
}

/// Signs of three bytes that often open a word; the table was tried with them.
const OPENING: [&str; 6] = ["“", "‘", "—", "–", "…", "•"];

fn may_precede_word(bytes: &[u8], at: usize) -> bool {
    let before = bytes.get(..at).unwrap_or_default();
    match before.last() {
        None => true,
        Some(b'\'') => false,
        Some(b'\t' | b'\n' | b'\r') => true,
        Some(byte) if byte.is_ascii() => byte.is_ascii_punctuation() || byte.is_ascii_digit(),
        Some(_) => OPENING.iter().any(|sign| before.ends_with(sign.as_bytes())),
    }
}

fn is_known(bytes: &[u8], at: usize, end: usize) -> bool {
    let Some(word) = bytes.get(at..end) else {
        return false;
    };
    match word.strip_prefix(b" ") {
        Some(word) => lookup(word).is_some(),
        None => lookup(word) == Some(true),
    }
}

/// A word's place in the table. The lowest bit is left free.
pub fn word_mark(word: &[u8]) -> u64 {
    let mut mark = 0xcbf2_9ce4_8422_2325u64;
    for byte in word {
        mark = (mark ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    mark ^= mark >> 32;
    mark = mark.wrapping_mul(0xd6e8_feb8_6659_fd93);
    (mark ^ (mark >> 32)) & !1
}

/// Slots of the table of words: more than twice the words there are.
const SLOTS: usize = 1 << 16;

static TABLE: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let mut table = vec![0u64; SLOTS];
    for mark in WORDS.as_chunks::<8>().0 {
        let mark = u64::from_le_bytes(*mark);
        let free = slots(mark).find(|at| table.get(*at) == Some(&0));
        if let Some(slot) = free.and_then(|at| table.get_mut(at)) {
            *slot = mark;
        }
    }
    table
});

/// Where to look for a mark, one place after the other.
fn slots(mark: u64) -> impl Iterator<Item = usize> {
    let first = (mark >> 20) as usize;
    (0..SLOTS).map(move |step| first.wrapping_add(step) % SLOTS)
}

/// Whether the word is known, and if so whether it is one token without a space before it, too.
fn lookup(word: &[u8]) -> Option<bool> {
    let mark = word_mark(word);
    for at in slots(mark) {
        match TABLE.get(at).copied() {
            None | Some(0) => return None,
            Some(found) if found & !1 == mark => return Some(found & 1 == 1),
            Some(_) => {}
        }
    }
    None
}

fn bit(bits: &[u8], at: usize) -> bool {
    bits.get(at / 8)
        .is_some_and(|byte| byte >> (at % 8) & 1 == 1)
}

fn pair(bits: &[u8], a: u8, b: u8) -> bool {
    bit(bits, usize::from(a) << 8 | usize::from(b))
}

fn triple(a: u8, b: u8, c: u8) -> bool {
    if a & 0xf0 == 0xe0 {
        return CHARS_TABLE.binary_search(&[a, b, c]).is_ok();
    }
    let first = match a {
        b' ' => 0,
        b'a'..=b'z' => usize::from(a - b'a') + 1,
        b'A'..=b'Z' => usize::from(a - b'A') + 27,
        _ => return false,
    };
    if !b.is_ascii_lowercase() || !c.is_ascii_lowercase() {
        return false;
    }
    bit(
        TRIPLES,
        (first * 26 + usize::from(b - b'a')) * 26 + usize::from(c - b'a'),
    )
}

static CHARS_TABLE: LazyLock<Vec<[u8; 3]>> = LazyLock::new(|| {
    // UTF-8 sorts as its characters do, and the file is sorted.
    CHARS.as_bytes().as_chunks::<3>().0.to_vec()
});

/// The most tokens so far, by how long the last one is. `None`: there is no such way.
#[derive(Debug, Clone, Copy)]
struct Ends {
    one: i64,
    two: i64,
    more: i64,
    /// Nothing is open: the start, or right after a word that is one token.
    closed: i64,
}

/// No way leads here. Far below anything that is added to it.
const NONE: i64 = i64::MIN / 2;

impl Ends {
    const NOWHERE: Self = Self {
        one: NONE,
        two: NONE,
        more: NONE,
        closed: NONE,
    };

    fn best(&self) -> i64 {
        self.one.max(self.two).max(self.more).max(self.closed)
    }
}

struct Walk {
    /// The ends at the last three places, the newest first.
    ends: [Ends; 3],
    /// The best of all places before those.
    before: i64,
    /// The last two bytes, the newest first; 0 where there are none.
    last: [u8; 2],
    /// Whether the last two bytes are certainly of one piece.
    joined: bool,
    /// Letters since an apostrophe, which may cut after one or two of them.
    since_quote: Option<u8>,
    /// Whether the digits here follow a sign that may count as a digit.
    foreign_digits: bool,
}

impl Walk {
    fn new() -> Self {
        let mut walk = Self {
            ends: [Ends::NOWHERE; 3],
            before: NONE,
            last: [0; 2],
            joined: false,
            since_quote: None,
            foreign_digits: false,
        };
        walk.close(0);
        walk
    }

    /// Nothing reaches over this place.
    fn close(&mut self, best: i64) {
        let here = Ends {
            closed: best,
            ..Ends::NOWHERE
        };
        self.ends = [here, Ends::NOWHERE, Ends::NOWHERE];
        self.before = NONE;
        self.joined = false;
        self.since_quote = None;
        self.foreign_digits = false;
    }

    fn best(&self) -> usize {
        usize::try_from(self.ends[0].best()).unwrap_or_default()
    }

    fn one_token(&mut self, last: u8) {
        self.close(self.ends[0].best() + 1);
        self.last = [last, 0];
    }

    fn step(&mut self, byte: u8) {
        let [last, second] = self.last;
        let joined = self.joins(byte);
        let [one_back, two_back, three_back] = &self.ends;
        let makes_pair = joined && pair(PAIRS_ALL, last, byte);
        let makes_triple = joined && self.joined && triple(second, last, byte);
        let unless = |barred: bool, ways: i64| if barred { NONE } else { ways };
        let one = unless(makes_pair, one_back.one)
            .max(unless(makes_triple, one_back.two))
            .max(one_back.more)
            .max(one_back.closed);
        let two = match pair(PAIRS_ANY, last, byte) {
            true => unless(makes_triple, two_back.one)
                .max(two_back.two)
                .max(two_back.more)
                .max(two_back.closed),
            false => NONE,
        };
        let before = match pair(STARTS_ANY, second, last) {
            true => self.before.max(three_back.best()),
            false => self.before,
        };
        let here = Ends {
            one: one + 1,
            two: two + 1,
            more: unless(!pair(ENDS_ANY, last, byte), before) + 1,
            closed: NONE,
        };
        self.ends = [here, *one_back, *two_back];
        self.before = before;
        self.joined = joined;
        self.last = [byte, last];
    }

    /// Whether this byte is of one piece with the last, however the text is cut; and what is to be
    /// remembered for the bytes that follow.
    fn joins(&mut self, byte: u8) -> bool {
        let [last, _] = self.last;
        if byte.is_ascii_alphabetic() {
            self.since_quote = match (self.since_quote, last) {
                (_, b'\'') => Some(1),
                (Some(count), _) => Some(count.saturating_add(1)),
                (None, _) => None,
            };
        } else {
            self.since_quote = None;
        }
        if !byte.is_ascii_digit() {
            self.foreign_digits = !byte.is_ascii();
        }
        let is_continuation = byte & 0xc0 == 0x80;
        if is_continuation || !byte.is_ascii() || !last.is_ascii() {
            return is_continuation;
        }
        match last {
            b' ' => byte.is_ascii_alphabetic() || byte.is_ascii_punctuation(),
            _ if last.is_ascii_digit() => byte.is_ascii_digit() && !self.foreign_digits,
            // After a line break one vocabulary takes the slashes and no more.
            b'/' => byte == b'/',
            _ if last.is_ascii_punctuation() => byte.is_ascii_punctuation(),
            _ if last.is_ascii_alphabetic() && byte.is_ascii_alphabetic() => {
                let cut_by_case = last.is_ascii_lowercase() && byte.is_ascii_uppercase();
                !cut_by_case && self.since_quote.is_none_or(|count| count > 3)
            }
            _ => false,
        }
    }
}
