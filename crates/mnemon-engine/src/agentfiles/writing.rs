//! Entries as they are written: the labels and the order of the document.

use std::fmt::Write as _;

use mnemon_core::Invalid;
use mnemon_core::markdown::{Day, Document, Label, Language, language_of};
use serde::{Deserialize, Serialize};

use super::context;
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
    /// Who proposed it, for a team.
    pub proposed_by: Option<String>,
    /// Who approved it, for a team.
    pub approved_by: Option<String>,
    /// What others said against it, for a team.
    pub dissent: Vec<String>,
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

const CONTEXT: Label = Label::new("Context", "Bối cảnh");
const DECISION: Label = Label::new("Decision", "Quyết định");
const REASON: Label = Label::new("Reason", "Lý do");
const REASONING: Label = Label::new("Reasoning", "Lập luận");
const ALTERNATIVES: Label = Label::new("Alternatives Considered", "Các phương án đã xem xét");
const IMPACT: Label = Label::new("Impact", "Ảnh hưởng");
const TEAM_IMPACT: Label = Label::new("Implementation Impact", "Ảnh hưởng khi triển khai");
const REVERSIBLE: Label = Label::new("Reversible", "Có thể đảo ngược");
const PROPOSED: Label = Label::new("Proposed by", "Người đề xuất");
const APPROVED: Label = Label::new("Approved by", "Người phê duyệt");
const DISSENT: Label = Label::new("Dissenting Views", "Ý kiến phản đối");
const PATTERN: Label = Label::new("Pattern", "Mẫu");
const CODE: Label = Label::new("Code", "Code");
const WHY: Label = Label::new("Why", "Tại sao");
const SUMMARY: Label = Label::new("Summary", "Tóm tắt");
const COMPLETED: Label = Label::new("Tasks Completed", "Task hoàn thành");
const CHANGES: Label = Label::new("Key Changes", "Thay đổi chính");
const ISSUES: Label = Label::new("Issues Encountered", "Vấn đề gặp phải");
const FOLLOW_UP: Label = Label::new("Follow-up Items", "Việc cần theo dõi");
const DECISIONS: Label = Label::new("Key Decisions Log", "Nhật ký quyết định quan trọng");
const LEARNINGS: Label = Label::new("Patterns Learned", "Các pattern đã học");
const INSIGHTS: Label = Label::new(
    "Accumulated insights from this codebase",
    "Các insight tích lũy từ codebase này",
);
const ARCHIVED: Label = Label::new(
    "Archived session for reference",
    "Phiên làm việc lưu trữ để tham khảo",
);
/// A label that is English in every file.
pub(super) const fn english(text: &'static str) -> Label {
    Label::new(text, text)
}

pub(super) const HANDOFFS: Label = Label::new("Handoffs", "Bàn giao");
pub(super) const BLOCKERS: Label = Label::new("Blockers", "Điểm nghẽn");

/// The labels of entries, which a caller may name, too.
pub(super) const ENTRY_LABELS: &[Label] = &[
    CONTEXT,
    DECISION,
    REASON,
    REASONING,
    ALTERNATIVES,
    IMPACT,
    TEAM_IMPACT,
    REVERSIBLE,
    PROPOSED,
    APPROVED,
    DISSENT,
    PATTERN,
    CODE,
    WHY,
];

/// The headings that tell the language of a file in which no entry is written yet.
const TITLES: &[Label] = &[
    DECISIONS, LEARNINGS, HANDOFFS, BLOCKERS, SUMMARY, COMPLETED, CHANGES, ISSUES, FOLLOW_UP,
];

/// Whether an entry of decisions has a value for one of these labels.
pub(super) fn says(document: &Document, body: &std::ops::Range<usize>, what: Says) -> bool {
    let labels: &[Label] = match what {
        Says::Context => &[CONTEXT],
        Says::Reason => &[REASON, REASONING],
    };
    let mut fields = labels
        .iter()
        .filter_map(|label| label.field(document, body));
    fields.any(|field| !field.text.is_empty())
}

/// What a decision should say.
#[derive(Debug, Clone, Copy)]
pub(super) enum Says {
    Context,
    Reason,
}

/// The language of the labels that a file has; `otherwise` if it has none of ours.
pub(super) fn language(text: &str, otherwise: Language) -> Language {
    let known = [ENTRY_LABELS, TITLES, context::LABELS].concat();
    language_of(text, &known).unwrap_or(otherwise)
}

/// A log in which nothing is written yet.
pub(super) fn empty_log(title: Label, language: Language) -> String {
    format!("# {}\n\n---\n", title.text(language))
}

pub(super) fn empty_decisions(language: Language) -> String {
    empty_log(DECISIONS, language)
}

pub(super) fn empty_learnings(language: Language) -> String {
    let title = LEARNINGS.text(language);
    format!("# {title}\n\n{}\n---\n", quoted(INSIGHTS, language))
}

/// A sentence as a quote; in both languages it has two lines.
fn quoted(sentence: Label, language: Language) -> String {
    let lines = sentence.text(language);
    lines
        .split(" | ")
        .map(|line| format!("> {line}\n"))
        .collect()
}

