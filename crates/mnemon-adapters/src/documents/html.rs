//! From HTML to Markdown: headings, paragraphs, lists, tables and code; no scripts, no styles.
//!
//! The tree is walked without recursion: a page may be nested as deep as it likes.

use ego_tree::NodeId;
use ego_tree::iter::Edge;
use scraper::Html;
use scraper::node::{Element, Node};

/// Elements of which nothing is shown.
const UNSEEN: &[&str] = &[
    "script", "style", "noscript", "template", "svg", "iframe", "object", "canvas", "math",
    "select", "button", "dialog", "head",
];
/// Elements that stand on lines of their own.
const BLOCKS: &[&str] = &[
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "header",
    "main",
    "nav",
    "ol",
    "p",
    "section",
    "summary",
    "table",
    "ul",
];

/// How deep elements may be nested: the parser looks through all that are open, again and again.
pub(super) const DEPTH: usize = 400;

/// Elements that are never open for long: they hold nothing, or the next one closes them.
const PASSING: &[&str] = &[
    "area", "base", "br", "col", "colgroup", "dd", "dt", "embed", "hr", "img", "input", "li",
    "link", "meta", "option", "p", "param", "source", "tbody", "td", "tfoot", "th", "thead", "tr",
    "track", "wbr",
];

/// Whether so many elements are open at once that reading the page would take for ever. A rough
/// count of the tags: it need not be exact, for no page that people read comes near.
pub(super) fn is_too_deep(source: &str) -> bool {
    let mut open: usize = 0;
    let mut rest = source;
    while let Some((_, behind)) = rest.split_once('<') {
        rest = behind;
        if let Some(comment) = rest.strip_prefix("!--") {
            rest = comment.split_once("-->").map_or("", |(_, behind)| behind);
            continue;
        }
        if rest.starts_with('/') {
            open = open.saturating_sub(1);
            continue;
        }
        let name = rest
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
            .next();
        let name = name.unwrap_or_default().to_ascii_lowercase();
        let is_element = name.starts_with(|c: char| c.is_ascii_alphabetic());
        if name == "script" || name == "style" {
            // What stands in there is no markup; its end tag is not counted either.
            rest = behind_end_of(rest, &name);
        } else if is_element && !PASSING.contains(&name.as_str()) {
            open += 1;
            if open > DEPTH {
                return true;
            }
        }
    }
    false
}

/// What follows the beginning of the element's end tag.
fn behind_end_of<'a>(source: &'a str, name: &str) -> &'a str {
    let ends = source
        .match_indices("</")
        .filter_map(|(at, _)| source.get(at + 2..));
    let mut ends = ends.filter(|rest| {
        let head = rest.get(..name.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(name))
    });
    ends.next().unwrap_or_default()
}

/// The page as Markdown. Without a heading of the first rank its title becomes one.
pub(super) fn markdown(source: &str) -> String {
    let page = Html::parse_document(source);
    let mut writer = Writer::default();
    let mut title = String::new();
    let mut in_title = None;
    for edge in page.tree.root().traverse() {
        match edge {
            Edge::Open(node) => match node.value() {
                Node::Element(element) => {
                    if element.name() == "title" && title.is_empty() {
                        in_title = Some(node.id());
                    }
                    writer.open(node.id(), element);
                }
                Node::Text(text) if in_title.is_some() => title.push_str(text),
                Node::Text(text) => writer.text(text),
                _ => {}
            },
            Edge::Close(node) => {
                if in_title == Some(node.id()) {
                    in_title = None;
                }
                if let Node::Element(element) = node.value() {
                    writer.close(node.id(), element);
                }
            }
        }
    }
    let title: Vec<&str> = title.split_whitespace().collect();
    match title.is_empty() || writer.has_title {
        true => writer.out,
        false => format!("# {}\n\n{}", title.join(" "), writer.out),
    }
}

#[derive(Default)]
struct Writer {
    out: String,
    /// Line breaks due before the next word.
    breaks: usize,
    /// A space is due before the next word.
    space: bool,
    /// The element of which nothing is shown.
    hidden: Option<NodeId>,
    /// Text is kept as it is.
    preformatted: usize,
    in_heading: bool,
    has_title: bool,
    /// The lists we are in, each with the number of its next item; 0 where they have none.
    lists: Vec<usize>,
    /// Cells of the row under way, and rows of the table so far.
    cells: usize,
    rows: usize,
}

