//! Commands and outputs in Markdown and in help texts.

use std::ops::Range;

/// A command as a page shows it.
pub(super) struct Shown {
    pub(super) command: String,
    /// The output below it; none where the block has commands only.
    pub(super) output: Option<String>,
    /// The lines of the page that hold the output.
    lines: Range<usize>,
}

/// Languages of blocks without commands.
const OTHER: &[&str] = &[
    "",
    "json",
    "python",
    "rust",
    "rust,no_run",
    "sql",
    "text",
    "toml",
];

/// The commands of the blocks marked `sh` and `console`, in order.
pub(super) fn blocks(name: &str, text: &str) -> Vec<Shown> {
    let mut shown = Vec::new();
    let mut language: Option<&str> = None;
    let mut first = 0;
    let lines: Vec<&str> = text.lines().collect();
    for (number, line) in lines.iter().enumerate() {
        match (line.strip_prefix("```"), language) {
            (Some(word), None) => (language, first) = (Some(word), number + 1),
            (Some(_), Some(word)) => {
                let block = &lines[first..number];
                match word {
                    "sh" => shown.extend(commands(block)),
                    "console" => shown.extend(session(block, first)),
                    _ => assert!(OTHER.contains(&word), "{name}: a block of `{word}`"),
                }
                let is_command =
                    |line: &&str| line.starts_with("mnemon ") || line.starts_with("$ ");
                let hides = OTHER.contains(&word) && block.iter().any(is_command);
                assert!(
                    !hides,
                    "{name}:{first}: mark the commands as `sh` or `console`"
                );
                language = None;
            }
            (None, _) => {}
        }
    }
    shown
}

fn alone(command: String) -> Shown {
    Shown {
        command,
        output: None,
        lines: 0..0,
    }
}

/// The commands of a block that shows no output. A line that ends with `\` goes on in the next one.
fn commands(lines: &[&str]) -> Vec<Shown> {
    let text = lines.join("\n").replace("\\\n", " ");
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| alone(line.to_owned())).collect()
}

/// The commands, after `$`, and outputs of a block. It begins in this line of the page.
fn session(lines: &[&str], first: usize) -> Vec<Shown> {
    let mut shown: Vec<Shown> = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let number = first + number;
        match (line.strip_prefix("$ "), shown.last_mut()) {
            (Some(command), _) => shown.push(Shown {
                command: command.to_owned(),
                output: Some(String::new()),
                lines: number + 1..number + 1,
            }),
            (None, Some(Shown { output, lines, .. })) => {
                let output = output.get_or_insert_default();
                output.push_str(line);
                output.push('\n');
                lines.end = number + 1;
            }
            (None, None) => panic!("line {number}: output without a command"),
        }
    }
    shown
}

/// The commands below `Examples:`; a comment stands two or more spaces behind a command.
pub(super) fn examples(help: &str) -> Vec<Shown> {
    let Some((_, examples)) = help.split_once("Examples:\n") else {
        return Vec::new();
    };
    let examples = examples.split("\n\n").next().unwrap_or_default();
    let examples = examples.replace("\\\n", " ");
    let one = |line: &str| {
        let line = line.trim();
        let comment = line
            .find("  ")
            .filter(|_| !line.contains(" --scope dialog "));
        alone(
            line.get(..comment.unwrap_or(line.len()))
                .unwrap()
                .to_owned(),
        )
    };
    examples.lines().map(one).collect()
}

/// Whether an output is what a page shows. A line with `…` alone stands for any number of lines.
pub(super) fn agrees(shown: &str, printed: &str) -> bool {
    let shown: Vec<&str> = shown.trim_end().lines().map(str::trim_end).collect();
    let printed: Vec<&str> = printed.trim_end().lines().map(str::trim_end).collect();
    lines_agree(&shown, &printed)
}

fn lines_agree(shown: &[&str], printed: &[&str]) -> bool {
    match shown {
        [] => printed.is_empty(),
        ["…", rest @ ..] => (0..=printed.len()).any(|skip| lines_agree(rest, &printed[skip..])),
        [line, rest @ ..] => printed.first() == Some(line) && lines_agree(rest, &printed[1..]),
    }
}

/// The page with the outputs that differ; those that leave out lines stay as they are.
pub(super) fn rewrite(text: &str, shown: &[Shown], outputs: &[Option<String>]) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    for (shown, printed) in shown.iter().zip(outputs).rev() {
        let is_cut = |text: &String| text.lines().any(|line| line == "…");
        let is_whole = shown.output.as_ref().is_some_and(|text| !is_cut(text));
        if let Some(printed) = printed.as_ref().filter(|_| is_whole) {
            lines.splice(shown.lines.clone(), printed.trim_end().lines());
        }
    }
    lines.join("\n") + "\n"
}

/// Commands in running text: code between backticks that begins with the name of the program.
pub(super) fn inline_commands(text: &str) -> Vec<&str> {
    let mut in_block = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.starts_with("```") {
            in_block = !in_block;
        } else if !in_block {
            let spans = line.split('`').skip(1).step_by(2);
            found.extend(spans.filter(|span| span.starts_with("mnemon ")));
        }
    }
    found
}
