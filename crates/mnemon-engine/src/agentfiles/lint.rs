//! The document's best practices, as warnings.

use mnemon_core::Ctx;
use mnemon_core::markdown::{Day, Document, Entry, conflict};
use serde::{Deserialize, Serialize};

use super::context::NEXT;
use super::writing::{Says, says};
use super::{AgentFiles, Whose};
use crate::records::Error;

/// Something in a file that will help nobody later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    pub file: String,
    /// Counted from 1.
    pub line: usize,
    /// A word for the rule.
    pub rule: String,
    pub what: String,
}

/// Words that say nothing about a task.
const VAGUE: &str = "\
    stuff, things, thing, something, maybe, someday, misc, whatever, etc, various";

/// Words of choices that affect nobody later.
const TRIVIAL: &str = "\
    tabs, spaces, indentation, whitespace, formatting, typo, typos, semicolons, newline, \
    rename variable, line length";

impl AgentFiles {
    /// What the document's best practices say against the files of an agent or a team. Nothing is
    /// written, so that a session that was cut off stays as it is.
    pub async fn lint<'a>(
        &self,
        ctx: &Ctx,
        whose: impl Into<Whose<'a>>,
    ) -> Result<Vec<Warning>, Error> {
        let whose = whose.into();
        let home = self.home(whose).await?;
        self.check_folder(&home.memory).await?;
        self.check_known(whose, &home).await?;
        let memory = home.memory;
        let today = Day::of(ctx.now);
        let listed = self.files.list(&memory).await?;
        let mut found = Vec::new();
        for file in listed.iter().filter(|file| file.path.ends_with(".md")) {
            let (document, problem) = self.readable(&file.path).await;
            if let Some(problem) = problem {
                found.push(problem);
                continue;
            }
            let breaks = document.as_str().match_indices('\n').map(|(at, _)| at);
            let mut linter = Linter {
                breaks: breaks.collect(),
                document: &document,
                today,
                found: Vec::new(),
                file: file.path.clone(),
            };
            match file.path.strip_prefix(&memory).unwrap_or_default() {
                "/context.md" => linter.context(self.sizes.context_lines),
                "/decisions.md" => linter.decisions(self.sizes.decisions),
                "/learnings.md" => linter.learnings(self.sizes.learnings),
                path if path.starts_with("/sessions/") => linter.session(self.sizes.session_lines),
                _ => {}
            }
            linter.conflicts();
            linter.found.sort_by_key(|warning| warning.line);
            found.append(&mut linter.found);
        }
        Ok(found)
    }

    /// The same for every agent, member and team.
    pub async fn lint_all(&self, ctx: &Ctx) -> Result<Vec<Warning>, Error> {
        let mut found = Vec::new();
        for agent in self.list().await? {
            found.extend(agent.problem);
            found.extend(self.lint_or_warn(ctx, Whose::Agent(&agent.name)).await);
        }
        for team in self.teams().await? {
            // A team of the same name in another namespace needs more than the name.
            let space = team.folder.strip_prefix(&format!("{}/", self.agents()));
            let space = space.and_then(|rest| rest.split('/').next());
            let name = space.map_or(team.name.clone(), |space| format!("{space}/{}", team.name));
            found.extend(self.lint_or_warn(ctx, Whose::Team(&name)).await);
        }
        found.sort_by(|one, other| (&one.file, one.line).cmp(&(&other.file, other.line)));
        found.dedup();
        Ok(found)
    }

    /// The warnings about an agent or a team; one that cannot be read is a warning, too.
    async fn lint_or_warn(&self, ctx: &Ctx, whose: Whose<'_>) -> Vec<Warning> {
        let (Whose::Agent(name) | Whose::Team(name)) = whose;
        let linted = self.lint(ctx, whose).await;
        linted.unwrap_or_else(|error| vec![Warning::unreadable(name, &error)])
    }
}

impl Warning {
    /// Whether it is an error in every project: the file holds two versions of the same lines, or
    /// cannot be read.
    pub fn is_error(&self) -> bool {
        [CONFLICT, UNREADABLE].contains(&self.rule.as_str())
    }

    pub(super) fn unreadable(path: &str, error: &Error) -> Self {
        let (file, what) = match error {
            Error::BadFile { path, what } => (path.as_str(), what.clone()),
            error => (path, error.to_string()),
        };
        Self {
            file: file.to_owned(),
            line: 1,
            rule: UNREADABLE.to_owned(),
            what,
        }
    }
}

/// The rule against marks of two versions.
const CONFLICT: &str = "conflict";
/// The rule against files that cannot be read.
const UNREADABLE: &str = "unreadable";

struct Linter<'a> {
    document: &'a Document,
    file: String,
    today: Day,
    /// Where its lines end.
    breaks: Vec<usize>,
    found: Vec<Warning>,
}

