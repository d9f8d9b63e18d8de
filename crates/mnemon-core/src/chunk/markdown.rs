//! Markdown: headings make sections; fences, tables, lists and quotations stay whole.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::Size;
use super::outline::{Outline, Section, Strength, line_start, lines, short};

pub(super) fn outline(text: &str, size: Size) -> Outline {
    let options = Options::ENABLE_TABLES | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
    let mut reader = Reader {
        text,
        outline: Outline {
            overlaps: true,
            ..Outline::unsectioned()
        },
        depth: 0,
        collecting: Collecting::Nothing,
        collected: String::new(),
        open: Vec::new(),
    };
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        reader.read(event, range.start, range.end);
    }
    let mut outline = reader.outline;
    outline.keep_whole(text, size, Strength::Paragraph);
    outline
}

/// Whose words are being gathered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Collecting {
    Nothing,
    Heading(u8),
    FrontMatter,
}

struct Reader<'a> {
    text: &'a str,
    outline: Outline,
    depth: usize,
    collecting: Collecting,
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
                if self.depth == 0 {
                    self.finish(tag);
                }
            }
            Event::Text(words) | Event::Code(words) if self.collecting != Collecting::Nothing => {
                self.collected.push_str(&words);
            }
            Event::SoftBreak | Event::HardBreak if self.collecting != Collecting::Nothing => {
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
        match tag {
            Tag::Heading { level, .. } => {
                self.outline.seam(at, Strength::Section);
                self.collecting = Collecting::Heading(rank(*level));
                let section = Section {
                    start: at,
                    level: rank(*level),
                    path: Vec::new(),
                };
                // Two headings cannot begin on one line; the first section may begin with one.
                match self.outline.sections.last_mut() {
                    Some(last) if last.start == at => *last = section,
                    _ => self.outline.sections.push(section),
                }
                return;
            }
            Tag::MetadataBlock(_) => self.collecting = Collecting::FrontMatter,
            _ => {}
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

    fn finish(&mut self, tag: TagEnd) {
        let words = short(&std::mem::take(&mut self.collected));
        let collecting = std::mem::replace(&mut self.collecting, Collecting::Nothing);
        match (tag, collecting) {
            (TagEnd::Heading(_), Collecting::Heading(level)) => self.heading(level, words),
            (TagEnd::MetadataBlock(_), _) => self.front_matter(),
            _ => {}
        }
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

    /// The line `title: …` of the front matter, quotes taken off.
    fn front_matter(&mut self) {
        let title = self
            .text
            .lines()
            .skip(1)
            .take_while(|line| line.trim() != "---");
        let title = title.filter_map(|line| line.strip_prefix("title:")).next();
        let title = title.map(|title| short(title.trim().trim_matches(['"', '\''])));
        self.outline.title = title.filter(|title| !title.is_empty());
    }
}

fn rank(level: HeadingLevel) -> u8 {
    level as u8
}
