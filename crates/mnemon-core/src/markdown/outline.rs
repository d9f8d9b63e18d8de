//! Headings and code of a long log, without parsing all that is said in it.
//!
//! A `#` or a fence in the first column means the same wherever it stands, unless it stands in a
//! fence or in HTML: lists and quotes end there, paragraphs are interrupted. So one look at the
//! beginning of each line suffices. Where it does not, the parser is asked.

use std::ops::Range;

use super::{Document, front_matter_end, sections};

impl Document {
    /// Like [`Document::parse`], but only the headings are sure to be there, not lists and tables:
    /// many times faster for logs of thousands of entries.
    pub fn outline(text: impl Into<String>) -> Self {
        let text = text.into();
        let start = front_matter_end(&text);
        let Some(found) = look(&text, start) else {
            return Self::parse(text);
        };
        Self {
            sections: sections(&text, &found.headings),
            opaque: found.fences,
            items: Vec::new(),
            tables: Vec::new(),
            start,
            text,
        }
    }
}

#[derive(Default)]
struct Found {
    headings: Vec<(u8, Range<usize>)>,
    fences: Vec<Range<usize>>,
}

/// A fence that is open: its mark, how often, and where it began.
struct Fence {
    mark: u8,
    count: usize,
    start: usize,
}

/// What the first columns tell; `None` when they do not tell enough.
fn look(text: &str, start: usize) -> Option<Found> {
    let mut found = Found::default();
    let mut open: Option<Fence> = None;
    let mut at = start;
    if text.starts_with('\u{feff}') {
        return None;
    }
    for line in text.get(start..)?.split_inclusive('\n') {
        let (from, bytes) = (at, line.trim_end_matches('\n').as_bytes());
        at += line.len();
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        if bytes.contains(&b'\r') {
            return None;
        }
        let indent = bytes.iter().take_while(|byte| **byte == b' ').count();
        let rest = bytes.get(indent..).unwrap_or_default();
        if let Some(fence) = &open {
            if closes(fence, indent, rest) {
                found.fences.push(fence.start..at);
                open = None;
            }
            continue;
        }
        match (indent, rest.first()) {
            (0, Some(b'#')) => {
                if let Some(level) = heading(rest) {
                    found.headings.push((level, from..at));
                }
            }
            (0, Some(b'`' | b'~')) => open = opens(rest, from),
            (0..=3, Some(b'<')) | (1..=3, Some(b'#' | b'`' | b'~')) => return None,
            // It may be a rule of a list or a line of code.
            (_, Some(b'-' | b'\t'))
                if (indent > 3 || rest.first() == Some(&b'\t')) && is_dashes(rest) =>
            {
                return None;
            }
            _ => {}
        }
    }
    found
        .fences
        .extend(open.map(|fence| fence.start..text.len()));
    Some(found)
}

fn is_dashes(rest: &[u8]) -> bool {
    let rest = rest.trim_ascii();
    rest.len() >= 3 && rest.iter().all(|byte| *byte == b'-')
}

fn run(bytes: &[u8], mark: u8) -> usize {
    bytes.iter().take_while(|byte| **byte == mark).count()
}

/// The level of a heading, if the line is one.
pub(super) fn heading(rest: &[u8]) -> Option<u8> {
    let level = run(rest, b'#');
    let ends = matches!(rest.get(level), None | Some(b' ' | b'\t'));
    u8::try_from(level).ok().filter(|level| *level <= 6 && ends)
}

fn opens(rest: &[u8], start: usize) -> Option<Fence> {
    let mark = *rest.first()?;
    let count = run(rest, mark);
    let info = rest.get(count..).unwrap_or_default();
    let is_fence = count >= 3 && (mark == b'~' || !info.contains(&b'`'));
    is_fence.then_some(Fence { mark, count, start })
}

fn closes(fence: &Fence, indent: usize, rest: &[u8]) -> bool {
    let count = run(rest, fence.mark);
    let after = rest.get(count..).unwrap_or_default();
    indent <= 3 && count >= fence.count && after.iter().all(|byte| matches!(byte, b' ' | b'\t'))
}
