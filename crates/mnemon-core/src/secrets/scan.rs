//! One pass over a text: at the few bytes where a secret may begin, the rules are asked.

use super::address::{self, Region};
use super::command;
use super::named::{self, Span};
use super::rules::{ACCOUNT, ADDRESS, CARD, PRIVATE_KEY};
use super::{Secret, block, number, prefixed, shapes, work};

/// A letter or a digit: a token does not begin after one.
const WORD: u8 = 1;
/// A token or a number may begin here.
const START: u8 = 2;
/// A value may follow.
const SIGN: u8 = 4;

/// What each byte may be: looked up for every byte of every text that is written.
#[allow(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "evaluated at compile time: an index out of range does not compile"
)]
static CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        if (byte as u8).is_ascii_alphanumeric() {
            classes[byte] |= WORD | START;
        }
        byte += 1;
    }
    // The last ones end the particles of languages that put no spaces between words.
    let signs = b"=: \t>,(-\xAF\xBA\x94\x80";
    let mut at = 0;
    while at < signs.len() {
        classes[signs[at] as usize] |= SIGN;
        at += 1;
    }
    classes
};

/// Adds the secrets of the text, in no order.
pub(super) fn scan(text: &str, found: &mut Vec<Secret>) {
    work::add(text.len());
    let mut scanner = Scanner::new(text, found);
    let mut before = 0;
    for (at, byte) in text.bytes().enumerate() {
        let class = CLASSES.get(usize::from(byte)).copied().unwrap_or(0);
        if class & START != 0 && before & WORD == 0 && at >= scanner.token_end {
            scanner.start(at, byte);
        } else if class & SIGN != 0 && at >= scanner.value_end {
            scanner.sign(at, byte);
        } else if byte == b'-' && at >= scanner.token_end {
            // A key that follows a value without a space must not stay.
            scanner.block_line(at);
        }
        before = class;
    }
}

