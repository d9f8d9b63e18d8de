//! Documentation, help, tool descriptions and messages are plain English: short sentences, and none
//! of the expressions in `docs/style/words.txt`. `cargo test -p mnemon-cli --test it readability --
//! --nocapture` prints the figures.
//!
//! A sentence ends at `.`, `!`, `?`, `:` or `;`. Code, inline code and placeholders count as one word
//! and are not searched.

mod prose;

use std::fs;
use std::path::{Path, PathBuf};

use prose::{Block, help, markdown, messages, sentences, words_of};

/// The longest sentence, in words.
const LONGEST: usize = 40;

/// The largest mean sentence length for each kind of text, in words.
const MEANS: &[(Kind, f64)] = &[
    (Kind::Documentation, 10.5),
    (Kind::Help, 7.8),
    (Kind::Tools, 7.6),
    (Kind::Messages, 7.0),
];

/// Sources whose string literals are data (word lists, rules, examples) or prompts, not messages.
const DATA: &[&str] = &[
    "mnemon-core/src/secrets/block.rs",
    "mnemon-core/src/secrets/named.rs",
    "mnemon-core/src/secrets/rules.rs",
    "mnemon-core/src/secrets/spoken.rs",
    "mnemon-core/src/secrets/value.rs",
    "mnemon-core/src/secrets/words.rs",
    "search/text/irregular.rs",
    "search/text/stop.rs",
    "window/prompts.rs",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Documentation,
    Help,
    Tools,
    Messages,
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
    let mut pages = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"]
        .map(str::to_owned)
        .to_vec();
    for folder in ["docs", "docs/decisions"] {
        let names = fs::read_dir(root().join(folder)).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let names = names.filter(|name| name.ends_with(".md"));
        pages.extend(names.map(|name| format!("{folder}/{name}")));
    }
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
    for krate in [
        "mnemon-core",
        "mnemon-engine",
        "mnemon-adapters",
        "mnemon-operations",
        "mnemon-server",
        "mnemon-cli",
        "mnemon",
    ] {
        let folder = format!("crates/{krate}/src");
        let is_data = |path: &Path| DATA.iter().any(|data| path.ends_with(data));
        let paths = sources(&root().join(&folder)).into_iter();
        let blocks: Vec<Block> = paths
            .filter(|path| !is_data(path))
            .flat_map(|path| messages(&fs::read_to_string(path).unwrap()))
            .collect();
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
        for found in [listed, long].into_iter().filter(|found| !found.is_empty()) {
            wrong.push(format!("{name}:\n  {}", found.join("\n  ")));
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
