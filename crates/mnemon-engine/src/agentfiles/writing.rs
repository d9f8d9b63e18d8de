//! Entries as they are written: the labels and the order of the document.

use std::fmt::Write as _;

use mnemon_core::Invalid;
use mnemon_core::markdown::{Day, Document};
use serde::{Deserialize, Serialize};

use super::names::check_line;

/// Something that was decided and will matter later.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Decision {
    pub title: String,
    /// `2025-12-31`; today when it is left out.
    pub date: Option<String>,
    pub context: String,
    pub decision: String,
    pub reasons: Vec<String>,
    pub alternatives: Vec<String>,
    pub impact: Vec<String>,
    pub reversible: Option<String>,
}

/// A pattern that was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Learning {
    pub title: String,
    /// `2025-12-31`; today when it is left out.
    pub date: Option<String>,
    pub pattern: String,
    pub code: Option<Code>,
    pub why: String,
}

/// An example.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Code {
    pub language: String,
    pub text: String,
}

/// What is kept of a complex session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SessionLog {
    pub summary: String,
    pub tasks: Vec<String>,
    pub changes: Vec<FileChange>,
    pub issues: Vec<Issue>,
    pub follow_up: Vec<String>,
}

/// A file and what was done to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileChange {
    pub file: String,
    pub change: String,
}

/// A problem that came up, and how it was solved.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Issue {
    pub title: String,
    pub problem: String,
    pub solution: String,
}

pub(super) const DECISIONS: &str = "# Key Decisions Log | Nhật ký quyết định quan trọng\n\n---\n";
pub(super) const LEARNINGS: &str = "# Patterns Learned | Các pattern đã học\n\n\
    > Accumulated insights from this codebase\n> Các insight tích lũy từ codebase này\n\n---\n";

/// The day that is said, or today.
pub(super) fn day(said: Option<&str>, today: Day) -> Result<Day, Invalid> {
    said.map_or(Ok(today), str::parse)
}

impl Decision {
    pub(super) fn print(&self, today: Day) -> Result<String, Invalid> {
        let mut entry = Printer::begin("title", &self.title, day(self.date.as_deref(), today)?)?;
        require("decision", &self.decision)?;
        entry.block("Context | Bối cảnh", &self.context);
        entry.block("Decision | Quyết định", &self.decision);
        entry.list("Reason | Lý do", "reasons", &self.reasons)?;
        entry.list(
            "Alternatives Considered | Các phương án đã xem xét",
            "alternatives",
            &self.alternatives,
        )?;
        entry.list("Impact | Ảnh hưởng", "impact", &self.impact)?;
        entry.value(
            "Reversible | Có thể đảo ngược",
            "reversible",
            self.reversible.as_deref(),
        )?;
        entry.finish("decision")
    }
}

impl Learning {
    pub(super) fn print(&self, today: Day) -> Result<String, Invalid> {
        let mut entry = Printer::begin("title", &self.title, day(self.date.as_deref(), today)?)?;
        require("pattern", &self.pattern)?;
        entry.block("Pattern | Mẫu", &self.pattern);
        if let Some(code) = &self.code {
            if code.language.contains(['`', '\n', '\r']) {
                let what = "is the word behind the fence; leave out backticks and line breaks";
                return Err(Invalid::new("language", what));
            }
            entry.block("Code | Code", &fenced(code));
        }
        entry.block("Why | Tại sao", &self.why);
        entry.finish("learning")
    }
}

/// The code between fences that are longer than any run of backticks in it.
fn fenced(code: &Code) -> String {
    let runs = code.text.split(|c| c != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or(0).max(2) + 1);
    let text = code.text.trim_end_matches(['\n', '\r']);
    format!("{fence}{}\n{text}\n{fence}", code.language.trim())
}

impl SessionLog {
    /// The archive of a session, with a number if it is not the first of its day.
    pub(super) fn print(&self, day: Day, number: usize) -> Result<String, Invalid> {
        require("summary", &self.summary)?;
        let count = if number > 1 {
            format!(" ({number})")
        } else {
            String::new()
        };
        let mut text = format!(
            "# Session: {day}{count}\n\n> Archived session for reference\n> Phiên làm việc lưu trữ để tham khảo\n\n---\n"
        );
        let mut headings = 1;
        let mut section = |title: &str, body: String| {
            if !body.trim().is_empty() {
                headings += 1;
                let _ = write!(text, "\n## {title}\n\n{}\n\n---\n", body.trim_end());
            }
        };
        section("Summary | Tóm tắt", self.summary.trim().to_owned());
        section(
            "Tasks Completed | Task hoàn thành",
            numbered(&self.tasks, "✅ ")?,
        );
        section(
            "Key Changes | Thay đổi chính",
            changes_table("Change", &self.changes)?,
        );
        section(
            "Issues Encountered | Vấn đề gặp phải",
            issues(&self.issues)?,
        );
        section(
            "Follow-up Items | Việc cần theo dõi",
            bullets("follow_up", "- [ ] ", &self.follow_up)?,
        );
        check_one("summary", &text, headings)?;
        Ok(text)
    }
}

