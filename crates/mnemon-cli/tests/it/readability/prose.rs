//! Reads the prose out of Markdown pages, the help of commands and the string literals of sources.

const SQL: &[&str] = &["SELECT ", "ORDER BY", " AND ", " TABLE ", "IS NULL", "= ?"];

/// A piece of prose: a paragraph, a table cell, a list item, a message.
pub(super) struct Block {
    pub text: String,
    pub heading: bool,
}

impl Block {
    fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            text,
            heading: false,
        }
    }
}

pub(super) fn words_of(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '-' && c != '_')
        .filter(|word| word.starts_with(char::is_alphabetic))
        .map(str::to_lowercase)
        .collect()
}

/// The sentences of a text: up to the next `.`, `!`, `?`, `:` or `;` that ends a word.
pub(super) fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        if c.is_whitespace() && ".!?:;".contains(before) {
            found.push(text[start..at].trim());
            start = at;
        }
        before = c;
    }
    found.push(text[start..].trim());
    found
}

/// Replaces everything between two marks by one word.
fn without(text: &str, open: char, close: char) -> String {
    let mut left = String::new();
    let mut rest = text;
    while let Some((before, inner)) = rest.split_once(open) {
        let Some((_, after)) = inner.split_once(close) else {
            break;
        };
        left.push_str(before);
        left.push('X');
        rest = after;
    }
    left + rest
}

/// The text of links, without their targets.
fn without_links(text: &str) -> String {
    let mut left = String::new();
    let mut rest = text;
    while let Some((before, inner)) = rest.split_once("](") {
        left.push_str(before);
        rest = inner.split_once(')').map_or("", |(_, after)| after);
    }
    (left + rest).replace(['[', ']'], "")
}

fn inline(text: &str) -> String {
    without_links(&without(text, '`', '`')).replace("**", "")
}

pub(super) fn markdown(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = false;
    let mut fenced = false;
    for line in page.lines() {
        let text = line.trim();
        let fence = text.starts_with("```");
        fenced ^= fence;
        if fence || fenced || text.is_empty() || text.starts_with("<!--") {
            open = false;
            continue;
        }
        if let Some(row) = text.strip_prefix('|') {
            let row = without(row, '`', '`');
            let cells = row.split('|').map(inline);
            blocks.extend(cells.map(Block::new));
            open = false;
            continue;
        }
        let marked = text.trim_start_matches(['#', '-', '*', '>', ' ']);
        let numbered = text
            .split_once(". ")
            .filter(|(number, _)| number.parse::<u32>().is_ok());
        let marked = numbered.map_or(marked, |(_, item)| item);
        let begins = marked.len() < text.len() || text.starts_with("**Invariant");
        match blocks.last_mut() {
            Some(last) if open && !begins => {
                last.text.push(' ');
                last.text.push_str(text);
            }
            _ => blocks.push(Block {
                text: marked.to_owned(),
                heading: text.starts_with('#'),
            }),
        }
        open = !text.starts_with('#');
    }
    for block in &mut blocks {
        block.text = inline(&block.text);
    }
    blocks
}

/// The help of all commands, which `docs/cli.md` holds in fences: descriptions of commands and
/// options, without usage lines and examples.
pub(super) fn help(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = false;
    let mut fenced = false;
    for line in page.lines() {
        let text = line.trim();
        if text.starts_with("```") {
            fenced = !fenced;
            open = false;
            continue;
        }
        let (left, right) = match text.split_once("  ") {
            Some((left, right)) => (left, right.trim()),
            None => (text, ""),
        };
        let is_syntax = ["-", "<", "[", "mnemon ", "Usage:", "echo ", "|", "$"]
            .iter()
            .any(|start| left.starts_with(start));
        if !right.is_empty() {
            blocks.push(Block::new(right));
            open = true;
        } else if !fenced || text.is_empty() || is_syntax {
            open = false;
        } else if let Some(last) = blocks.last_mut().filter(|_| open) {
            last.text.push(' ');
            last.text.push_str(text);
        } else {
            blocks.push(Block::new(text));
            open = true;
        }
    }
    for block in &mut blocks {
        block.text = without(&without(&inline(&block.text), '<', '>'), '\'', '\'');
    }
    let exits = page
        .split_once("## Exit codes")
        .map_or("", |(_, rows)| rows);
    blocks.extend(markdown(exits));
    blocks
}

