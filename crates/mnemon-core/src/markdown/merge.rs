//! Three versions of a file become one: by section, then by line. No line that a side added is
//! ever lost; where both changed the same lines, both versions stay and are marked.

use std::collections::{BTreeMap, HashMap};

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::Document;
use crate::model::limits;

/// The text that came out, and where both sides wanted something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    pub text: String,
    pub clashes: Vec<Clash>,
}

/// A place where both sides changed the same thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clash {
    /// The heading of the section; empty for what stands before the first one.
    pub heading: String,
    /// What was done about it.
    pub what: &'static str,
}

const BOTH: &str = "both versions are in the file, between conflict marks";
const KEPT: &str = "one side deleted it and the other changed it; it was kept";

/// What marks two versions of the same lines.
const MARKS: [&str; 3] = [
    "<<<<<<< in the file",
    "=======",
    ">>>>>>> written at the same time",
];

/// Where the first conflict begins that somebody has yet to settle: marks of ours or of git.
pub fn conflict(text: &str) -> Option<usize> {
    let (mut begin, mut is_divided, mut at) = (None, false, 0);
    for line in text.split_inclusive('\n') {
        let mark = line.get(..7).unwrap_or_default();
        let is_mark = |wanted: &str| {
            mark == wanted && line.get(7..8).is_none_or(|next| next.trim().is_empty())
        };
        if is_mark("<<<<<<<") {
            (begin, is_divided) = (Some(at), false);
        } else if is_mark("=======") {
            is_divided = begin.is_some();
        } else if is_mark(">>>>>>>") && is_divided {
            return begin;
        }
        at += line.len();
    }
    None
}

/// Brings two changes of `base` together. `theirs` is what stands in the file, `ours` what was to
/// be written. Changes of different sections never clash; two texts added at one place follow
/// each other.
pub fn merge(base: &str, ours: &str, theirs: &str) -> Merged {
    let plain = |text: &str| Merged {
        text: text.to_owned(),
        clashes: Vec::new(),
    };
    if ours == theirs || ours == base {
        return plain(theirs);
    }
    if theirs == base {
        return plain(ours);
    }
    let docs = [base, ours, theirs].map(Document::parse);
    let [base, ours, theirs] = docs.each_ref().map(chunks);
    let mut out = Output {
        text: String::new(),
        line_end: docs[2].line_end(),
        clashes: Vec::new(),
    };
    for key in order(&base, &ours, &theirs) {
        match (base.get(&key), ours.get(&key), theirs.get(&key)) {
            (Some(base), Some(ours), Some(theirs)) => out.merge(&key, base, ours, theirs),
            (Some(base), Some(kept), None) | (Some(base), None, Some(kept)) => {
                if !same(base, kept) {
                    out.put(kept);
                    out.clash(&key, KEPT);
                }
            }
            (None, Some(ours), Some(theirs)) => {
                out.put(theirs);
                if !same(ours, theirs) {
                    out.put(ours);
                }
            }
            (None, Some(new), None) | (None, None, Some(new)) => out.put(new),
            (Some(_), None, None) | (None, None, None) => {}
        }
    }
    let bare = out.text.trim_end_matches(['\n', '\r']).len();
    let break_only = matches!(out.text.get(bare..), Some("\n" | "\r\n"));
    // More than one line break, or nothing else, is an empty line, and lines are not lost.
    if !ends_with_break(&docs) && break_only && bare > 0 {
        out.text.truncate(bare);
    }
    Merged {
        text: out.text,
        clashes: out.clashes,
    }
}

/// Whether the result ends with a line break: as the side says that changed it.
fn ends_with_break(docs: &[Document; 3]) -> bool {
    let [base, ours, theirs] = docs.each_ref().map(|doc| doc.as_str().ends_with('\n'));
    if ours == base { theirs } else { ours }
}

/// A heading as it stands in the file, and the how-many-th with these words it is.
type Key = (String, usize);

struct Chunks<'a> {
    keys: Vec<Key>,
    texts: HashMap<Key, &'a str>,
}

impl<'a> Chunks<'a> {
    fn get(&self, key: &Key) -> Option<&'a str> {
        self.texts.get(key).copied()
    }
}

