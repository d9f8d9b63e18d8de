//! The cutting itself.

use std::ops::Range;

use super::outline::{Outline, Seam, Section, Strength};
use super::{Chunk, Size, cost, cost_of, sentence};

/// Characters on each side of a place that decide between equals.
const AROUND: usize = 24;

pub(super) fn chunks(text: &str, outline: &Outline, size: Size) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    let mut lines = Lines::default();
    for group in groups(text, &outline.sections, size) {
        let mut before: Option<Cut> = None;
        for cut in pieces(text, &group, &outline.seams, size) {
            let own = cut.own.clone();
            let repeated = before.as_ref().filter(|_| outline.overlaps);
            let start = repeated.map_or(own.start, |before| overlap(text, before, outline, size));
            let blank = text
                .get(own.clone())
                .is_none_or(|own| own.trim().is_empty());
            if !blank {
                let (first_line, last_line) = lines.of(text, &own);
                chunks.push(Chunk {
                    headings: headings(text, outline, &own),
                    start,
                    own: own.start,
                    end: own.end,
                    first_line,
                    last_line,
                });
            }
            before = Some(cut);
        }
    }
    chunks
}

/// Sections that are cut together: a short one goes with the next, unless that ranks higher.
fn groups(text: &str, sections: &[Section], size: Size) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    let mut joins = false;
    for (n, section) in sections.iter().enumerate() {
        let next = sections.get(n + 1);
        let end = next.map_or(text.len(), |next| next.start);
        match groups.last_mut() {
            Some(group) if joins => group.end = end,
            _ => groups.push(section.start..end),
        }
        let own = text.get(section.start..end).unwrap_or_default();
        // A long text is not measured to find that it is not short.
        let short = own.len() <= size.short() * 4 && cost(own) < size.short();
        joins = short && next.is_some_and(|next| next.level >= section.level);
    }
    groups
}

/// A chunk's own part, and how good the place is where it ends.
struct Cut {
    own: Range<usize>,
    /// `None` inside of a paragraph.
    strength: Option<Strength>,
}

fn pieces(text: &str, group: &Range<usize>, seams: &[Seam], size: Size) -> Vec<Cut> {
    let mut pieces = Vec::new();
    let mut start = group.start;
    while start < group.end {
        let window = Window::at(text, start, group.end, size);
        let (end, strength) = if window.end == group.end {
            (group.end, Some(Strength::Section))
        } else {
            choose(text, &window, seams)
        };
        pieces.push(Cut {
            own: start..end,
            strength,
        });
        start = end;
    }
    pieces
}

/// From where a chunk begins: where it may end at the earliest and at the latest.
struct Window {
    start: usize,
    least: usize,
    end: usize,
}

impl Window {
    fn at(text: &str, start: usize, end: usize, size: Size) -> Self {
        let rest = text.get(start..end).unwrap_or_default();
        let (mut spent, mut least) = (0, None);
        for (at, c) in rest.char_indices() {
            if spent >= size.least() {
                least.get_or_insert(start + at);
            }
            spent += cost_of(c);
            if spent > size.limit() {
                let end = start + at;
                let least = least.unwrap_or(end);
                return Self { start, least, end };
            }
        }
        let least = least.unwrap_or(end);
        Self { start, least, end }
    }

    fn holds(&self, at: usize) -> bool {
        (self.least..=self.end).contains(&at) && at > self.start
    }
}

fn choose(text: &str, window: &Window, seams: &[Seam]) -> (usize, Option<Strength>) {
    let from = seams.partition_point(|seam| seam.at <= window.start);
    let near = seams.get(from..).unwrap_or_default();
    let near = near.iter().take_while(|seam| seam.at <= window.end);
    let inside = near.clone().filter(|seam| window.holds(seam.at));
    if let Some(best) = inside.max_by_key(|seam| (seam.strength, preference(text, seam.at))) {
        return (best.at, Some(best.strength));
    }
    // Something that must stay whole reaches beyond the end: better a small chunk before it.
    if let Some(last) = near.last().filter(|seam| seam.whole) {
        return (last.at, Some(last.strength));
    }
    (inside_paragraph(text, window), None)
}

/// The place to cut where the rules of the syntax know none.
fn inside_paragraph(text: &str, window: &Window) -> usize {
    let slice = text.get(window.start..window.end).unwrap_or_default();
    let graphemes = sentence::graphemes(slice);
    let usable = |places: Vec<usize>| -> Vec<usize> {
        let absolute = places
            .into_iter()
            .filter(|at| graphemes.binary_search(at).is_ok())
            .map(|at| window.start + at);
        absolute.filter(|at| window.holds(*at)).collect()
    };
    for places in [sentence::sentences, sentence::lines] {
        let places = usable(places(slice)).into_iter();
        if let Some(best) = places.max_by_key(|at| preference(text, *at)) {
            return best;
        }
    }
    let word = usable(sentence::words(slice)).last().copied();
    // The slice may end within a grapheme: its last beginning is a safe place.
    let grapheme = || graphemes.last().map(|at| window.start + at);
    word.or_else(grapheme).unwrap_or(window.end)
}