/// The string literals of a source file that read like sentences: four words or more. SQL, word
/// lists, reasons of attributes and the unit tests at the end of the file are left out.
pub(super) fn messages(source: &str) -> Vec<Block> {
    let source = source.split("mod tests {").next().unwrap_or_default();
    let is_sql = |text: &str| SQL.iter().any(|word| text.contains(word));
    let is_list = |text: &str| text.matches('|').count() > 2;
    literals(source)
        .into_iter()
        .filter(|text| !is_sql(text) && !is_list(text) && !text.contains("://"))
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .map(|line| without(&without(&line, '{', '}'), '`', '`'))
        .filter(|line| words_of(line).len() > 3)
        .map(Block::new)
        .collect()
}

fn literals(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(at) = rest.find(['"', '/', '\'', 'r']) {
        let from = &rest[at..];
        let before = &source[..source.len() - from.len()];
        let raw = from
            .strip_prefix('r')
            .map(|after| after.trim_start_matches('#'));
        rest = if let Some(comment) = from.strip_prefix("//") {
            comment.split_once('\n').map_or("", |(_, next)| next)
        } else if from.starts_with("'\"'") || from.starts_with("'\\") {
            from.get(4..).unwrap_or_default()
        } else if let Some(text) = raw.filter(|text| text.starts_with('"')) {
            let hashes = from.len() - 1 - text.len();
            let end = format!("\"{}", "#".repeat(hashes));
            let (literal, after) = text[1..].split_once(&end).unwrap_or((text, ""));
            found.push(literal.to_owned());
            after
        } else if let Some(text) = from.strip_prefix('"') {
            let (literal, after) = plain_literal(text);
            if !before.trim_end().ends_with("reason =") {
                found.push(literal);
            }
            after
        } else {
            from.get(1..).unwrap_or_default()
        };
    }
    found
}

/// A literal up to its closing quotation mark, and the source after it.
fn plain_literal(text: &str) -> (String, &str) {
    let mut literal = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (literal, &text[at + 1..]),
            '\\' => match chars.next() {
                Some((_, 'n')) => literal.push('\n'),
                Some((at, '\n')) => {
                    let blank = text[at..].chars().take_while(|c| c.is_whitespace()).count();
                    let skipped = chars.by_ref().take(blank.saturating_sub(1)).count();
                    debug_assert!(skipped < blank);
                }
                Some((_, other)) => literal.push(other),
                None => break,
            },
            c => literal.push(c),
        }
    }
    (literal, "")
}

#[test]
fn messages_are_read_from_sources() {
    let source = r##"
        // "a comment with some words"
        #[error("{path} was not told to \
                 us: `told` twice")]
        #[allow(dead_code, reason = "an attribute is not a message")]
        let (quote, sql) = ('"', "SELECT id FROM records WHERE id");
        let raw = r#"a "raw" text with words"#;
        mod tests { const X: &str = "a text in unit tests"; }
    "##;
    let texts: Vec<String> = messages(source)
        .into_iter()
        .map(|block| block.text)
        .collect();
    let expected = ["X was not told to us: X twice", "a \"raw\" text with words"];
    assert_eq!(texts, expected);
}

#[test]
fn help_is_read_without_syntax() {
    let page = "```text\nStore a record that\nmany read.\n\nUsage: mnemon add [TEXT]\n\n  \
                -u, --user <NAME>\n          The owner\n  add    Remember it\n```\n";
    let texts: Vec<String> = help(page).into_iter().map(|block| block.text).collect();
    assert_eq!(
        texts,
        ["Store a record that many read.", "The owner", "Remember it"]
    );
}
