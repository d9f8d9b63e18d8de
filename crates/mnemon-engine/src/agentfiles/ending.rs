//! The end of a session: context, decisions, learnings and archive in one step; and what is too
//! long goes to `memory/archive/`.

use std::collections::BTreeMap;

use mnemon_core::markdown::{Day, Document, Entry, Language};
use mnemon_core::{Ctx, Invalid};
use serde::{Deserialize, Serialize};

use super::agent::append;
use super::context::{FOCUS, template};
use super::journal::Step;
use super::writing::{empty_decisions, empty_learnings, language};
use super::{AgentFiles, ContextChange, Decision, Learning, SessionLog, Whose};
use crate::records::Error;

/// How long the files of an agent may get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    pub context_lines: usize,
    /// Decisions in the log; older ones move to the archive.
    pub decisions: usize,
    /// Learnings; older ones move to the archive.
    pub learnings: usize,
    pub session_lines: usize,
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            context_lines: 200,
            decisions: 100,
            learnings: 100,
            session_lines: 60,
        }
    }
}

/// What a session leaves behind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SessionEnd {
    pub context: ContextChange,
    pub decisions: Vec<Decision>,
    pub learnings: Vec<Learning>,
    /// For complex sessions.
    pub archive: Option<SessionLog>,
}

/// What became of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// The files that were written.
    pub files: Vec<String>,
    /// Each change of the context, in a few words.
    pub changes: Vec<String>,
    pub archived: Archived,
    /// Where two changes met in one place and both were kept.
    pub clashes: Vec<String>,
}

/// What moved to the archive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Archived {
    pub decisions: usize,
    pub learnings: usize,
    /// Ticked tasks of a context that is too long.
    pub tasks: usize,
}

impl Archived {
    /// Whether nothing moved.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl SessionEnd {
    fn check(&self, today: Day) -> Result<(), Invalid> {
        let any = Language::default();
        for decision in &self.decisions {
            decision.print(today, any, false)?;
        }
        for learning in &self.learnings {
            learning.print(today, any)?;
        }
        Ok(())
    }
}

impl AgentFiles {
    /// The four steps at the end of a session, all or none.
    pub async fn end(&self, ctx: &Ctx, name: &str, end: &SessionEnd) -> Result<Ended, Error> {
        let today = Day::of(ctx.now);
        if *end == SessionEnd::default() {
            let what = "is missing: give context, decisions, learnings or an archive";
            return Err(Invalid::new("context", what).into());
        }
        let end = self.screened(ctx, "session", end)?;
        // What cannot be written makes no agent.
        end.check(today)?;
        let home = self.ready_to_write(ctx, Whose::Agent(name)).await?;
        let mut work = Work::new(self, &home.memory);
        let empty = template(home.title(), today, self.language);
        let context = work.open("context.md", &empty).await?;
        let new = language(context.as_str(), self.language);
        let changes = end.context.apply(context, today)?;
        super::context::stamp(context, today);
        if !end.decisions.is_empty() {
            let log = work.open("decisions.md", &empty_decisions(new)).await?;
            let own = language(log.as_str(), new);
            for decision in &end.decisions {
                append("decisions.md", log, &decision.print(today, own, false)?)?;
            }
        }
        if !end.learnings.is_empty() {
            let log = work.open("learnings.md", &empty_learnings(new)).await?;
            let own = language(log.as_str(), new);
            for learning in &end.learnings {
                append("learnings.md", log, &learning.print(today, own)?)?;
            }
        }
        if let Some(log) = &end.archive {
            let path = format!("sessions/{today}.md");
            let file = work.open(&path, "").await?;
            let before = file.sections().iter().filter(|section| section.level == 1);
            let entry = log.print(today, before.count() + 1, new)?;
            append(&path, file, &entry)?;
        }
        let archived = work.overflow(today).await?;
        let ended = work.finish(archived).await?;
        Ok(Ended { changes, ..ended })
    }

    /// Moves what is too long to the archive, all or nothing.
    pub async fn archive(&self, ctx: &Ctx, name: &str) -> Result<Ended, Error> {
        let home = self.ready(Whose::Agent(name)).await?;
        let mut work = Work::new(self, &home.memory);
        let archived = work.overflow(Day::of(ctx.now)).await?;
        work.finish(archived).await
    }
}

/// Files of one memory that are changed together.
struct Work<'a> {
    files: &'a AgentFiles,
    memory: &'a str,
    /// By path: what was there, and what it becomes.
    open: BTreeMap<String, (Option<String>, Document)>,
}

impl<'a> Work<'a> {
    fn new(files: &'a AgentFiles, memory: &'a str) -> Self {
        let open = BTreeMap::new();
        Self {
            files,
            memory,
            open,
        }
    }

