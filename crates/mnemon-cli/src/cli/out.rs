//! The only place that writes to the standard streams (but for progress bars and prompts).

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

use comfy_table::{ContentArrangement, Table, presets};
use mnemon_core::Notices;
use serde::Serialize;
use serde_json::{Value, json};

use super::text;
use mnemon_operations::Error;
use mnemon_operations::env_vars;

/// How wide text is when nobody can say.
const WIDTH: usize = 100;

/// The way out: text for people, or JSON for programs.
pub(super) struct Out {
    pub(super) json: bool,
    /// Print nothing on stderr but errors.
    pub(super) quiet: bool,
    /// Columns there are for text.
    pub(super) width: usize,
    /// What the calls of this command could not do; printed with the answer.
    pub(super) notices: Notices,
    stdout: BufWriter<Stdout>,
}

impl Out {
    pub(super) fn new(json: bool, quiet: bool) -> Self {
        Self {
            json,
            quiet,
            width: width(),
            notices: Notices::default(),
            stdout: BufWriter::new(io::stdout()),
        }
    }

    /// Whether a person reads the output as it is written.
    pub(super) fn is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// A line of text.
    pub(super) fn line(&mut self, line: impl Display) -> Result<(), Error> {
        writeln!(self.stdout, "{line}").map_err(Error::Output)
    }

    /// How the page after this one is asked for, if there is one.
    pub(super) fn next_page(
        &mut self,
        flag: &str,
        next: Option<impl Display>,
    ) -> Result<(), Error> {
        match next {
            Some(next) => self.line(format!("\nThere is more: {flag} {next}")),
            None => Ok(()),
        }
    }

    /// How a commit is taken back, if there was one.
    pub(super) fn undo_with(&mut self, commit: Option<u64>) -> Result<(), Error> {
        match commit {
            Some(commit) => self.line(format!("undo with: mnemon undo {commit}")),
            None => Ok(()),
        }
    }

    /// The answer in JSON, on a line of its own. The notices so far are its field `notices`.
    pub(super) fn json(&mut self, value: &impl Serialize) -> Result<(), Error> {
        let mut notices = self.notices.take();
        if notices.is_empty() {
            return self.json_line(value);
        }
        let mut json = serde_json::to_value(value).map_err(Error::no_json)?;
        let there = json.as_object_mut().map(|fields| fields.entry("notices"));
        match there.map(|there| there.or_insert(json!([]))) {
            Some(Value::Array(there)) => there.extend(notices.drain(..).map(Value::String)),
            _ => self.notices.extend(notices),
        }
        self.line(json)
    }

    /// One of several records in JSON, exactly as it is, on a line of its own.
    pub(super) fn json_line(&mut self, value: &impl Serialize) -> Result<(), Error> {
        let json = serde_json::to_string(value).map_err(Error::no_json)?;
        self.line(json)
    }

    /// A table without lines. Cells must be clean and cut already.
    pub(super) fn table(&mut self, header: &[&str], rows: Vec<Vec<String>>) -> Result<(), Error> {
        table_lines(header, rows)
            .iter()
            .try_for_each(|line| self.line(line))
    }

    /// Bytes as they are.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.stdout.write_all(bytes).map_err(Error::Output)
    }

    pub(super) fn flush(&mut self) -> Result<(), Error> {
        self.stdout.flush().map_err(Error::Output)
    }

    /// Prints the notices that no answer has carried.
    pub(super) fn print_notices(&self) {
        self.notes(&self.notices.take());
    }

    /// Several such sentences.
    pub(super) fn notes(&self, notes: &[String]) {
        notes.iter().for_each(|note| self.note(note));
    }

    /// Something worth knowing that is not the answer. In JSON mode it is JSON as well, so that
    /// stderr stays readable by programs.
    pub(super) fn note(&self, note: &str) {
        if self.quiet {
            return;
        }
        if self.json {
            error_line(serde_json::json!({ "note": note }));
        } else {
            error_line(format!("note: {}", text::one_line(note)));
        }
    }
}

/// The lines of a table that has none drawn.
pub(super) fn table_lines(header: &[&str], rows: Vec<Vec<String>>) -> Vec<String> {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    if !header.is_empty() {
        table.set_header(header);
    }
    table.add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    let text = table.to_string();
    text.lines()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

/// Logs requests on stderr, a line for people each.
pub(super) fn log_lines() {
    let subscriber = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_target(false);
    // Another subscriber is set by nobody but a test.
    let _ = tracing::subscriber::set_global_default(subscriber.finish());
}

/// The same as objects for programs.
pub(super) fn log_json() {
    let subscriber = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_target(false);
    let _ = tracing::subscriber::set_global_default(subscriber.json().flatten_event(true).finish());
}

/// A line on stderr. When even that fails there is nobody left to tell.
pub(super) fn error_line(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

fn width() -> usize {
    let terminal = console::Term::stdout();
    let columns = || std::env::var(env_vars::COLUMNS.name).ok()?.parse().ok();
    let wide = match terminal.size_checked() {
        Some((_, columns)) if io::stdout().is_terminal() => Some(usize::from(columns)),
        _ => columns(),
    };
    wide.unwrap_or(WIDTH).clamp(20, 1000)
}
