//! Documentation, help, tool descriptions and messages are plain English: short sentences, and none
//! of the expressions in `docs/style/words.txt`. `cargo test -p mnemon-cli --test it readability --
//! --nocapture` prints the figures.
//!
//! A sentence ends at `.`, `!`, `?`, `:` or `;`. Code, inline code and placeholders count as one word
//! and are not searched.

use std::fs;
use std::path::{Path, PathBuf};

/// The longest sentence, in words.
const LONGEST: usize = 40;

/// Texts that are still to be rewritten: file or folder, allowed number of listed expressions,
/// allowed number of sentences above [`LONGEST`]. Other texts have none. The numbers may only go
/// down: lower them when the figures that the test prints are smaller.
const REMAINING: &[(&str, usize, usize)] = &[
    ("crates/mnemon-cli/src", 105, 0),
    ("docs/agent-files.md", 11, 0),
    ("docs/cli.md", 128, 1),
    ("docs/conversations.md", 15, 0),
    ("docs/env.md", 7, 0),
    ("docs/mcp-tools.md", 89, 0),
    ("docs/mcp.md", 11, 1),
    ("docs/ranking.md", 5, 0),
];

/// The largest mean sentence length for each kind of text, in words.
const MEANS: &[(Kind, f64)] = &[
    (Kind::Documentation, 10.5),
    (Kind::Help, 7.8),
    (Kind::Tools, 7.6),
    (Kind::Messages, 7.0),
];

/// Sources whose string literals are data (word lists, rules, examples) or prompts, not messages.
const DATA: &[&str] = &[
    "core/src/secrets/block.rs",
    "core/src/secrets/named.rs",
    "core/src/secrets/rules.rs",
    "core/src/secrets/spoken.rs",
    "core/src/secrets/value.rs",
    "core/src/secrets/words.rs",
    "search/text/stop.rs",
    "window/prompts.rs",
];

const SQL: &[&str] = &["SELECT ", "ORDER BY", " AND ", " TABLE ", "IS NULL", "= ?"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Documentation,
    Help,
    Tools,
    Messages,
}

/// A piece of prose: a paragraph, a table cell, a list item, a message.
struct Block {
    text: String,
    heading: bool,
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

/// A row of `docs/style/words.txt`.
struct Avoided {
    at_start: bool,
    words: Vec<String>,
    instead: String,
    fine: Vec<Vec<String>>,
}

/// Figures and findings of one file, or of the sources of one crate.
struct Report {
    kind: Kind,
    name: String,
    sentences: usize,
    words: usize,
    listed: Vec<String>,
    long: Vec<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn words_of(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '-' && c != '_')
        .filter(|word| word.starts_with(char::is_alphabetic))
        .map(str::to_lowercase)
        .collect()
}

fn avoided(list: &str) -> Vec<Avoided> {
    let rows = list.lines().map(str::trim);
    let rows = rows.filter(|row| !row.is_empty() && !row.starts_with('#'));
    rows.map(|row| {
        let mut cells = row.split('|').map(str::trim);
        let expression = cells.next().unwrap();
        let instead = cells.next().expect("what to write instead").to_owned();
        let fine = cells.next().unwrap_or_default().split(',');
        Avoided {
            at_start: expression.starts_with('^'),
            words: words_of(expression),
            instead,
            fine: fine
                .map(words_of)
                .filter(|words| !words.is_empty())
                .collect(),
        }
    })
    .collect()
}

impl Avoided {
    /// How often it occurs in a sentence.
    fn count(&self, words: &[String], plain: bool) -> usize {
        if self.at_start {
            let begins = words.len() > self.words.len() && words.starts_with(&self.words);
            return usize::from(plain && begins);
        }
        let places = words.windows(self.words.len()).enumerate();
        let places = places.filter(|(_, found)| *found == self.words);
        places.filter(|(at, _)| !self.is_fine(words, *at)).count()
    }

