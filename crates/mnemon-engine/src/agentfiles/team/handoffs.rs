//! Work that one member gives to another.

use mnemon_core::markdown::{Document, Entry};
use mnemon_core::{Ctx, Invalid};
use serde::{Deserialize, Serialize};

use super::minute;
use crate::agentfiles::AgentFiles;
use crate::agentfiles::agent::append;
use crate::agentfiles::entries::heading;
use crate::agentfiles::names::check_line;
use crate::agentfiles::writing::{
    FileChange, HANDOFFS, Printer, changes_table, check_one, empty_log, english,
};
use crate::records::Error;

/// Work to be given to another.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Handoff {
    pub from: String,
    pub to: String,
    pub task: String,
    pub context: String,
    pub files: Vec<FileChange>,
    pub deliverable: String,
    /// A deadline or a priority.
    pub priority: Option<String>,
    /// It is not to be begun yet.
    pub planned: bool,
}

/// A handoff as it stands in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandoffInfo {
    /// The heading: time, from and to.
    pub heading: String,
    pub from: String,
    pub to: String,
    pub task: String,
    pub status: String,
    #[serde(skip)]
    pub(super) text: String,
}

/// What a heading ends with whose work has not begun.
const PLANNED: &str = " (Planned)";
const PENDING: &str = "⏳ Pending";
const IN_PROGRESS: &str = "🔄 In Progress";
const COMPLETE: &str = "✅ Complete";

impl HandoffInfo {
    fn has(&self, words: &[&str]) -> bool {
        let status = self.status.to_lowercase();
        words.iter().any(|word| status.contains(word))
    }

    pub(super) fn is_complete(&self) -> bool {
        self.has(&["✅", "complete"])
    }

    pub(super) fn waits_for(&self, member: &str) -> bool {
        self.to.eq_ignore_ascii_case(member) && self.has(&["⏳", "pending"])
    }
}

/// Every handoff of a file, in its order.
pub(super) fn all(document: &Document) -> Vec<HandoffInfo> {
    let entries = document.entries();
    entries
        .iter()
        .filter_map(|entry| read(document, entry))
        .collect()
}

fn read(document: &Document, entry: &Entry) -> Option<HandoffInfo> {
    let title = entry.title.trim_end_matches(PLANNED.trim_start()).trim();
    let (from, to) = title.split_once('→').or_else(|| title.split_once("->"))?;
    let field = |name: &str| {
        document
            .field(&entry.body, name)
            .map(|field| field.text)
            .unwrap_or_default()
    };
    Some(HandoffInfo {
        heading: heading(document, entry),
        from: from.trim().to_owned(),
        to: to.trim().to_owned(),
        task: field("Task"),
        status: field("Status"),
        text: document.entry_text(entry).to_owned(),
    })
}

/// Takes `(Planned)` from the heading of work that has begun; returns the heading.
fn begun(document: &mut Document, start: usize) -> String {
    let line = document
        .slice(&(start..document.as_str().len()))
        .lines()
        .next();
    let line = line.unwrap_or_default().trim_end().to_owned();
    let bare = line.trim_end_matches(PLANNED.trim_start()).trim_end();
    document.replace(start..start + line.len(), bare);
    bare.trim_start_matches(['#', ' ']).to_owned()
}

impl Handoff {
    /// The six things that a handoff must say; the time is ours.
    fn check(&self) -> Result<(), Invalid> {
        let required = [
            ("from", &self.from),
            ("to", &self.to),
            ("task", &self.task),
            ("context", &self.context),
            ("deliverable", &self.deliverable),
        ];
        for (field, text) in required {
            if text.trim().is_empty() {
                return Err(Invalid::new(
                    field,
                    "is empty; a handoff says from, to, task, context and deliverable",
                ));
            }
        }
        check_line("from", &self.from)?;
        check_line("to", &self.to)?;
        if self.from.trim().eq_ignore_ascii_case(self.to.trim()) {
            let what = format!("`{}` cannot hand work to itself", self.to.trim());
            return Err(Invalid::new("to", what));
        }
        Ok(())
    }

    fn print(&self, at: &str) -> Result<String, Invalid> {
        let planned = if self.planned { PLANNED } else { "" };
        let title = format!("{} → {}{planned}", self.from.trim(), self.to.trim());
        let mut entry = Printer::heading("to", &title, &format!("{at}: "))?;
        entry.block(english("Task"), &self.task);
        entry.block(english("Context Provided"), &self.context);
        entry.block(
            english("Files Involved"),
            &changes_table("Notes", &self.files)?,
        );
        entry.block(english("Expected Deliverable"), &self.deliverable);
        entry.value(
            english("Deadline/Priority"),
            "priority",
            self.priority.as_deref(),
        )?;
        entry.value(english("Status"), "status", Some(PENDING))?;
        entry.finish("handoff")
    }
}

