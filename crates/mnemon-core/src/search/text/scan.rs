//! Cuts a text into words, compounds and runs.

use unicode_normalization::UnicodeNormalization;

use super::compound::{self, Run};
use super::script::{self, Script};
use super::sink::{Role, Sink};
use super::{analysis::Kind, dates, fold};

/// Runs of letters in one compound; a longer one (a URL, a blob) is taken in pieces.
const MAX_RUNS: usize = 24;

/// What a character does to the word under way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Word,
    /// Belongs to a script that is written without spaces, or agglutinates.
    Run(Script),
    /// Joins two words into a compound when it stands between them.
    Joint,
    /// Is a term by itself: an emoji.
    Symbol,
    Break,
}

pub(super) fn scan(text: &str, sink: &mut Sink) {
    let mut runs = Vec::with_capacity(MAX_RUNS);
    for chunk in text.split_ascii_whitespace() {
        if sink.is_full() {
            return;
        }
        match plain(chunk) {
            Some(word) => simple_word(word, sink),
            None if chunk.is_ascii() => pieces(chunk, &mut runs, sink),
            None => normalised(chunk, &mut runs, sink),
        }
    }
}

/// The fast path: most of most texts is plain ASCII words with punctuation around them. Gives
/// the word where nothing but letters is in it, and capitals at its beginning only.
fn plain(chunk: &str) -> Option<&str> {
    let bytes = chunk.as_bytes();
    let start = bytes.iter().position(|&b| is_wordy(b))?;
    let end = bytes.iter().rposition(|&b| is_wordy(b))? + 1;
    let word = chunk.get(start..end)?;
    let (first, rest) = word.as_bytes().split_first()?;
    let simple = first.is_ascii_alphabetic() && rest.iter().all(u8::is_ascii_lowercase);
    // A single letter may be the C of C++.
    (simple && !rest.is_empty()).then_some(word)
}

/// Not ASCII punctuation.
fn is_wordy(b: u8) -> bool {
    b.is_ascii_alphanumeric() || !b.is_ascii()
}

fn simple_word(word: &str, sink: &mut Sink) {
    let word = fold::case(word);
    sink.word(&word, Role::Whole);
    dates::word(&word, sink);
    sink.advance();
}

fn normalised(chunk: &str, runs: &mut Vec<Run>, sink: &mut Sink) {
    let text: String = chunk.nfkc().map(straight).collect();
    for part in text.split_whitespace() {
        dates::unspaced(part, sink);
        pieces(part, runs, sink);
    }
}

/// Typographic apostrophes and hyphens join words as the typed ones do.
fn straight(c: char) -> char {
    match c {
        '\u{2018}' | '\u{2019}' | '\u{2bc}' => '\'',
        '\u{2010}' | '\u{2011}' => '-',
        _ => c,
    }
}

fn pieces(text: &str, runs: &mut Vec<Run>, sink: &mut Sink) {
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let at = text.len() - rest.len();
        let after = rest.get(c.len_utf8()..).unwrap_or_default();
        rest = match class(c) {
            Class::Word => {
                extend(runs, at, c, text, sink);
                after
            }
            Class::Joint if joins(runs, c, after) => skip_joint(runs, c, after),
            Class::Run(script) => {
                flush(text, runs, sink);
                let end = rest
                    .find(|c| class(c) != Class::Run(script))
                    .unwrap_or(rest.len());
                script::run(script, rest.get(..end).unwrap_or_default(), sink);
                rest.get(end..).unwrap_or_default()
            }
            Class::Symbol => {
                flush(text, runs, sink);
                sink.push(
                    rest.get(..c.len_utf8()).unwrap_or_default(),
                    Kind::Exact,
                    false,
                );
                sink.advance();
                after
            }
            Class::Joint | Class::Break => {
                language_name(text, runs, rest, sink);
                flush(text, runs, sink);
                after
            }
        };
    }
    flush(text, runs, sink);
}

/// Adds a letter or digit to the compound under way.
fn extend(runs: &mut Vec<Run>, at: usize, c: char, text: &str, sink: &mut Sink) {
    let end = at + c.len_utf8();
    match runs.last_mut() {
        Some(run) if run.end == at => run.end = end,
        Some(run) if run.end == run.start => (run.start, run.end) = (at, end),
        _ => {
            flush(text, runs, sink);
            runs.push(Run {
                start: at,
                end,
                joint: None,
            });
        }
    }
}

/// Whether `c` stands between two words of one compound.
fn joins(runs: &[Run], c: char, after: &str) -> bool {
    let open = runs.last().is_some_and(|run| run.end > run.start) && runs.len() < MAX_RUNS;
    let next = if c == ':' {
        after.strip_prefix(':').unwrap_or(after)
    } else {
        after
    };
    let word_follows = next.chars().next().is_some_and(|c| class(c) == Class::Word);
    open && word_follows && (c != ',' || thousands(after))
}

/// A comma joins digits only as a separator of thousands: 1,234 but not 1,2,3.
fn thousands(after: &str) -> bool {
    let digits = after.bytes().take_while(u8::is_ascii_digit).count();
    digits == 3
}

/// Opens the next run of the compound, empty until its first letter comes.
fn skip_joint<'a>(runs: &mut Vec<Run>, c: char, after: &'a str) -> &'a str {
    runs.push(Run {
        start: 0,
        end: 0,
        joint: Some(c),
    });
    if c == ':' {
        after.strip_prefix(':').unwrap_or(after)
    } else {
        after
    }
}

/// `C++`, `C#`, `F#`: names whose sign is part of the word.
fn language_name(text: &str, runs: &mut Vec<Run>, rest: &str, sink: &mut Sink) {
    let [run] = runs.as_slice() else { return };
    let letter = text.get(run.start..run.end).unwrap_or_default();
    let suffix = match rest {
        _ if letter.len() != 1 => return,
        r if r.starts_with("++") => "plusplus",
        r if r.starts_with('#') => "sharp",
        _ => return,
    };
    runs.clear();
    let name = format!("{}{suffix}", letter.to_ascii_lowercase());
    sink.push(&name, Kind::Exact, false);
    sink.advance();
}

fn flush(text: &str, runs: &mut Vec<Run>, sink: &mut Sink) {
    compound::emit(text, runs, sink);
    runs.clear();
}

fn class(c: char) -> Class {
    match c {
        '0'..='9' | 'a'..='z' | 'A'..='Z' => Class::Word,
        '.' | '_' | '-' | '\'' | '/' | '\\' | ':' | '@' | '&' | ',' => Class::Joint,
        '\0'..='\x7f' => Class::Break,
        _ => class_beyond_ascii(c),
    }
}

fn class_beyond_ascii(c: char) -> Class {
    if let Some(script) = Script::of(c) {
        return Class::Run(script);
    }
    match c {
        '\u{fe00}'..='\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}' => Class::Break,
        '\u{2600}'..='\u{27bf}' | '\u{1f300}'..='\u{1faff}' => Class::Symbol,
        _ if c.is_alphanumeric() => Class::Word,
        _ if unicode_normalization::char::is_combining_mark(c) => Class::Word,
        _ => Class::Break,
    }
}
