//! Every command of README.md, of docs/ and of the examples in the help is run in an empty folder with
//! a store of its own, and its output is compared. A block marked `console` shows the output, which
//! must be what the program prints; the output of the other commands is in the snapshots.
//! `UPDATE_DOCS=1` writes the outputs into the pages, `INSTA_UPDATE=always` into the snapshots.

mod markdown;
mod rules;
mod shell;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use markdown::{Shown, blocks};
use mnemon_cli::cli;
use rules::{RULES, Rule, setup};
use shell::Shell;

/// The commands of one page, or of one help text.
struct Page {
    name: String,
    commands: Vec<Shown>,
}

/// A page after its commands have run.
struct Transcript {
    text: String,
    /// Differences between the page and what was printed.
    wrong: Vec<String>,
    /// Numbers of the rules that applied.
    applied: BTreeSet<usize>,
    /// The outputs that differ from the page, as they were printed.
    outputs: Vec<Option<String>>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The names and texts of README.md and of every page under docs/.
fn texts() -> Vec<(String, String)> {
    let mut names = vec!["README.md".to_owned()];
    let mut folders = vec!["docs".to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{folder}/{}", entry.file_name().display());
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(name),
                false if name.ends_with(".md") => names.push(name),
                false => {}
            }
        }
    }
    names.sort();
    let read = |name: String| {
        let text = std::fs::read_to_string(root().join(&name)).unwrap();
        (name, text)
    };
    names.into_iter().map(read).collect()
}

/// The pages that have commands.
fn pages() -> Vec<Page> {
    let read = |(name, text): (String, String)| Page {
        commands: blocks(&name, &text),
        name,
    };
    let pages = texts().into_iter().map(read);
    pages.filter(|page| !page.commands.is_empty()).collect()
}

/// The examples of the help of each command; docs/cli.md shows the same text.
fn help_texts() -> Vec<Page> {
    let mut pages = Vec::new();
    let mut waiting = vec![cli::command()];
    while let Some(command) = waiting.pop() {
        let help = command.get_after_help().map(ToString::to_string);
        let commands = markdown::examples(&help.unwrap_or_default());
        if !commands.is_empty() {
            let name = command.get_bin_name().unwrap_or(command.get_name());
            let name = format!("help {name}");
            pages.push(Page { name, commands });
        }
        let prefix = command
            .get_bin_name()
            .unwrap_or(command.get_name())
            .to_owned();
        let inner = command.get_subcommands().cloned();
        waiting.extend(inner.map(|inner| {
            let name = format!("{prefix} {}", inner.get_name());
            inner.bin_name(name)
        }));
    }
    pages.sort_by(|a, b| a.name.cmp(&b.name));
    pages
}

impl Page {
    fn run(&self) -> Transcript {
        let mut shell = Shell::new();
        for command in setup(&self.name) {
            let ran = shell.run(command);
            assert_eq!(ran.code, 0, "{}: {command}\n{}", self.name, ran.output);
        }
        let mut transcript = Transcript {
            text: String::new(),
            wrong: Vec::new(),
            applied: BTreeSet::new(),
            outputs: Vec::new(),
        };
        for shown in &self.commands {
            self.step(shown, &mut shell, &mut transcript);
        }
        transcript
    }

    fn step(&self, shown: &Shown, shell: &mut Shell, transcript: &mut Transcript) {
        let mut rules = RULES.iter().enumerate();
        let rule = rules.find(|(_, rule)| rule.applies(&self.name, &shown.command));
        transcript.applied.extend(rule.map(|(number, _)| number));
        let rule = rule.map(|(_, rule)| rule);
        let Some(ran) = shell.follow(rule, &self.name, &shown.command) else {
            transcript.outputs.push(None);
            return;
        };
        let expected = rule.map_or(0, Rule::exit_code);
        let output = shell.redact(&ran.output);
        if ran.code != expected {
            let (name, command, code) = (&self.name, &shown.command, ran.code);
            let wrong = format!("{name}: `{command}` exits with {code}:\n{output}");
            transcript.wrong.push(wrong);
        }
        let expected = shown.output.as_ref().map(|output| shell.redact(output));
        let expected = expected.filter(|expected| !markdown::agrees(expected, &output));
        if let Some(expected) = &expected {
            let (name, command) = (&self.name, &shown.command);
            let wrong = format!("{name}: `{command}` shows\n{expected}\nbut prints\n{output}");
            transcript.wrong.push(wrong);
        }
        let line = format!("$ {}\n{output}\n", shown.command);
        transcript.text.push_str(&line);
        let printed = expected.map(|_| shell.shorten(&ran.output));
        transcript.outputs.push(printed);
    }
}