    /// A file that is to be changed; `empty` is what it begins as.
    async fn open(&mut self, file: &str, empty: &str) -> Result<&mut Document, Error> {
        let path = format!("{}/{file}", self.memory);
        let read = match self.open.contains_key(&path) {
            true => None,
            false => self.files.read(&path).await?,
        };
        let entry = self.open.entry(path).or_insert_with(|| {
            let before = read.map(|read| read.text);
            let text = before.clone().unwrap_or_else(|| empty.to_owned());
            (before, Document::parse(text))
        });
        Ok(&mut entry.1)
    }

    async fn overflow(&mut self, today: Day) -> Result<Archived, Error> {
        let sizes = self.files.sizes;
        Ok(Archived {
            decisions: self
                .move_oldest("decisions", sizes.decisions, today)
                .await?,
            learnings: self
                .move_oldest("learnings", sizes.learnings, today)
                .await?,
            tasks: self.move_done(sizes.context_lines, today).await?,
        })
    }

    /// Leaves the most recent entries and moves the others to the archive of their year. What has
    /// no date stays: nobody knows how old it is.
    async fn move_oldest(&mut self, log: &str, most: usize, today: Day) -> Result<usize, Error> {
        let document = self.open(&format!("{log}.md"), "").await?;
        let entries = document.entries();
        if entries.len() <= most {
            return Ok(0);
        }
        let dated = entries.iter().filter(|entry| entry.day.is_some()).count();
        let keep = most.saturating_sub(entries.len() - dated);
        let kept: Vec<usize> = document
            .recent(keep.min(dated))
            .iter()
            .map(|entry| entry.span.start)
            .collect();
        let old = |entry: &&Entry| entry.day.is_some() && !kept.contains(&entry.span.start);
        let moved: Vec<Entry> = entries.iter().filter(old).cloned().collect();
        let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for entry in &moved {
            let year: String = entry
                .day
                .unwrap_or(today)
                .to_string()
                .chars()
                .take(4)
                .collect();
            texts
                .entry(year)
                .or_default()
                .push(format!("{}\n\n---\n", document.entry_text(entry)));
        }
        let spans: Vec<_> = moved.iter().map(|entry| entry.span.clone()).collect();
        document.cut(&spans);
        for (year, entries) in texts {
            let path = format!("archive/{log}-{year}.md");
            let empty = format!("# Archive: {log} {year}\n\n---\n");
            let archive = self.open(&path, &empty).await?;
            append(&path, archive, &entries.join("\n"))?;
        }
        Ok(moved.len())
    }

    /// Moves ticked tasks out of a context that is too long.
    async fn move_done(&mut self, most: usize, today: Day) -> Result<usize, Error> {
        let document = self.open("context.md", "").await?;
        let Some(focus) = FOCUS.section(document).cloned() else {
            return Ok(0);
        };
        if document.as_str().lines().count() <= most {
            return Ok(0);
        }
        let done = document
            .items(&focus.own)
            .filter(|item| item.checked == Some(true));
        let done: Vec<_> = done.cloned().collect();
        // A ticked task that hangs on another goes with it, or stays with it.
        let outer: Vec<_> = done
            .iter()
            .filter(|item| {
                !done.iter().any(|other| {
                    other != *item
                        && other.span.start <= item.span.start
                        && item.span.end <= other.span.end
                })
            })
            .collect();
        let has_open = |item: &mnemon_core::markdown::Item| {
            document
                .items(&item.span)
                .any(|inner| inner.checked == Some(false))
        };
        let outer: Vec<_> = outer
            .into_iter()
            .filter(|item| !has_open(item))
            .cloned()
            .collect();
        let texts: Vec<String> = outer
            .iter()
            .map(|item| document.slice(&item.span).trim_end().to_owned())
            .collect();
        for item in outer.iter().rev() {
            document.remove_item(item);
        }
        if !texts.is_empty() {
            let path = format!(
                "archive/context-{}.md",
                today.to_string().chars().take(4).collect::<String>()
            );
            let archive = self.open(&path, "# Archive: context\n\n---\n").await?;
            append(
                &path,
                archive,
                &format!("## {today}: Tasks done\n\n{}\n\n---\n", texts.join("\n")),
            )?;
        }
        Ok(texts.len())
    }

    async fn finish(self, archived: Archived) -> Result<Ended, Error> {
        let steps = self
            .open
            .into_iter()
            .map(|(path, (before, document))| Step {
                path,
                before,
                after: document.into_string(),
            });
        // A file that was only looked at, and is not there, is not made.
        let changed = |step: &Step| step.before.as_deref().unwrap_or_default() != step.after;
        let steps: Vec<Step> = steps.filter(changed).collect();
        let files = steps.iter().map(|step| step.path.clone()).collect();
        let clashes = self.files.write_together(self.memory, steps).await?;
        Ok(Ended {
            files,
            changes: Vec::new(),
            archived,
            clashes,
        })
    }
}