/// The day that is said, or today.
pub(super) fn day(said: Option<&str>, today: Day) -> Result<Day, Invalid> {
    said.map_or(Ok(today), str::parse)
}

impl Decision {
    /// The entry of an agent's log, or of a team's, which has labels of its own.
    pub(super) fn print(
        &self,
        today: Day,
        language: Language,
        is_team: bool,
    ) -> Result<String, Invalid> {
        let (reason, impact) = match is_team {
            true => (REASONING, TEAM_IMPACT),
            false => (REASON, IMPACT),
        };
        let mut entry = Printer::begin("title", &self.title, day(self.date.as_deref(), today)?)?;
        require("decision", &self.decision)?;
        entry.language = language;
        entry.value(PROPOSED, "proposed_by", self.proposed_by.as_deref())?;
        entry.value(APPROVED, "approved_by", self.approved_by.as_deref())?;
        entry.block(CONTEXT, &self.context);
        entry.block(DECISION, &self.decision);
        entry.list(reason, "reasons", &self.reasons)?;
        entry.list(ALTERNATIVES, "alternatives", &self.alternatives)?;
        entry.list(DISSENT, "dissent", &self.dissent)?;
        entry.list(impact, "impact", &self.impact)?;
        entry.value(REVERSIBLE, "reversible", self.reversible.as_deref())?;
        entry.finish("decision")
    }
}

impl Learning {
    pub(super) fn print(&self, today: Day, language: Language) -> Result<String, Invalid> {
        let mut entry = Printer::begin("title", &self.title, day(self.date.as_deref(), today)?)?;
        require("pattern", &self.pattern)?;
        entry.language = language;
        entry.block(PATTERN, &self.pattern);
        if let Some(code) = &self.code {
            if code.language.contains(['`', '\n', '\r']) {
                let what = "is the word behind the fence; leave out backticks and line breaks";
                return Err(Invalid::new("language", what));
            }
            entry.block(CODE, &fenced(code));
        }
        entry.block(WHY, &self.why);
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
    pub(super) fn print(
        &self,
        day: Day,
        number: usize,
        language: Language,
    ) -> Result<String, Invalid> {
        require("summary", &self.summary)?;
        let count = if number > 1 {
            format!(" ({number})")
        } else {
            String::new()
        };
        let about = quoted(ARCHIVED, language);
        let mut text = format!("# Session: {day}{count}\n\n{about}\n---\n");
        let mut headings = 1;
        let mut section = |title: Label, body: String| {
            if !body.trim().is_empty() {
                headings += 1;
                let title = title.text(language);
                let _ = write!(text, "\n## {title}\n\n{}\n\n---\n", body.trim_end());
            }
        };
        section(SUMMARY, self.summary.trim().to_owned());
        section(COMPLETED, numbered(&self.tasks, "✅ ")?);
        section(CHANGES, changes_table("Change", &self.changes)?);
        section(ISSUES, issues(&self.issues)?);
        let follow_up = bullets("follow_up", "- [ ] ", &self.follow_up)?;
        section(FOLLOW_UP, follow_up);
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
pub(super) struct Printer {
    text: String,
    /// Of its labels.
    language: Language,
}

impl Printer {
    fn begin(field: &str, title: &str, day: Day) -> Result<Self, Invalid> {
        Self::heading(field, title, &format!("{day}: "))
    }

    /// `## {lead}{title}`
    pub(super) fn heading(field: &str, title: &str, lead: &str) -> Result<Self, Invalid> {
        check_line(field, title)?;
        Ok(Self {
            text: format!("## {lead}{}\n", title.trim()),
            language: Language::English,
        })
    }

    /// A label with its text below.
    pub(super) fn block(&mut self, label: Label, text: &str) {
        if !text.trim().is_empty() {
            let text = Document::without_rules(text.trim_matches(['\n', '\r']).trim_end());
            // A table stands apart from what is above it.
            let gap = if text.starts_with('|') { "\n" } else { "" };
            let label = label.text(self.language);
            let _ = write!(self.text, "\n**{label}**:\n{gap}{text}\n");
        }
    }

    pub(super) fn list(
        &mut self,
        label: Label,
        field: &str,
        lines: &[String],
    ) -> Result<(), Invalid> {
        self.block(label, &bullets(field, "- ", lines)?);
        Ok(())
    }

    /// A label with its text beside it.
    pub(super) fn value(
        &mut self,
        label: Label,
        field: &str,
        text: Option<&str>,
    ) -> Result<(), Invalid> {
        if let Some(text) = text {
            check_line(field, text)?;
            let label = label.text(self.language);
            let _ = write!(self.text, "\n**{label}**: {}\n", text.trim());
        }
        Ok(())
    }

    /// The entry, if it is one: a heading or an open fence in it would run into the next.
    pub(super) fn finish(self, field: &str) -> Result<String, Invalid> {
        let text = format!("{}\n---\n", self.text);
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
        let what = "contains a heading, which would begin another entry; \
            put it into a code fence or write it without the #";
        return Err(Invalid::new(field, what));
    }
    Ok(())
}