struct Scanner<'a> {
    text: &'a str,
    bytes: &'a [u8],
    found: &'a mut Vec<Secret>,
    /// Where the token ends that was found last.
    token_end: usize,
    /// Where the value ends that was found last.
    value_end: usize,
    /// Where the run of characters ends that was last tried as a web token.
    web_token_end: usize,
    region: Region,
    line: command::Line,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a str, found: &'a mut Vec<Secret>) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            found,
            token_end: 0,
            value_end: 0,
            web_token_end: 0,
            region: Region::default(),
            line: command::Line::default(),
        }
    }

    fn add(&mut self, (start, end, kind): Span) {
        if start < end {
            self.found.push(Secret { kind, start, end });
        }
    }

    fn start(&mut self, at: usize, byte: u8) {
        let Some(here) = self.bytes.get(at..) else {
            return;
        };
        if matches!(byte, b'2'..=b'6') {
            self.digits(at, here);
        }
        let Some(second) = here.get(1).copied() else {
            return;
        };
        let mut hit = None;
        if prefixed::may_begin(byte, second) {
            hit = prefixed::token(here);
        }
        if hit.is_none() && shapes::may_begin(byte, second) {
            hit = self.shape(at, here);
        }
        if hit.is_none() && byte.is_ascii_uppercase() && second.is_ascii_uppercase() {
            hit = number::account(here).map(|length| (length, ACCOUNT));
        }
        if let Some((length, kind)) = hit {
            self.token_end = at + length;
            self.add((at, at + length, kind));
        }
    }

    /// A run that was no web token from its beginning is not tried again from its middle.
    fn shape(&mut self, at: usize, here: &[u8]) -> Option<(usize, &'static str)> {
        let is_web = here.starts_with(b"eyJ");
        if is_web && at < self.web_token_end {
            return None;
        }
        let hit = shapes::token(here);
        if is_web && hit.is_none() {
            let run = here.iter().take_while(|byte| shapes::in_web_token(**byte));
            self.web_token_end = at + run.count();
        }
        hit
    }

    fn digits(&mut self, at: usize, here: &[u8]) {
        let before = at.checked_sub(1).and_then(|before| self.bytes.get(before));
        if matches!(before, Some(b'.' | b'-' | b'_' | b'/' | b'#')) {
            return;
        }
        if let Some(length) = number::card(here)
            && !self.is_id(at)
        {
            self.token_end = at + length;
            self.add((at, at + length, CARD));
        }
    }

    /// Whether a name says that the number at this place is an id.
    fn is_id(&self, at: usize) -> bool {
        let before = self.text.get(..at).unwrap_or_default();
        let before = before.trim_end_matches(['"', '\'', '\\', ' ', ':', '=']);
        let tail = before
            .len()
            .checked_sub(2)
            .and_then(|from| before.get(from..));
        tail.is_some_and(|tail| tail.eq_ignore_ascii_case("id"))
    }

    fn sign(&mut self, at: usize, byte: u8) {
        let found = match byte {
            b' ' | b'\t' => self.space(at),
            b'=' => named::after_sign(self.text, at, 1),
            b':' => self.colon(at),
            b'-' => self.hyphen(at),
            b'>' => named::in_element(self.text, at),
            b',' | b'(' => named::quoted_argument(self.text, at),
            _ => self.particle(at),
        };
        if let Some((start, end, kind)) = found {
            self.value_end = end;
            self.add((start, end, kind));
        }
    }

    fn space(&mut self, at: usize) -> Option<Span> {
        let last = self.bytes.get(at.checked_sub(1)?)?;
        let before = self.bytes.get(at.checked_sub(2)?)?;
        match named::may_end(*before, *last) {
            true => named::after_space(self.text, at),
            false => None,
        }
    }

    fn colon(&mut self, at: usize) -> Option<Span> {
        let here = self.bytes.get(at..)?;
        if here.starts_with(address::MARK.as_bytes()) {
            let (start, end) = address::after_mark(self.text, at, &mut self.region)?;
            return Some((start, end, ADDRESS));
        }
        shapes::around_colon(self.bytes, at).or_else(|| named::after_sign(self.text, at, 1))
    }

    fn hyphen(&mut self, at: usize) -> Option<Span> {
        if self.block_line(at) {
            return None;
        }
        let before = at.checked_sub(1).and_then(|before| self.bytes.get(before));
        if before.is_none_or(u8::is_ascii_whitespace) {
            return command::option(self.text, at, &mut self.line);
        }
        shapes::around_hyphen(self.bytes, at)
    }

    /// Whether a block may begin with the hyphens at this place.
    fn block_line(&mut self, at: usize) -> bool {
        let before = at.checked_sub(1).and_then(|before| self.bytes.get(before));
        let here = self.bytes.get(at..).unwrap_or_default();
        let begins = |mark: &str| here.starts_with(mark.as_bytes());
        let is_line = begins(block::BEGIN) || begins(block::SSH2_BEGIN);
        if is_line && before != Some(&b'-') {
            self.block(at);
        }
        let putty = block::PUTTY_BEGIN;
        let start = at.checked_sub(5).unwrap_or(at);
        if self
            .bytes
            .get(start..)
            .is_some_and(|here| here.starts_with(putty.as_bytes()))
        {
            self.block(start);
        }
        is_line
    }

    fn block(&mut self, at: usize) {
        if let Some(end) = block::end(self.text, at) {
            self.add((at, end, PRIVATE_KEY));
            self.token_end = end;
            self.value_end = end;
        }
    }

    /// `は`, `是`, `为`, `為`, `는` and `은`, by their last byte.
    fn particle(&mut self, at: usize) -> Option<Span> {
        let start = at.checked_sub(2)?;
        let particle: &[u8; 3] = self.bytes.get(start..)?.first_chunk()?;
        let particles = ["は", "是", "为", "為", "는", "은"];
        let is_one = particles.iter().any(|it| it.as_bytes() == particle);
        is_one
            .then(|| named::after_particle(self.text, start, at + 1))
            .flatten()
    }
}
