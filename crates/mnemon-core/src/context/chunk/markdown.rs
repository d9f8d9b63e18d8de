//! Markdown: headings make sections; fences, tables, lists and quotations stay whole.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::Size;
use super::outline::{Outline, Section, Strength, line_start, lines, short};

pub(super) fn outline(text: &str, size: Size) -> Outline {
    let front = front_matter(text);
    let mut reader = Reader {
        text,
        outline: Outline {
            title: title_in(front),
            overlaps: true,
            ..Outline::unsectioned()
        },
        depth: 0,
        collecting: None,
        collected: String::new(),
        open: Vec::new(),
    };
    let body = text.get(front.len()..).unwrap_or_default();
    for (event, range) in Parser::new_ext(body, Options::ENABLE_TABLES).into_offset_iter() {
        reader.read(event, front.len() + range.start, front.len() + range.end);
    }
    let mut outline = reader.outline;
    outline.keep_whole(text, size, Strength::Paragraph);
    outline
}

/// The lines between `---` and `---` that a text begins with, these two included; empty if it
/// does not.
fn front_matter(text: &str) -> &str {
    let is_rule = |line: &str| line.trim_end() == "---";
    let mut lines = lines(text);
    if !lines.next().is_some_and(|(_, first)| is_rule(first)) {
        return "";
    }
    let end = lines.find(|(_, line)| is_rule(line));
    end.and_then(|(at, line)| text.get(..at + line.len()))
        .unwrap_or_default()
}

/// What the line `title: …` says, quotes taken off.
fn title_in(front: &str) -> Option<String> {
    let title = front.lines().find_map(|line| line.strip_prefix("title:"))?;
    let title = short(title.trim().trim_matches(['"', '\'']));
    Some(title).filter(|title| !title.is_empty())
}

struct Reader<'a> {
    text: &'a str,
    outline: Outline,
    depth: usize,
    /// The level of the heading whose words are being gathered.
    collecting: Option<u8>,
    collected: String,
    /// The headings above, with their levels.
    open: Vec<(u8, String)>,
}

impl Reader<'_> {
    fn read(&mut self, event: Event<'_>, start: usize, end: usize) {
        match event {
            Event::Start(tag) => {
                match self.depth {
                    0 => self.block(&tag, start, end),
                    1 if matches!(tag, Tag::Item) => self.inner(start, Strength::Item),
                    _ => {}
                }
                self.depth += 1;
            }
            Event::End(tag) => {
                self.depth = self.depth.saturating_sub(1);
                if matches!(tag, TagEnd::Heading(_))
                    && let Some(level) = self.collecting.take()
                {
                    let words = short(&std::mem::take(&mut self.collected));
                    self.heading(level, words);
                }
            }
            Event::Text(words) | Event::Code(words) if self.collecting.is_some() => {
                self.collected.push_str(&words);
            }
            Event::SoftBreak | Event::HardBreak if self.collecting.is_some() => {
                self.collected.push(' ');
            }
            Event::Rule | Event::Html(_) if self.depth == 0 => {
                self.inner(start, Strength::Paragraph)
            }
            _ => {}
        }
    }

    fn block(&mut self, tag: &Tag<'_>, start: usize, end: usize) {
        let at = line_start(self.text, start);
        if let Tag::Heading { level, .. } = tag {
            return self.section(at, rank(*level));
        }
        self.outline.seam(at, Strength::Paragraph);
        if let Some(last) = self.outline.seams.last_mut().filter(|last| last.at == at) {
            last.whole = !matches!(tag, Tag::Paragraph);
        }
        if matches!(
            tag,
            Tag::CodeBlock(_) | Tag::Table(_) | Tag::BlockQuote(_) | Tag::HtmlBlock
        ) {
            self.inner_lines(at, end);
        }
    }

    fn section(&mut self, at: usize, level: u8) {
        self.outline.seam(at, Strength::Section);
        self.collecting = Some(level);
        let section = Section {
            start: at,
            level,
            path: Vec::new(),
        };
        // Two headings cannot begin on one line; the first section may begin with one.
        match self.outline.sections.last_mut() {
            Some(last) if last.start == at => *last = section,
            _ => self.outline.sections.push(section),
        }
    }

    /// Where a block may be cut if it turns out too large.
    fn inner_lines(&mut self, start: usize, end: usize) {
        let block = self.text.get(start..end).unwrap_or_default();
        let mut after_blank = false;
        for (at, line) in lines(block) {
            let blank = line.trim().is_empty();
            if !blank {
                let strength = if after_blank {
                    Strength::Item
                } else {
                    Strength::Line
                };
                self.outline.seam(start + at, strength);
            }
            after_blank = blank;
        }
    }

    fn inner(&mut self, start: usize, strength: Strength) {
        self.outline.seam(line_start(self.text, start), strength);
    }

    fn heading(&mut self, level: u8, words: String) {
        let first = self.open.is_empty() && self.outline.title.is_none();
        if first && level == 1 && !words.is_empty() {
            self.outline.title = Some(words.clone());
        }
        self.open.retain(|(above, _)| *above < level);
        self.open.push((level, words));
        let path = self.open.iter().map(|(_, words)| words.clone());
        if let Some(section) = self.outline.sections.last_mut() {
            section.path = path.filter(|words| !words.is_empty()).collect();
        }
    }
}

fn rank(level: HeadingLevel) -> u8 {
    level as u8
}
