//! Markdown that is read for its structure, changed in single places and otherwise left alone.
//!
//! A [`Document`] is its text, with marks where headings, code, lists and tables lie. It is never
//! printed anew: an edit replaces a range of bytes, and what was not edited stays as it was, byte
//! for byte, be it CRLF, odd spacing or a missing last line break.
//!
//! Headings are those that begin with `#`, outside fences, HTML, quotes and lists. A line of text
//! above `---` is not taken for one: people end their entries with `---`.
//!
//! ```
//! use mnemon_core::markdown::Document;
//!
//! let mut doc = Document::parse("# Log\n\n## 2025-12-31: Tea\n\n**Why | Tại sao**: warm\n");
//! let entry = &doc.entries()[0];
//! assert_eq!(entry.title, "Tea");
//! assert_eq!(doc.field(&entry.body, "why").unwrap().text, "warm");
//! doc.append("## 2026-01-01: Coffee\n");
//! assert!(doc.as_str().starts_with("# Log\n\n## 2025-12-31: Tea\n\n**Why | Tại sao**: warm\n"));
//! ```

mod day;
mod entries;
mod fields;
mod labels;
mod lists;
mod merge;
mod outline;
mod tables;

use std::fmt;
use std::ops::Range;

use pulldown_cmark::{Event, OffsetIter, Options, Parser, Tag, TagEnd};

pub use day::Day;
pub use entries::Entry;
pub use fields::{Field, names};
pub use labels::{Label, Language, language_of};
pub use lists::Item;
pub use merge::{Clash, Merged, conflict, merge};
pub use tables::{Row, Table};

/// A Markdown text and where its parts lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    text: String,
    /// Where the text after the front matter begins.
    start: usize,
    sections: Vec<Section>,
    items: Vec<Item>,
    tables: Vec<Range<usize>>,
    /// Code and HTML: nothing in there is a field, a rule or a heading.
    opaque: Vec<Range<usize>>,
}

/// A heading and what stands under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    pub level: u8,
    /// The heading without its marks.
    pub title: String,
    /// From the heading to the next one of the same or a higher level.
    pub span: Range<usize>,
    /// What stands between the heading's line and the end of the span.
    pub body: Range<usize>,
    /// From the heading to the next one of any level.
    pub own: Range<usize>,
}

impl Section {
    /// Whether it is called so, in either language.
    pub fn is(&self, name: &str) -> bool {
        fields::is_named(&self.title, name)
    }
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Document {
    /// Reads the structure of a text. Every text is one.
    pub fn parse(text: impl Into<String>) -> Self {
        let mut document = Self {
            text: text.into(),
            start: 0,
            sections: Vec::new(),
            items: Vec::new(),
            tables: Vec::new(),
            opaque: Vec::new(),
        };
        document.read();
        document
    }

    /// The text as it is now.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The text as it is now.
    pub fn into_string(self) -> String {
        self.text
    }

    /// The text in a range; empty where the range does not fit.
    pub fn slice(&self, range: &Range<usize>) -> &str {
        self.text.get(range.clone()).unwrap_or_default()
    }

    /// The front matter between its `---` lines, if the text begins with one.
    pub fn front_matter(&self) -> Option<&str> {
        let inside = self.text.get(..self.start)?.trim_end();
        inside.strip_prefix("---")?.strip_suffix("---")
    }

    /// The text after the front matter.
    pub fn body(&self) -> &str {
        self.text.get(self.start..).unwrap_or_default()
    }

    /// Every section, in the order of the text.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// The first section with this name, in either language.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.is(name))
    }