impl Linter<'_> {
    fn warn(&mut self, at: usize, rule: &'static str, what: impl Into<String>) {
        self.found.push(Warning {
            file: self.file.clone(),
            line: self.breaks.partition_point(|place| *place < at) + 1,
            rule: rule.to_owned(),
            what: what.into(),
        });
    }

    fn conflicts(&mut self) {
        if let Some(at) = conflict(self.document.as_str()) {
            self.warn(
                at,
                CONFLICT,
                "two versions of the same lines stand here; keep one of them",
            );
        }
    }

    fn context(&mut self, most: usize) {
        let lines = self.document.as_str().lines().count();
        if lines > most {
            self.warn(0, "long", format!("has {lines} lines, at most {most} are useful; `mnemon agent archive` moves done tasks away"));
        }
        if !self.document.as_str().contains("Last updated") {
            self.warn(
                0,
                "undated",
                "does not say when it was updated last: `> Last updated: 2025-12-31`",
            );
        }
        if NEXT.section(self.document).is_none() {
            self.warn(0, "next", "does not say what the next session should do");
        }
        let whole = 0..self.document.as_str().len();
        let items: Vec<(usize, String)> = self
            .document
            .items(&whole)
            .map(|item| (item.span.start, self.document.item_text(item).to_owned()))
            .collect();
        for (at, text) in items {
            if let Some(word) = has_word(&text, VAGUE) {
                self.warn(at, "vague", format!("`{word}` is vague: name the task"));
            }
        }
        let titles: Vec<(usize, String)> = self
            .document
            .sections()
            .iter()
            .map(|section| (section.span.start, section.title.clone()))
            .collect();
        for (at, title) in titles {
            if has_word(&title, VAGUE).is_some() {
                self.warn(
                    at,
                    "vague",
                    format!("`{title}` does not say what stands below it"),
                );
            }
        }
    }

    /// The entries, with what is wrong with all kinds of them said already.
    fn log(&mut self, most: usize) -> Vec<Entry> {
        let entries = self.document.entries();
        if entries.len() > most {
            self.warn(0, "long", format!("has {} entries, at most {most} are useful; `mnemon agent archive` moves the oldest away", entries.len()));
        }
        for entry in &entries {
            match entry.day {
                None => self.warn(
                    entry.span.start,
                    "undated",
                    format!(
                        "`{}` has no date: `## 2025-12-31: {}`",
                        entry.title, entry.title
                    ),
                ),
                Some(day) if day > self.today => self.warn(
                    entry.span.start,
                    "future",
                    format!(
                        "`{}` has the date {day}, which is in the future",
                        entry.title
                    ),
                ),
                Some(_) => {}
            }
        }
        entries
    }

    fn decisions(&mut self, most: usize) {
        for entry in self.log(most) {
            let text = self.document.slice(&entry.body);
            let plain = |name: &str| text.lines().any(|line| line.starts_with(name));
            let why = says(self.document, &entry.body, Says::Reason);
            let context = says(self.document, &entry.body, Says::Context) || plain("Context:");
            if let Some(word) = has_word(&entry.title, TRIVIAL) {
                self.warn(
                    entry.span.start,
                    "trivial",
                    format!(
                        "`{word}` is a matter for a formatter; log decisions that affect later work"
                    ),
                );
            } else if !context {
                self.warn(
                    entry.span.start,
                    "context",
                    format!(
                        "`{}` does not say in which situation it was decided (**Context**)",
                        entry.title
                    ),
                );
            } else if !why {
                self.warn(
                    entry.span.start,
                    "reason",
                    format!("`{}` does not say why (**Reason**)", entry.title),
                );
            }
        }
    }

    fn learnings(&mut self, most: usize) {
        for entry in self.log(most) {
            let text = self.document.slice(&entry.body);
            if !text.contains("```") && !text.contains("~~~") {
                self.warn(
                    entry.span.start,
                    "code",
                    format!(
                        "`{}` has no code: an example says more than a description",
                        entry.title
                    ),
                );
            }
        }
    }

    fn session(&mut self, most: usize) {
        let lines = self.document.as_str().lines().count();
        if lines > most {
            self.warn(
                0,
                "long",
                format!("has {lines} lines, at most {most} are useful: shorten it"),
            );
        }
    }
}

/// The first of the words that stands in the text by itself.
fn has_word(text: &str, words: &'static str) -> Option<&'static str> {
    let lower = text.to_lowercase();
    words.split(", ").find(|word| {
        lower.match_indices(word).any(|(at, _)| {
            let before = lower
                .get(..at)
                .and_then(|before| before.chars().next_back());
            let after = lower
                .get(at + word.len()..)
                .and_then(|after| after.chars().next());
            !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
        })
    })
}