impl Writer {
    fn open(&mut self, id: NodeId, element: &Element) {
        if self.hidden.is_some() {
            return;
        }
        let name = element.name();
        if UNSEEN.contains(&name) {
            self.hidden = Some(id);
            return;
        }
        if BLOCKS.contains(&name) {
            self.part();
        }
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.heading(name),
            "br" if self.preformatted > 0 => self.out.push('\n'),
            "br" if self.in_heading => self.space = true,
            "br" => self.line(),
            "hr" => {
                self.part();
                self.word("---");
                self.part();
            }
            "pre" => {
                self.part();
                self.word("```");
                self.out.push('\n');
                self.preformatted += 1;
            }
            "ul" => self.lists.push(0),
            "ol" => self.lists.push(1),
            "li" => self.item(),
            "table" => self.rows = 0,
            "tr" => {
                self.line();
                self.cells = 0;
            }
            "td" | "th" => {
                self.word("|");
                self.space = true;
                self.cells += 1;
            }
            "img" => {
                if let Some(alt) = element.attr("alt") {
                    self.text(alt);
                }
            }
            _ => {}
        }
    }

    fn close(&mut self, id: NodeId, element: &Element) {
        if self.hidden.is_some() {
            if self.hidden == Some(id) {
                self.hidden = None;
            }
            return;
        }
        let name = element.name();
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.in_heading = false;
                self.part();
            }
            "pre" => {
                self.preformatted = self.preformatted.saturating_sub(1);
                if !self.out.ends_with('\n') {
                    self.out.push('\n');
                }
                self.out.push_str("```");
                self.part();
            }
            "ul" | "ol" => {
                self.lists.pop();
            }
            "td" | "th" => self.space = true,
            "tr" => self.row(),
            _ => {}
        }
        if BLOCKS.contains(&name) {
            self.part();
        }
    }

    fn heading(&mut self, name: &str) {
        let level = name
            .bytes()
            .last()
            .map_or(1, |digit| usize::from(digit - b'0'));
        self.has_title |= level == 1;
        self.part();
        self.word(&"#".repeat(level));
        self.space = true;
        self.in_heading = true;
    }

    fn item(&mut self) {
        /// Deeper lists are not set in further.
        const DEEPEST: usize = 8;
        self.line();
        let depth = self.lists.len().saturating_sub(1).min(DEEPEST);
        let mark = match self.lists.last_mut() {
            Some(number) if *number > 0 => {
                *number += 1;
                format!("{}.", *number - 1)
            }
            _ => "-".to_owned(),
        };
        self.word(&format!("{}{mark}", "  ".repeat(depth)));
        self.space = true;
        self.breaks = 0;
    }

    fn row(&mut self) {
        if self.cells == 0 {
            return;
        }
        self.word("|");
        let cells = std::mem::take(&mut self.cells);
        self.rows += 1;
        if self.rows == 1 {
            let rule = "|---".repeat(cells);
            self.line();
            self.word(&format!("{rule}|"));
        }
        self.line();
    }

    fn text(&mut self, text: &str) {
        if self.hidden.is_some() {
            return;
        }
        if self.preformatted > 0 {
            self.out.push_str(text);
            return;
        }
        self.space |= text.starts_with(char::is_whitespace);
        for word in text.split_whitespace() {
            self.word(word);
            self.space = true;
        }
        self.space = text.ends_with(char::is_whitespace) || (text.is_empty() && self.space);
    }

    /// Writes a word after the breaks or the space that are due.
    fn word(&mut self, word: &str) {
        if self.out.is_empty() {
        } else if self.breaks > 0 {
            self.out.extend(std::iter::repeat_n('\n', self.breaks));
        } else if self.space {
            self.out.push(' ');
        }
        (self.breaks, self.space) = (0, false);
        self.out.push_str(word);
    }

    fn line(&mut self) {
        self.breaks = self.breaks.max(1);
    }

    /// A paragraph ends here. Inside of an item, a cell or a heading it is but a space: a mark or
    /// a row must stand on one line.
    fn part(&mut self) {
        let after_mark = self.space && self.out.ends_with(['-', '.', '|', '#']);
        if self.in_heading || after_mark || self.cells > 0 {
            self.space = true;
        } else {
            self.breaks = 2;
        }
    }
}