    /// How its lines end.
    pub fn line_end(&self) -> &'static str {
        match self.text.find('\n') {
            Some(at) if self.text.get(..at).is_some_and(|line| line.ends_with('\r')) => "\r\n",
            _ => "\n",
        }
    }

    /// Replaces a range by a text, whose line breaks become those of the document.
    pub fn replace(&mut self, range: Range<usize>, text: &str) {
        let fits = self.text.is_char_boundary(range.start)
            && self.text.is_char_boundary(range.end)
            && range.start <= range.end;
        if fits {
            let text = self.with_line_ends(text);
            self.text.replace_range(range, &text);
            self.read();
        }
    }

    /// Takes ranges away, given in the order of the text and apart from each other.
    pub fn cut(&mut self, ranges: &[Range<usize>]) {
        let mut kept = String::with_capacity(self.text.len());
        let mut at = 0;
        for range in ranges {
            kept.push_str(self.slice(&(at..range.start)));
            at = range.end.max(at);
        }
        kept.push_str(self.slice(&(at..self.text.len())));
        self.text = kept;
        self.read();
    }

    /// Puts an entry or a section after everything else, with an empty line between. Returns where
    /// it begins.
    pub fn append(&mut self, text: &str) -> usize {
        let end = self.text.len();
        let mut lines = self.text.rsplit('\n');
        let (last, above) = (lines.next().unwrap_or_default(), lines.next());
        let blank = |line: &str| line.trim().is_empty();
        let lead = match (last, above) {
            ("", None) => "",
            ("", Some(above)) if blank(above) => "",
            ("", Some(_)) => "\n",
            // A last line of spaces is ended; it is the empty line then.
            (last, _) if blank(last) => "\n",
            _ => "\n\n",
        };
        let start = end + self.with_line_ends(lead).len();
        self.replace(end..end, &format!("{lead}{text}"));
        start
    }

    /// The same for an entry of a log: if the entry above has no closing `---`, it gets one, since
    /// other readers of these files split them there.
    pub fn append_entry(&mut self, text: &str) -> usize {
        let last = self.lines(self.start..self.text.len());
        let last = last.filter(|line| !self.slice(line).trim().is_empty());
        let is_closed = last.last().is_none_or(|line| self.is_rule(&line));
        let has_entries = self.sections.iter().any(|section| section.level == 2);
        if has_entries && !is_closed {
            self.append("---\n");
        }
        self.append(text)
    }

    /// Replaces what stands under a heading, up to its closing `---` if it has one.
    pub fn set_body(&mut self, section: &Section, text: &str) {
        let content = self.content(section);
        let text = text.trim_matches(['\n', '\r']);
        if content.is_empty() {
            let end = self.line_after_heading(section);
            let lead = if self
                .text
                .get(..end)
                .is_some_and(|before| before.ends_with('\n'))
            {
                "\n"
            } else {
                "\n\n"
            };
            self.replace(end..end, &format!("{lead}{text}\n"));
        } else {
            self.replace(content, text);
        }
    }

    /// What stands under a heading, up to the next heading of any level, without empty lines
    /// around it and the closing `---`. An empty range at its place when there is nothing.
    pub fn content(&self, section: &Section) -> Range<usize> {
        let start = self.line_after_heading(section);
        self.trimmed(start..section.own.end)
    }

    fn line_after_heading(&self, section: &Section) -> usize {
        section.body.start
    }

    /// The range without empty lines around it and a last `---`.
    fn trimmed(&self, range: Range<usize>) -> Range<usize> {
        let mut lines: Vec<Range<usize>> = self.lines(range.clone()).collect();
        let blank = |line: &Range<usize>| self.slice(line).trim().is_empty();
        while lines.last().is_some_and(blank) {
            lines.pop();
        }
        if lines.last().is_some_and(|line| self.is_rule(line)) {
            lines.pop();
        }
        while lines.last().is_some_and(blank) {
            lines.pop();
        }
        let first = lines.iter().find(|line| !blank(line));
        match (first, lines.last()) {
            (Some(first), Some(last)) => {
                let text = self.slice(last).trim_end_matches(['\n', '\r']);
                first.start..last.start + text.len()
            }
            _ => range.start..range.start,
        }
    }

    /// The lines of a range, each with its line break.
    fn lines(&self, range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let mut at = range.start;
        self.slice(&range).split_inclusive('\n').map(move |line| {
            let start = at;
            at += line.len();
            start..at
        })
    }

    /// Whether the line is `---`, outside code.
    fn is_rule(&self, line: &Range<usize>) -> bool {
        let text = self.slice(line).trim();
        let dashes = text.len() >= 3 && text.bytes().all(|byte| byte == b'-');
        dashes && !self.is_opaque(line.start)
    }

    /// A text for an entry without a line `---`, at which other readers split these files. Outside
    /// code it becomes `***`, which means the same. A block of code is indented by a space, which
    /// Markdown takes away again.
    pub fn without_rules(text: &str) -> String {
        // An empty line before it, so that its beginning is not taken for front matter.
        let document = Self::parse(format!("\n{text}"));
        let is_split = |line: &Range<usize>| document.slice(line).trim_end() == "---";
        let code = document.opaque.iter().filter(|code| {
            let mut lines = document.lines((*code).clone());
            lines.any(|line| is_split(&line))
        });
        let code: Vec<&Range<usize>> = code.collect();
        let lines = document.lines(1..document.text.len()).map(|line| {
            let own = document.slice(&line);
            let is_code = code.iter().any(|code| code.contains(&line.start));
            match is_split(&line) {
                _ if is_code => format!(" {own}"),
                true => own.replacen("---", "***", 1),
                false => own.to_owned(),
            }
        });
        lines.collect()
    }

    /// Whether this place lies in code or HTML.
    fn is_opaque(&self, at: usize) -> bool {
        let after = self.opaque.partition_point(|range| range.end <= at);
        self.opaque
            .get(after)
            .is_some_and(|range| range.start <= at)
    }

    fn with_line_ends(&self, text: &str) -> String {
        let plain = text.replace("\r\n", "\n");
        match self.line_end() {
            "\r\n" => plain.replace('\n', "\r\n"),
            _ => plain,
        }
    }

    fn read(&mut self) {
        self.start = front_matter_end(&self.text);
        let text = self.text.get(self.start..).unwrap_or_default();
        let options = Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS;
        let events = Parser::new_ext(text, options).into_offset_iter();
        let mut reader = Reader::new(text, self.start);
        reader.run(events);
        reader.opaque.sort_by_key(|range| range.start);
        self.opaque = reader.opaque;
        self.tables = reader.tables;
        self.items = reader.items;
        self.sections = sections(&self.text, &reader.headings);
    }
}