    fn is_fine(&self, words: &[String], at: usize) -> bool {
        self.fine.iter().any(|phrase| {
            let offset = phrase
                .windows(self.words.len())
                .position(|part| part == self.words)
                .expect("the phrase contains the expression");
            at.checked_sub(offset)
                .and_then(|start| words.get(start..))
                .is_some_and(|rest| rest.starts_with(phrase))
        })
    }
}

/// Up to the next `.`, `!`, `?`, `:` or `;` that ends a word.
fn sentences(text: &str) -> Vec<&str> {
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

fn report(kind: Kind, name: &str, blocks: &[Block], list: &[Avoided]) -> Report {
    let mut report = Report {
        kind,
        name: name.to_owned(),
        sentences: 0,
        words: 0,
        listed: Vec::new(),
        long: Vec::new(),
    };
    for block in blocks {
        for sentence in sentences(&block.text) {
            let words = words_of(sentence);
            let plain = !block.heading && !sentence.ends_with('?');
            for row in list {
                let found = row.count(&words, plain);
                let what = format!("`{}` → {}: {sentence}", row.words.join(" "), row.instead);
                report.listed.extend(std::iter::repeat_n(what, found));
            }
            if words.len() > 2 {
                report.sentences += 1;
                report.words += words.len();
            }
            if words.len() > LONGEST {
                let what = format!("{} words: {sentence}", words.len());
                report.long.push(what);
            }
        }
    }
    report
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

fn markdown(page: &str) -> Vec<Block> {
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
fn help(page: &str) -> Vec<Block> {
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
fn messages(source: &str) -> Vec<Block> {
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

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "tests" {
            found.extend(sources(&path));
        } else if name.ends_with(".rs") && name != "tests.rs" {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn pages() -> Vec<String> {
    let names = fs::read_dir(root().join("docs")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut pages: Vec<String> = names
        .filter(|name| name.ends_with(".md"))
        .map(|name| format!("docs/{name}"))
        .chain(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(str::to_owned))
        .collect();
    pages.sort();
    pages
}

fn reports() -> Vec<Report> {
    let read = |name: &str| fs::read_to_string(root().join(name)).unwrap();
    let list = avoided(&read("docs/style/words.txt"));
    let mut reports = Vec::new();
    for name in pages() {
        let page = read(&name);
        let (kind, blocks) = match name.as_str() {
            "docs/cli.md" => (Kind::Help, help(&page)),
            "docs/env.md" => (Kind::Help, markdown(&page)),
            "docs/mcp-tools.md" => (Kind::Tools, markdown(&page)),
            _ => (Kind::Documentation, markdown(&page)),
        };
        reports.push(report(kind, &name, &blocks, &list));
    }
    for krate in ["core", "engine", "adapters", "cli"] {
        let folder = format!("crates/mnemon-{krate}/src");
        let mut blocks = Vec::new();
        for path in sources(&root().join(&folder)) {
            if !DATA
                .iter()
                .any(|data| path.to_str().unwrap().ends_with(data))
            {
                blocks.extend(messages(&fs::read_to_string(&path).unwrap()));
            }
        }
        reports.push(report(Kind::Messages, &folder, &blocks, &list));
    }
    reports
}

#[test]
fn texts_are_plain_and_short() {
    let reports = reports();
    let mut wrong = Vec::new();
    println!("{:30} sentences  mean  listed  long", "");
    for report in &reports {
        let Report {
            name, listed, long, ..
        } = report;
        let mean = report.words as f64 / report.sentences.max(1) as f64;
        println!(
            "{name:30} {:9} {mean:5.1} {:7} {:5}",
            report.sentences,
            listed.len(),
            long.len()
        );
        let remaining = REMAINING.iter().find(|(known, ..)| known == name);
        let (_, most_listed, most_long) = remaining.copied().unwrap_or_default();
        for (found, most) in [(listed, most_listed), (long, most_long)] {
            if found.len() > most {
                let found = found.join("\n  ");
                wrong.push(format!("{name}: at most {most} allowed, found\n  {found}"));
            }
        }
    }
    for (kind, most) in MEANS {
        let of_kind = || reports.iter().filter(|report| report.kind == *kind);
        let sentences: usize = of_kind().map(|report| report.sentences).sum();
        let words: usize = of_kind().map(|report| report.words).sum();
        let mean = words as f64 / sentences as f64;
        println!("{kind:?}: {sentences} sentences, {mean:.1} words on average");
        if mean > *most {
            wrong.push(format!(
                "{kind:?}: {mean:.1} words per sentence, at most {most}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn listed_expressions_and_long_sentences_are_found() {
    let list = avoided("told | shown\n^what | name the subject\nis no | is not | there is no\n");
    let listed = |page: &str| {
        report(Kind::Documentation, "", &markdown(page), &list)
            .listed
            .len()
    };
    assert_eq!(listed("It is told to agents. What it says is no use."), 3);
    assert_eq!(
        listed("## What it says\n\nWhat is it? There is no file."),
        0
    );
    assert_eq!(listed("```\ntold\n```\n\nThe field `told` is set."), 0);
    assert_eq!(listed("| a | told |\n- wrapped lines are\n  told"), 2);
    let long = format!("{}.", "word ".repeat(LONGEST + 1).trim());
    let long = report(Kind::Documentation, "", &markdown(&long), &list).long;
    assert_eq!(long.len(), 1);
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