/// What stands before the first heading, then each heading with what follows it.
fn chunks(doc: &Document) -> Chunks<'_> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let first = doc
        .sections()
        .first()
        .map_or(doc.as_str().len(), |section| section.own.start);
    let key: Key = (String::new(), 0);
    let mut chunks = Chunks {
        keys: vec![key.clone()],
        texts: HashMap::from([(key, doc.slice(&(0..first)))]),
    };
    for section in doc.sections() {
        let text = doc.slice(&section.own);
        let heading = text.lines().next().unwrap_or_default().trim().to_owned();
        let count = seen.entry(heading.clone()).or_default();
        *count += 1;
        let key = (heading, *count);
        chunks.keys.push(key.clone());
        chunks.texts.insert(key, text);
    }
    chunks
}

/// The order of the file; what only our side has comes after what it comes after there.
fn order(base: &Chunks<'_>, ours: &Chunks<'_>, theirs: &Chunks<'_>) -> Vec<Key> {
    let mut added: BTreeMap<usize, Vec<Key>> = BTreeMap::new();
    let places: HashMap<&Key, usize> = theirs
        .keys
        .iter()
        .enumerate()
        .map(|(at, key)| (key, at))
        .collect();
    // Moved sections must not pull others to the front: the furthest place so far counts only for
    // what directly follows its own predecessor.
    let mut after = 0;
    for key in &ours.keys {
        if let Some(place) = places.get(key) {
            after = *place;
        } else {
            added.entry(after).or_default().push(key.clone());
        }
    }
    let known = |key: &Key| base.texts.contains_key(key);
    let mut order = Vec::with_capacity(theirs.keys.len() + added.len());
    let mut waiting: Vec<Key> = Vec::new();
    for (at, key) in theirs.keys.iter().enumerate() {
        // What both sides added at one place: theirs stands first.
        if known(key) {
            order.append(&mut waiting);
        }
        order.push(key.clone());
        if let Some(new) = added.remove(&at) {
            waiting.extend(new);
        }
    }
    order.append(&mut waiting);
    order
}

struct Output {
    text: String,
    line_end: &'static str,
    clashes: Vec<Clash>,
}

impl Output {
    fn put(&mut self, text: &str) {
        self.close_line();
        self.text.push_str(text);
    }

    /// What comes next begins a line.
    fn close_line(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push_str(self.line_end);
        }
    }

    fn clash(&mut self, key: &Key, what: &'static str) {
        let heading = key.0.clone();
        self.clashes.push(Clash { heading, what });
    }

    fn both(&mut self, key: &Key, ours: &[&str], theirs: &[&str]) {
        let [from, between, to] = MARKS;
        for (mark, lines) in [(from, theirs), (between, ours)] {
            self.put(mark);
            self.put_all(lines);
        }
        self.put(to);
        self.close_line();
        self.clash(key, BOTH);
    }

    /// A section that all three have.
    fn merge(&mut self, key: &Key, base: &str, ours: &str, theirs: &str) {
        if same(ours, base) || same(ours, theirs) {
            return self.put(theirs);
        }
        if same(theirs, base) {
            return self.put(ours);
        }
        let [base, ours, theirs] = [base, ours, theirs].map(lines);
        if base.len().max(ours.len()).max(theirs.len()) > limits::MERGE_LINES {
            return self.both(key, &ours, &theirs);
        }
        let mut at = 0;
        for region in regions(&base, &ours, &theirs) {
            // What neither side changed, with the line breaks of the file.
            self.put_all(part(&theirs, (at, region.theirs.0)));
            at = region.theirs.1;
            let was = part(&base, region.base);
            self.region(
                key,
                was,
                part(&ours, region.ours),
                part(&theirs, region.theirs),
            );
        }
        self.put_all(part(&theirs, (at, theirs.len())));
    }

    fn region(&mut self, key: &Key, base: &[&str], ours: &[&str], theirs: &[&str]) {
        if same_lines(ours, theirs) || same_lines(ours, base) {
            self.put_all(theirs);
        } else if same_lines(theirs, base) {
            self.put_all(ours);
        } else if base.is_empty() || ours.is_empty() || theirs.is_empty() {
            self.put_all(theirs);
            self.put_all(ours);
            if !base.is_empty() {
                self.clash(key, KEPT);
            }
        } else {
            self.both(key, ours, theirs);
        }
    }

    fn put_all(&mut self, lines: &[&str]) {
        lines.iter().for_each(|line| self.put(line));
    }
}

fn part<'a, 'b>(lines: &'a [&'b str], (from, to): (usize, usize)) -> &'a [&'b str] {
    lines.get(from..to).unwrap_or_default()
}

fn same_lines(a: &[&str], b: &[&str]) -> bool {
    a.iter()
        .map(|line| bare(line))
        .eq(b.iter().map(|line| bare(line)))
}