pub(super) fn changes_table(column: &str, changes: &[FileChange]) -> Result<String, Invalid> {
    if changes.is_empty() {
        return Ok(String::new());
    }
    let mut text = format!("| File | {column} |\n|------|--------|\n");
    for change in changes {
        check_line("file", &change.file)?;
        check_line("change", &change.change)?;
        let cell = |text: &str| text.trim().replace('|', "\\|");
        let file = cell(change.file.trim_matches('`'));
        let _ = writeln!(text, "| `{file}` | {} |", cell(&change.change));
    }
    Ok(text)
}

fn issues(issues: &[Issue]) -> Result<String, Invalid> {
    let mut text = String::new();
    for (n, issue) in issues.iter().enumerate() {
        for (field, said) in [
            ("issue", &issue.title),
            ("problem", &issue.problem),
            ("solution", &issue.solution),
        ] {
            check_line(field, said)?;
        }
        let Issue {
            title,
            problem,
            solution,
        } = issue;
        let _ = write!(
            text,
            "{}. **{title}**\n   - Problem: {problem}\n   - Solution: {solution}\n\n",
            n + 1
        );
    }
    Ok(text)
}

pub(super) fn numbered(lines: &[String], mark: &str) -> Result<String, Invalid> {
    let mut text = String::new();
    for (n, line) in lines.iter().enumerate() {
        check_line("steps", line)?;
        let _ = writeln!(text, "{}. {mark}{}", n + 1, line.trim());
    }
    Ok(text)
}

fn bullets(field: &str, mark: &str, lines: &[String]) -> Result<String, Invalid> {
    let mut text = String::new();
    for line in lines {
        check_line(field, line)?;
        let _ = writeln!(text, "{mark}{}", line.trim());
    }
    Ok(text)
}

fn require(field: &str, text: &str) -> Result<(), Invalid> {
    match text.trim().is_empty() {
        true => Err(Invalid::new(field, "is empty; say it in a sentence")),
        false => Ok(()),
    }
}

/// An entry that is being put together.
pub(super) struct Printer(String);

impl Printer {
    fn begin(field: &str, title: &str, day: Day) -> Result<Self, Invalid> {
        Self::heading(field, title, &format!("{day}: "))
    }

    /// `## {lead}{title}`
    pub(super) fn heading(field: &str, title: &str, lead: &str) -> Result<Self, Invalid> {
        check_line(field, title)?;
        Ok(Self(format!("## {lead}{}\n", title.trim())))
    }

    /// A label with its text below.
    pub(super) fn block(&mut self, label: &str, text: &str) {
        if !text.trim().is_empty() {
            let text = text.trim_matches(['\n', '\r']).trim_end();
            // A table stands apart from what is above it.
            let gap = if text.starts_with('|') { "\n" } else { "" };
            let _ = write!(self.0, "\n**{label}**:\n{gap}{text}\n");
        }
    }

    pub(super) fn list(
        &mut self,
        label: &str,
        field: &str,
        lines: &[String],
    ) -> Result<(), Invalid> {
        self.block(label, &bullets(field, "- ", lines)?);
        Ok(())
    }

    /// A label with its text beside it.
    pub(super) fn value(
        &mut self,
        label: &str,
        field: &str,
        text: Option<&str>,
    ) -> Result<(), Invalid> {
        if let Some(text) = text {
            check_line(field, text)?;
            let _ = write!(self.0, "\n**{label}**: {}\n", text.trim());
        }
        Ok(())
    }

    /// The entry, if it is one: a heading or an open fence in it would run into the next.
    pub(super) fn finish(self, field: &str) -> Result<String, Invalid> {
        let text = format!("{}\n---\n", self.0);
        check_one(field, &text, 1)?;
        Ok(text)
    }
}

/// That the text has this many headings, and that what is written after it is read as such.
pub(super) fn check_one(field: &str, text: &str, headings: usize) -> Result<(), Invalid> {
    let probed = Document::parse(format!("{text}\n## Probe\n"));
    let sections = probed.sections();
    let closed = sections.last().is_some_and(|last| last.title == "Probe");
    if !closed {
        let what = "leaves a code fence or an HTML comment open; close it";
        return Err(Invalid::new(field, what));
    }
    if sections.len() != headings + 1 {
        let what = "holds a heading of its own, which would begin another entry; \
            put it into a code fence or write it without the #";
        return Err(Invalid::new(field, what));
    }
    Ok(())
}
