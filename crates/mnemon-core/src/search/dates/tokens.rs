//! A text as words in lower case, each with its place.

use crate::search::text::is_unspaced;

/// Words of a text that are read; what a longer text tells of is not one day.
const MOST: usize = 4_000;

pub(super) struct Tokens {
    lower: String,
    list: Vec<Token>,
}

struct Token {
    /// In the lower-case copy.
    from: usize,
    to: usize,
    /// In the text.
    start: usize,
    end: usize,
    capital: bool,
}

impl Tokens {
    /// A word is a run of letters and digits. `2023-05-07` and `7/5` are one word.
    pub(super) fn of(text: &str) -> Self {
        let mut tokens = Self {
            lower: String::with_capacity(text.len()),
            list: Vec::with_capacity(text.len() / 5),
        };
        let mut chars = text.char_indices().peekable();
        while let Some((start, c)) = chars.next() {
            if !c.is_alphanumeric() || is_unspaced(c) {
                continue;
            }
            let from = tokens.lower.len();
            tokens.lower.extend(c.to_lowercase());
            let (mut end, mut digits) = (start + c.len_utf8(), c.is_ascii_digit());
            while let Some(&(at, next)) = chars.peek() {
                let joint = matches!(next, '-' | '–' | '/' | '.');
                let joins = digits && joint && digit_at(text, at + next.len_utf8());
                if !(joins || next.is_alphanumeric() && !is_unspaced(next)) {
                    break;
                }
                tokens.lower.extend(next.to_lowercase());
                digits = joins || (digits && next.is_ascii_digit());
                end = at + next.len_utf8();
                chars.next();
            }
            if chars.peek().is_some_and(|(_, next)| is_unspaced(*next)) {
                // A number in a text without spaces is a part of what follows it.
                tokens.lower.truncate(from);
                continue;
            }
            tokens.list.push(Token {
                from,
                to: tokens.lower.len(),
                start,
                end,
                capital: c.is_uppercase(),
            });
            if tokens.list.len() >= MOST {
                break;
            }
        }
        tokens
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// The word at this place; empty beyond the ends.
    pub(super) fn word(&self, at: usize) -> &str {
        let token = self.list.get(at);
        token
            .and_then(|token| self.lower.get(token.from..token.to))
            .unwrap_or_default()
    }

    pub(super) fn before(&self, at: usize) -> &str {
        at.checked_sub(1).map_or("", |at| self.word(at))
    }

    pub(super) fn is_capital(&self, at: usize) -> bool {
        self.list.get(at).is_some_and(|token| token.capital)
    }

    /// Where the words from `at` to before `end` stand in the text.
    pub(super) fn place(&self, at: usize, end: usize) -> (usize, usize) {
        let start = self.list.get(at).map_or(0, |token| token.start);
        let last = end.checked_sub(1).and_then(|last| self.list.get(last));
        (start, last.map_or(start, |token| token.end))
    }
}

fn digit_at(text: &str, at: usize) -> bool {
    text.as_bytes().get(at).is_some_and(u8::is_ascii_digit)
}
