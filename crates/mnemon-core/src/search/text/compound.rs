//! Identifiers, paths, versions, addresses, numbers: words made of words.
//!
//! The whole is known by its letters alone, so `parseJSON`, `parse_json` and `parse-json` are
//! one word, as are `e-mail` and `email`; between two digits a joint is kept (`1.2.3`).

use super::analysis::Kind;
use super::sink::{Role, Sink};
use super::{MAX_TERM_BYTES, dates, fold};

/// Stands for any joint between two digits. A letter (a phonetic length mark), so that no
/// backend's tokenizer splits there.
pub(super) const DIGIT_JOINT: char = 'ˑ';

/// Letters and digits between two joints.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) start: usize,
    pub(super) end: usize,
    /// What joined it to the run before.
    pub(super) joint: Option<char>,
}

impl Run {
    pub(super) fn of<'a>(&self, text: &'a str) -> &'a str {
        text.get(self.start..self.end).unwrap_or_default()
    }

    /// Paths, addresses and scopes have segments that people ask for by themselves.
    fn starts_segment(&self) -> bool {
        matches!(self.joint, Some('/' | '\\' | ':' | '@'))
    }
}

pub(super) fn emit(text: &str, runs: &[Run], sink: &mut Sink) {
    let runs = without_possessive(text, runs);
    match runs {
        [] => {}
        [run] if !is_mixed(run.of(text)) => single(run.of(text), sink),
        _ if contraction(text, runs, sink) => {}
        _ if dates::iso(text, runs, sink) => {}
        _ if number(text, runs, sink) => {}
        _ => joined(text, runs, sink),
    }
}

/// `Caroline's` is about Caroline.
fn without_possessive<'a>(text: &str, runs: &'a [Run]) -> &'a [Run] {
    match runs.split_last() {
        Some((last, head))
            if last.joint == Some('\'') && last.of(text).eq_ignore_ascii_case("s") =>
        {
            head
        }
        _ => runs,
    }
}

fn single(run: &str, sink: &mut Sink) {
    let word = fold::case(run);
    sink.begin();
    sink.word(&word, Role::Whole);
    dates::word(&word, sink);
    dates::number(&word, sink);
    sink.advance();
}

/// `don't` is one word without its apostrophe; `she'll` is `she`.
fn contraction(text: &str, runs: &[Run], sink: &mut Sink) -> bool {
    let [head, tail] = runs else { return false };
    if tail.joint != Some('\'') {
        return false;
    }
    match fold::case(tail.of(text)).as_ref() {
        "t" => {
            let word = format!("{}t", fold::case(head.of(text)));
            sink.word(&word, Role::Whole);
        }
        "ll" | "re" | "ve" | "d" | "m" => sink.word(&fold::case(head.of(text)), Role::Whole),
        _ => return false,
    }
    sink.advance();
    true
}

/// Digits with joints, with or without a leading `v`: versions, decimals, times, thousands.
fn number(text: &str, runs: &[Run], sink: &mut Sink) -> bool {
    let digits = |i: usize, run: &Run| {
        let s = run.of(text);
        let s = if i == 0 {
            s.trim_start_matches(['v', 'V'])
        } else {
            s
        };
        !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit())
    };
    if runs.len() < 2 || !runs.iter().enumerate().all(|(i, run)| digits(i, run)) {
        return false;
    }
    let whole = glue(text, runs);
    let whole = whole.trim_start_matches('v');
    sink.begin();
    sink.push(whole, Kind::Exact, false);
    // 1.2.3 is also a 1.2.
    if let (Some((head, _)), true) = (whole.rsplit_once(DIGIT_JOINT), runs.len() > 2) {
        sink.push_new(head, Kind::Part, false);
    }
    for part in whole.split(DIGIT_JOINT).filter(|part| part.len() > 1) {
        sink.push_new(part, Kind::Part, false);
    }
    sink.advance();
    true
}

/// The whole, then its segments, then its words.
fn joined(text: &str, runs: &[Run], sink: &mut Sink) {
    let position = sink.position();
    sink.begin();
    let whole = glue(text, runs);
    // A compound that long is not asked for letter by letter; its parts are.
    if whole.len() <= MAX_TERM_BYTES || runs.len() == 1 {
        sink.word(&whole, Role::Whole);
    }
    if let [run] = runs {
        dates::ordinal(run.of(text), sink);
    }
    for segment in runs.chunk_by(|_, next| !next.starts_segment()) {
        if segment.len() > 1 && segment.len() < runs.len() {
            sink.word(&glue(text, segment), Role::Part);
        }
        for run in segment {
            parts(run.of(text), runs.len() > 1, sink);
        }
    }
    // `h2o` has no part worth a position, and is a word all the same.
    if sink.position() == position {
        sink.advance();
    }
}

/// The words of one run: itself if it is one of several, and what its capitals and digits
/// divide it into.
fn parts(run: &str, one_of_several: bool, sink: &mut Sink) {
    if one_of_several {
        sink.word(&fold::case(run), Role::Part);
    }
    if !is_mixed(run) {
        return sink.advance();
    }
    let mut rest = run;
    while !rest.is_empty() {
        let (word, tail) = rest.split_at(hump(rest));
        // Single letters and digits inside a word (h2o, v2) find nothing but noise.
        if word.len() > 1 {
            sink.word(&fold::case(word), Role::Part);
            sink.advance();
        }
        rest = tail;
    }
}

/// The runs as one case-folded word.
fn glue(text: &str, runs: &[Run]) -> String {
    let mut whole = String::new();
    for run in runs {
        let part = fold::case(run.of(text));
        let digits_meet = whole.ends_with(|c: char| c.is_ascii_digit())
            && part.starts_with(|c: char| c.is_ascii_digit());
        if digits_meet && run.joint != Some(',') {
            whole.push(DIGIT_JOINT);
        }
        whole.push_str(&part);
    }
    whole
}

/// Whether capitals or digits divide the run into several words.
fn is_mixed(run: &str) -> bool {
    run.len() <= MAX_TERM_BYTES && hump(run) < run.len()
}

/// Where the first word of `run` ends: `parse|JSON`, `HTTP|Server`, `utf|8`; but `PDFs` is one.
fn hump(run: &str) -> usize {
    let mut chars = run.char_indices().peekable();
    let mut before = None;
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|&(_, c)| c);
        if before.is_some_and(|b| divides(b, c, next, run.len() - at)) {
            return at;
        }
        before = Some(c);
    }
    run.len()
}

fn divides(before: char, c: char, next: Option<char>, bytes_left: usize) -> bool {
    if before.is_numeric() != c.is_numeric() {
        return !is_mark(c) && !is_mark(before);
    }
    if before.is_lowercase() && c.is_uppercase() {
        return true;
    }
    let plural = bytes_left == 2 && next == Some('s');
    before.is_uppercase() && c.is_uppercase() && next.is_some_and(char::is_lowercase) && !plural
}

fn is_mark(c: char) -> bool {
    unicode_normalization::char::is_combining_mark(c)
}