/// Runs the pages on all processors.
fn run(pages: &[Page]) -> Vec<Transcript> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let work = || {
        while let Some(page) = pages.get(next.fetch_add(1, Ordering::Relaxed)) {
            let transcript = page.run();
            done.lock().unwrap().push((page.name.clone(), transcript));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(work);
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by(|a, b| a.0.cmp(&b.0));
    done.into_iter().map(|(_, transcript)| transcript).collect()
}

/// That the pages are right, and that each rule for them is needed.
fn check(pages: &[Page], transcripts: &[Transcript], is_ours: impl Fn(&str) -> bool) {
    let wrong: Vec<&String> = transcripts.iter().flat_map(|page| &page.wrong).collect();
    let wrong: Vec<&str> = wrong.into_iter().map(String::as_str).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    let applied = |number: &usize| transcripts.iter().any(|page| page.applied.contains(number));
    for (number, rule) in RULES.iter().enumerate() {
        assert!(rule.has_reason(), "{}: {}", rule.page, rule.command);
        let unused = is_ours(rule.page) && !applied(&number);
        assert!(!unused, "{}: no command `{}`", rule.page, rule.command);
    }
    for name in rules::pages_with_setup().filter(|name| is_ours(name)) {
        let is_there = pages.iter().any(|page| page.name == name);
        assert!(is_there, "{name} has a setup, but no commands");
    }
}

#[test]
fn the_commands_of_the_documentation_print_what_it_shows() {
    let pages = pages();
    let transcripts = run(&pages);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        for (page, transcript) in pages.iter().zip(&transcripts) {
            let path = root().join(&page.name);
            let text = std::fs::read_to_string(&path).unwrap();
            let text = markdown::rewrite(&text, &page.commands, &transcript.outputs);
            std::fs::write(&path, text).unwrap();
        }
    }
    check(&pages, &transcripts, |name| !name.starts_with("help "));
    for (page, transcript) in pages.iter().zip(&transcripts) {
        let name = page.name.trim_end_matches(".md").replace('/', "-");
        insta::assert_snapshot!(name, transcript.text);
    }
}

#[test]
fn the_examples_of_the_help_work() {
    let pages = help_texts();
    assert!(pages.len() > 30, "{} help texts have examples", pages.len());
    let transcripts = run(&pages);
    let text = |(page, transcript): (&Page, &Transcript)| {
        format!("=== {}\n\n{}", page.name, transcript.text)
    };
    let text: Vec<String> = pages.iter().zip(&transcripts).map(text).collect();
    check(&pages, &transcripts, |name| name.starts_with("help "));
    insta::assert_snapshot!(text.join("\n"));
}

/// Names of commands and options in running text exist, too.
#[test]
fn commands_in_the_text_exist() {
    let mut unknown = Vec::new();
    let mut seen = 0;
    for (name, text) in texts() {
        for span in markdown::inline_commands(&text) {
            seen += 1;
            unknown.extend(unknown_part(span).map(|part| format!("{name}: `{span}`: {part}")));
        }
    }
    assert!(seen > 100, "{seen} commands were found");
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
}

/// The first subcommand or option of a command that does not exist.
fn unknown_part(span: &str) -> Option<String> {
    let mut command = cli::command();
    command.build();
    let mut words = span.split_whitespace().skip(1).peekable();
    while let Some(word) = words.peek() {
        match command.find_subcommand(word) {
            Some(inner) => command = inner.clone(),
            None => break,
        }
        words.next();
    }
    let has_inner = command.get_subcommands().next().is_some();
    if let Some(word) = words.peek().filter(|_| has_inner) {
        let is_word = word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
        if is_word && !word.starts_with('-') {
            return Some((*word).to_owned());
        }
    }
    let is_known = |option: &str| {
        let mut args = command.get_arguments();
        args.any(|arg| {
            let aliases = arg.get_all_aliases().unwrap_or_default();
            arg.get_long() == Some(option) || aliases.contains(&option)
        })
    };
    let options = words.filter_map(|word| word.strip_prefix("--"));
    let options = options.map(|word| word.split(['=', '|', ',']).next().unwrap_or_default());
    let mut options = options.filter(|word| !word.is_empty());
    options.find(|option| !is_known(option)).map(str::to_owned)
}