/// Decides between equally good places by the words around them alone, so that the same words
/// are cut at the same place wherever they stand.
fn preference(text: &str, at: usize) -> u64 {
    let (before, after) = text.split_at_checked(at).unwrap_or_default();
    let around = before
        .chars()
        .rev()
        .take(AROUND)
        .chain(after.chars().take(AROUND));
    around.fold(0xcbf2_9ce4_8422_2325, |hash: u64, c| {
        let hash = (hash ^ u64::from(u32::from(c))).wrapping_mul(0x0100_0000_01b3);
        hash ^ (hash >> 29)
    })
}

/// Where a chunk begins that repeats the end of the one before: at a sentence, or else at a word.
fn overlap(text: &str, before: &Cut, outline: &Outline, size: Size) -> usize {
    let cut = before.own.end;
    if before.strength >= Some(Strength::Definition) || ends_with_block(outline, cut) {
        return cut;
    }
    let own = text.get(before.own.clone()).unwrap_or_default();
    let mut spent = 0;
    let tail = own.char_indices().rev().take_while(|(_, c)| {
        spent += cost_of(*c);
        spent <= size.overlap()
    });
    let Some(tail) = tail.last().map(|(at, _)| before.own.start + at) else {
        return cut;
    };
    let slice = text.get(tail..cut).unwrap_or_default();
    let graphemes = sentence::graphemes(slice);
    let first = |places: Vec<usize>| {
        let mut safe = places.into_iter();
        safe.find(|at| graphemes.binary_search(at).is_ok())
    };
    let place = first(sentence::sentences(slice)).or_else(|| first(sentence::words(slice)));
    place.map_or(cut, |at| tail + at)
}

/// Whether a fence, a table or a list stands right before the cut: repeating its last lines would
/// help nobody.
fn ends_with_block(outline: &Outline, cut: usize) -> bool {
    let count = outline.seams.partition_point(|seam| seam.at < cut);
    let last = count
        .checked_sub(1)
        .and_then(|last| outline.seams.get(last));
    last.is_some_and(|seam| seam.whole || seam.strength <= Strength::Item)
}

/// The headings that most of the chunk stands under; for code, the definition it is inside of.
fn headings(text: &str, outline: &Outline, own: &Range<usize>) -> Vec<String> {
    if !outline.openers.is_empty() {
        return enclosing(text, outline, own).into_iter().collect();
    }
    let first = outline.sections.partition_point(|s| s.start <= own.start);
    let sections = outline.sections.get(first.saturating_sub(1)..);
    let sections = sections.unwrap_or_default();
    let ends = sections.iter().skip(1).map(|next| next.start);
    let ends = ends.chain([text.len()]);
    let share = sections.iter().zip(ends);
    let share = share.take_while(|(section, _)| section.start < own.end);
    let most = share.max_by_key(|(section, end)| {
        let end = (*end).min(own.end);
        let share = end.saturating_sub(section.start.max(own.start));
        // Front matter may be long, but says nothing about what follows.
        (!section.path.is_empty(), share)
    });
    most.map_or_else(Vec::new, |(section, _)| section.path.clone())
}

fn enclosing(text: &str, outline: &Outline, own: &Range<usize>) -> Option<String> {
    let slice = text.get(own.clone())?;
    let first = slice.lines().find(|line| !line.trim().is_empty())?;
    if !first.starts_with([' ', '\t']) {
        return None;
    }
    let count = outline.openers.partition_point(|(at, _)| *at < own.start);
    let (_, opener) = outline.openers.get(count.checked_sub(1)?)?;
    Some(opener.clone())
}

/// Counts lines on the way through a text.
#[derive(Default)]
struct Lines {
    at: usize,
    line: usize,
}

impl Lines {
    /// The lines that a piece stands on, counted from 1, empty ones at its ends left out. Pieces
    /// come in order.
    fn of(&mut self, text: &str, own: &Range<usize>) -> (usize, usize) {
        let piece = text.get(own.clone()).unwrap_or_default();
        let begin = own.start + (piece.len() - piece.trim_start().len());
        let end = own.start + piece.trim_end().len();
        (self.line_of(text, begin), self.line_of(text, end))
    }

    fn line_of(&mut self, text: &str, at: usize) -> usize {
        let between = text.get(self.at..at).unwrap_or_default();
        self.line += between.bytes().filter(|byte| *byte == b'\n').count();
        self.at = self.at.max(at);
        self.line + 1
    }
}