/// The text after its front matter.
pub fn without_front_matter(text: &str) -> &str {
    text.get(front_matter_end(text)..).unwrap_or(text)
}

/// Where the front matter ends, its last line included; 0 when there is none.
fn front_matter_end(text: &str) -> usize {
    let mut at = 0;
    for (n, line) in text.split_inclusive('\n').enumerate() {
        let is_mark = line.trim_end() == "---";
        at += line.len();
        match (n, is_mark) {
            (0, false) => return 0,
            (0, true) => {}
            (_, true) => return at,
            // A list of settings has no headings: that `---` was a rule.
            (_, false) if line.starts_with('#') || line.trim().is_empty() => return 0,
            (_, false) => {}
        }
    }
    0
}

/// Sorts the parser's events into what we want to know.
struct Reader<'a> {
    text: &'a str,
    /// Where the parsed text begins in the whole one.
    offset: usize,
    headings: Vec<(u8, Range<usize>)>,
    items: Vec<Item>,
    /// Positions in `items` of those that are still open.
    open_items: Vec<usize>,
    tables: Vec<Range<usize>>,
    opaque: Vec<Range<usize>>,
    /// Quotes and lists that are open.
    depth: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, offset: usize) -> Self {
        Self {
            text,
            offset,
            headings: Vec::new(),
            items: Vec::new(),
            open_items: Vec::new(),
            tables: Vec::new(),
            opaque: Vec::new(),
            depth: 0,
        }
    }

    fn run(&mut self, events: OffsetIter<'_>) {
        for (event, range) in events {
            let moved = range.start + self.offset..range.end + self.offset;
            match event {
                Event::Start(Tag::Heading { level, .. }) if self.depth == 0 => {
                    let before = self.text.get(..range.start).unwrap_or_default();
                    let indent = before.rsplit('\n').next().unwrap_or_default();
                    let source = self.text.get(range).unwrap_or_default();
                    let line = source.lines().next().unwrap_or_default();
                    // Otherwise it is a line above `---`, which may begin with `#`, too.
                    if indent.len() <= 3 && outline::heading(line.trim().as_bytes()).is_some() {
                        self.headings.push((level as u8, moved));
                    }
                }
                Event::Start(Tag::CodeBlock(_) | Tag::HtmlBlock) => self.opaque.push(moved),
                Event::Start(Tag::Table(_)) => self.tables.push(moved),
                Event::Start(Tag::List(_) | Tag::BlockQuote(_)) => self.depth += 1,
                Event::End(TagEnd::List(_) | TagEnd::BlockQuote(_)) => self.depth -= 1,
                Event::Start(Tag::Item) => {
                    self.open_items.push(self.items.len());
                    self.items.push(Item::new(moved));
                }
                Event::End(TagEnd::Item) => {
                    self.open_items.pop();
                }
                Event::TaskListMarker(checked) => self.mark(checked, moved),
                _ => {}
            }
        }
    }

    fn mark(&mut self, checked: bool, range: Range<usize>) {
        let item = self.open_items.last().copied();
        if let Some(item) = item.and_then(|at| self.items.get_mut(at)) {
            item.checked = Some(checked);
            item.mark = Some(range);
        }
    }
}

fn sections(text: &str, headings: &[(u8, Range<usize>)]) -> Vec<Section> {
    // From the last heading to the first: where does each of them end?
    let mut ends = [text.len(); 7];
    let mut next = text.len();
    let mut found: Vec<Section> = Vec::with_capacity(headings.len());
    for (level, range) in headings.iter().rev() {
        // A heading may stand a little to the right; its section begins with its line.
        let before = text.get(..range.start).unwrap_or_default();
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let rest = text.get(range.start..).unwrap_or_default();
        let line = rest.split_inclusive('\n').next().unwrap_or_default();
        let end = ends.get(usize::from(*level)).copied().unwrap_or(text.len());
        found.push(Section {
            level: *level,
            title: heading_title(line).to_owned(),
            span: start..end,
            body: range.start + line.len()..end,
            own: start..next,
        });
        next = start;
        for deeper in ends.iter_mut().skip(usize::from(*level)) {
            *deeper = start;
        }
    }
    found.reverse();
    found
}

/// A heading's line without its marks.
fn heading_title(line: &str) -> &str {
    let title = line.trim().trim_start_matches('#').trim();
    let bare = title.trim_end_matches('#');
    if bare.ends_with([' ', '\t']) || bare.is_empty() {
        bare.trim_end()
    } else {
        title
    }
}

#[cfg(test)]
mod tests;