impl AgentFiles {
    /// Gives work to another member, after it was verified that all is said and that both exist.
    pub async fn hand_off(
        &self,
        ctx: &Ctx,
        team: &str,
        handoff: &Handoff,
    ) -> Result<HandoffInfo, Error> {
        handoff.check()?;
        let handoff = self.screened(ctx, "handoff", handoff)?;
        let team = self.team(team).await?;
        for name in [&handoff.from, &handoff.to] {
            self.find_member(&team, name.trim()).await?;
        }
        let entry = handoff.print(&minute(ctx.now))?;
        let path = team.file("handoffs");
        let empty = empty_log(HANDOFFS, self.language);
        self.change(&path, &empty, |document| append(&path, document, &entry))
            .await?;
        let document = Document::parse(entry);
        let written = all(&document).into_iter().next();
        let what = "a handoff cannot be read with these names";
        written.ok_or_else(|| Invalid::new("to", what).into())
    }

    /// Takes on work that waits. `which` is a part of the heading or the task, where several wait.
    pub async fn accept(
        &self,
        team: &str,
        member: &str,
        which: Option<&str>,
    ) -> Result<HandoffInfo, Error> {
        let wanted = |handoff: &HandoffInfo| handoff.waits_for(member);
        self.set_status(team, wanted, "pending", member, which, IN_PROGRESS, None)
            .await
    }

    /// Says that work is done, and what came of it.
    pub async fn complete(
        &self,
        ctx: &Ctx,
        team: &str,
        member: &str,
        which: Option<&str>,
        result: Option<&str>,
    ) -> Result<HandoffInfo, Error> {
        let wanted = |handoff: &HandoffInfo| {
            handoff.to.eq_ignore_ascii_case(member) && !handoff.is_complete()
        };
        if let Some(result) = result {
            check_one("result", result, 0)?;
        }
        let result = result.map(str::to_owned);
        let result = self.screened(ctx, "result", &result)?;
        let result = result.as_deref();
        self.set_status(team, wanted, "open", member, which, COMPLETE, result)
            .await
    }

    #[allow(clippy::too_many_arguments, reason = "two callers, beside it")]
    async fn set_status(
        &self,
        team: &str,
        wanted: impl Fn(&HandoffInfo) -> bool,
        word: &str,
        member: &str,
        which: Option<&str>,
        status: &str,
        result: Option<&str>,
    ) -> Result<HandoffInfo, Error> {
        let team = self.team(team).await?;
        let path = team.file("handoffs");
        if self.read(&path).await?.is_none() {
            return Err(Error::NotThere(format!(
                "{} has no handoffs yet",
                team.name
            )));
        }
        self.change(&path, "", |document| {
            let entries = document.entries();
            let found = entries
                .iter()
                .filter_map(|entry| Some((entry, read(document, entry)?)));
            let says = |handoff: &HandoffInfo| {
                let text = format!("{}\n{}", handoff.heading, handoff.task).to_lowercase();
                which.is_none_or(|words| text.contains(&words.trim().to_lowercase()))
            };
            let found: Vec<(&Entry, HandoffInfo)> = found
                .filter(|(_, handoff)| wanted(handoff) && says(handoff))
                .collect();
            let (entry, mut info) = match found.as_slice() {
                [one] => one.clone(),
                [] => {
                    return Err(Error::NotThere(format!(
                        "no {word} handoff to {member} {}",
                        which.map_or_else(
                            || format!("is in {path}"),
                            |words| format!("speaks of `{}`", words.escape_debug())
                        )
                    )));
                }
                many => {
                    let headings: Vec<&str> = many
                        .iter()
                        .take(5)
                        .map(|(_, handoff)| handoff.heading.as_str())
                        .collect();
                    let what = format!(
                        "{} are {word}; say which by a part of the heading or task: {}",
                        many.len(),
                        headings.join("; ")
                    );
                    return Err(Invalid::new("which", what).into());
                }
            };
            let field = document.field(&entry.body, "Status");
            let end = field
                .as_ref()
                .map_or(entry.body.start, |field| field.value.end);
            if let Some(result) = result {
                document.replace(
                    end..end,
                    &format!(
                        "\n\n**Result Summary**:\n{}",
                        Document::without_rules(result.trim())
                    ),
                );
            }
            match field {
                Some(field) => document.set_field(&field, status),
                None => document.replace(end..end, &format!("\n**Status**: {status}\n")),
            }
            status.clone_into(&mut info.status);
            info.heading = begun(document, entry.span.start);
            Ok(info)
        })
        .await
    }
}