/// Lines of the base, and what became of them on each side.
#[derive(Debug, Clone, Copy)]
struct Region {
    base: (usize, usize),
    ours: (usize, usize),
    theirs: (usize, usize),
}

/// A change of one side: lines of the base, and the lines that replace them.
#[derive(Debug, Clone, Copy)]
struct Hunk {
    old: (usize, usize),
    new: (usize, usize),
}

fn hunks(base: &[&str], side: &[&str]) -> Vec<Hunk> {
    let [base, side] =
        [base, side].map(|lines| lines.iter().map(|line| bare(line)).collect::<Vec<&str>>());
    let ops = capture_diff_slices(Algorithm::Myers, &base, &side);
    let (mut old, mut new) = (0, 0);
    let mut hunks = Vec::new();
    for op in &ops {
        // The library may give places that are off after it has joined changes; lengths hold.
        let (old_end, new_end) = (old + op.old_range().len(), new + op.new_range().len());
        if !matches!(op, DiffOp::Equal { .. }) {
            hunks.push(Hunk {
                old: (old, old_end),
                new: (new, new_end),
            });
        } else if base.get(old..old_end) != side.get(new..new_end) {
            return whole(&base, &side);
        }
        (old, new) = (old_end, new_end);
    }
    if (old, new) != (base.len(), side.len()) {
        return whole(&base, &side);
    }
    // What follows each other without a line between is one change.
    hunks
        .into_iter()
        .fold(Vec::new(), |mut joined: Vec<Hunk>, hunk| {
            match joined.last_mut() {
                Some(last) if last.old.1 == hunk.old.0 && last.new.1 == hunk.new.0 => {
                    last.old.1 = hunk.old.1;
                    last.new.1 = hunk.new.1;
                }
                _ => joined.push(hunk),
            }
            joined
        })
}

/// One change of everything.
fn whole(base: &[&str], side: &[&str]) -> Vec<Hunk> {
    vec![Hunk {
        old: (0, base.len()),
        new: (0, side.len()),
    }]
}

/// The changes of both sides; those that meet are one region.
fn regions(base: &[&str], ours: &[&str], theirs: &[&str]) -> Vec<Region> {
    let (ours, theirs) = (hunks(base, ours), hunks(base, theirs));
    let (mut next_ours, mut next_theirs) = (0, 0);
    let (mut shift_ours, mut shift_theirs) = (0_isize, 0_isize);
    let mut regions = Vec::new();
    loop {
        let (a, b) = (ours.get(next_ours), theirs.get(next_theirs));
        let start = match (a, b) {
            (Some(a), Some(b)) => a.old.0.min(b.old.0),
            (Some(one), None) | (None, Some(one)) => one.old.0,
            (None, None) => return regions,
        };
        let mut end = start;
        let (from_ours, from_theirs) = (shift_ours, shift_theirs);
        // Both sides are followed as long as one of them reaches into the other.
        loop {
            let mut grew = false;
            while let Some(hunk) = ours.get(next_ours).filter(|hunk| meets(hunk, start, end)) {
                end = end.max(hunk.old.1);
                shift_ours += growth(hunk);
                next_ours += 1;
                grew = true;
            }
            while let Some(hunk) = theirs
                .get(next_theirs)
                .filter(|hunk| meets(hunk, start, end))
            {
                end = end.max(hunk.old.1);
                shift_theirs += growth(hunk);
                next_theirs += 1;
                grew = true;
            }
            if !grew {
                break;
            }
        }
        regions.push(Region {
            base: (start, end),
            ours: (
                start.saturating_add_signed(from_ours),
                end.saturating_add_signed(shift_ours),
            ),
            theirs: (
                start.saturating_add_signed(from_theirs),
                end.saturating_add_signed(shift_theirs),
            ),
        });
    }
}

/// Whether a change begins within what was taken so far. An insertion right behind it does not,
/// unless nothing of the base was taken yet.
fn meets(hunk: &Hunk, start: usize, end: usize) -> bool {
    hunk.old.0 == start || hunk.old.0 < end
}

fn growth(hunk: &Hunk) -> isize {
    let len = |(from, to): (usize, usize)| isize::try_from(to - from).unwrap_or(isize::MAX);
    len(hunk.new) - len(hunk.old)
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// A line without its line break.
fn bare(line: &str) -> &str {
    line.trim_end_matches(['\n', '\r'])
}

/// Whether two texts have the same lines, however they end.
fn same(a: &str, b: &str) -> bool {
    a == b || a.lines().map(bare).eq(b.lines().map(bare))
}
