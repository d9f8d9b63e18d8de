//! One agent: its list, its beginning, its activation, and what it notes down while it works.

use std::collections::BTreeSet;

use mnemon_core::Ctx;
use mnemon_core::limits;
use mnemon_core::markdown::{Day, Document, Label, Language, conflict, merge};
use mnemon_core::{Invalid, files::FilesError};
use serde::{Deserialize, Serialize};

use super::context::template;
use super::home::member_address;
use super::knowledge::Knowledge;
use super::names::{self, Sort, check_line};
use super::writing::{empty_decisions, empty_learnings, language};
use super::{AgentFiles, ContextChange, Decision, Learning, Warning, Whose, unreadable};
use crate::memory::payload::estimate;
use crate::records::Error;
use crate::records::safety::TakenOut;

/// An agent that has files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentInfo {
    /// `AGENT`, or `TEAM/MEMBER` for a member of a team.
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Files of its memory.
    pub files: usize,
    /// Why its definition cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Warning>,
}

/// What an agent is told before it begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activation {
    /// Memory, knowledge and the agent's own prompt, in this order.
    pub prompt: String,
    /// What it is made of.
    pub parts: Vec<Part>,
    /// Sentences for people: what looks wrong in the files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

/// A part of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    pub name: String,
    /// Entries, where it has some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entries: Option<usize>,
    /// Estimated.
    pub tokens: u64,
}

impl Part {
    pub(super) fn new(name: &str, entries: Option<usize>, text: &str) -> Self {
        Self {
            name: name.to_owned(),
            entries,
            tokens: estimate(text),
        }
    }
}

/// What stands between the parts of a prompt.
pub(super) const BETWEEN: &str = "\n\n---\n\n";

const MEMORY: Label = Label::new("Agent Memory", "Memory của Agent");
const CONTEXT: Label = Label::new("Current Context", "Context hiện tại");
const DECISIONS: Label = Label::new("Recent Decisions", "Quyết định gần đây");

impl AgentFiles {
    /// The agents by name, then the members of teams.
    pub async fn list(&self) -> Result<Vec<AgentInfo>, Error> {
        let folder = self.agents();
        let listed = self.files.list(&folder).await?;
        let below = |path: &str| -> Option<(String, String)> {
            let rest = path.strip_prefix(&folder)?.strip_prefix('/')?;
            let (name, file) = rest.split_once('/')?;
            let known =
                file == "agent.md" || file.starts_with("memory/") || file.starts_with("knowledge/");
            (known && names::check(Sort::Agent, name).is_ok())
                .then(|| (name.to_owned(), file.to_owned()))
        };
        let found: Vec<(String, String)> =
            listed.iter().filter_map(|file| below(&file.path)).collect();
        let names: BTreeSet<&String> = found.iter().map(|(name, _)| name).collect();
        if names.len() > limits::AGENTS {
            let (path, most) = (folder, limits::AGENTS);
            return Err(FilesError::TooMany { path, most }.into());
        }
        let mut agents = Vec::new();
        for name in names {
            let own = found.iter().filter(|(other, _)| other == name);
            let files =
                own.filter(|(_, file)| file.starts_with("memory/") && file.ends_with(".md"));
            let path = format!("{folder}/{name}/agent.md");
            let (definition, problem) = self.readable(&path).await;
            agents.push(AgentInfo {
                name: name.clone(),
                description: front_value(&definition, "description"),
                files: files.count(),
                problem,
            });
        }
        agents.extend(self.members().await?);
        Ok(agents)
    }

    /// Makes an agent, or a member of a team that is there: its definition and an empty memory.
    /// Files that are there stay as they are.
    pub async fn begin(
        &self,
        ctx: &Ctx,
        name: &str,
        description: &str,
    ) -> Result<Vec<String>, Error> {
        let home = self.clone().creating(true).home(Whose::Agent(name)).await?;
        let short = member_address(name)?.map_or(name, |(_, member)| member);
        let mut files = vec![self.definition(ctx, &home.folder, short, description, false)?];
        files.extend(self.empty_memory(ctx, &home.memory));
        let made = self.write_new(files).await?;
        if made.is_empty() {
            return Err(Error::AgentExists(name.to_owned()));
        }
        Ok(made)
    }

    /// The definition of a new agent: its path and text.
    pub(super) fn definition(
        &self,
        ctx: &Ctx,
        folder: &str,
        name: &str,
        description: &str,
        is_lead: bool,
    ) -> Result<(String, String), Error> {
        check_line("description", description)?;
        let description = self.screened(ctx, "description", &description.to_owned())?;
        let description = description.trim();
        // JSON's quotes are YAML's, too.
        let quoted = serde_json::Value::from(description).to_string();
        let lead = if is_lead { "is_lead: true\n" } else { "" };
        let text = format!(
            "---\nname: {name}\ndescription: {quoted}\n{lead}---\n\n# {name}\n\n{description}\n"
        );
        Ok((format!("{folder}/agent.md"), text))
    }

    /// The files of a memory in which nothing is written yet.
    pub(super) fn empty_memory(&self, ctx: &Ctx, memory: &str) -> Vec<(String, String)> {
        let context = template("Current Context", Day::of(ctx.now), self.language);
        vec![
            (format!("{memory}/context.md"), context),
            (
                format!("{memory}/decisions.md"),
                empty_decisions(self.language),
            ),
            (
                format!("{memory}/learnings.md"),
                empty_learnings(self.language),
            ),
        ]
    }

    /// Writes those files that are not there; returns their paths.
    pub(super) async fn write_new(
        &self,
        files: Vec<(String, String)>,
    ) -> Result<Vec<String>, Error> {
        let mut made = Vec::new();
        for (path, text) in files {
            match self.files.write(&path, text.as_bytes(), None).await {
                Ok(_) => made.push(path),
                Err(FilesError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(made)
    }

    /// What the agent is told: the whole context, its most recent decisions, the knowledge that
    /// its task asks for, and its own prompt. Learnings are searched for when they are needed, and
    /// sessions are never told. A member of a team is told what its team shares, too.
    pub async fn activate(&self, name: &str, task: Option<&str>) -> Result<Activation, Error> {
        if let Some((team, member)) = member_address(name)? {
            return self.activate_member(team, member, task).await;
        }
        let home = self.home(Whose::Agent(name)).await?;
        self.check_folder(&home.memory).await?;
        self.recover(&home.memory).await?;
        let context = self.read(&home.file("context")).await?;
        let decisions = self.read(&home.file("decisions")).await?;
        let definition = self.read(&format!("{}/agent.md", home.folder)).await?;
        let knowledge = self
            .knowledge(&home.folder, task.unwrap_or_default())
            .await?;
        if context.is_none()
            && decisions.is_none()
            && definition.is_none()
            && knowledge.files.is_empty()
        {
            return Err(self.no_agent(name).await?);
        }
        let mut prompt = Prompt::default();
        let context = context.map(|read| read.text).unwrap_or_default();
        let decisions = Document::outline(decisions.map(|read| read.text).unwrap_or_default());
        prompt.notice_conflict(&home.file("context"), &context);
        prompt.notice_conflict(&home.file("decisions"), decisions.as_str());
        self.checked(&home.file("learnings"), &mut prompt).await?;
        let of_decisions = language(decisions.as_str(), self.language);
        let memory = prompt.memory(&context, &decisions, language(&context, of_decisions));
        let mut texts: Vec<String> = Vec::from_iter(memory);
        texts.extend(prompt.knowledge(knowledge));
        if let Some(read) = definition {
            // Without memory and knowledge the agent's prompt stays as it is.
            let body = Document::parse(read.text).body().to_owned();
            prompt.parts.push(Part::new("prompt", None, &body));
            let first = texts.is_empty();
            texts.push(if first {
                body
            } else {
                body.trim_start().to_owned()
            });
        }
        Ok(Activation {
            prompt: texts.join(BETWEEN),
            parts: prompt.parts,
            notices: prompt.notices,
        })
    }

    /// Changes single lines of a context; returns each change in a few words.
    pub async fn update_context<'a>(
        &self,
        ctx: &Ctx,
        whose: impl Into<Whose<'a>>,
        change: &ContextChange,
    ) -> Result<Vec<String>, Error> {
        let change = self.screened(ctx, "context", change)?;
        let home = self.ready_to_write(ctx, whose.into()).await?;
        let today = Day::of(ctx.now);
        let empty = template(home.title(), today, self.language);
        self.change(&home.file("context"), &empty, |document| {
            Ok(change.apply(document, today)?)
        })
        .await
    }

    /// Replaces the whole context. `base` is what the writer had read: what others changed since
    /// then is merged, section by section, and where both changed the same lines both stay.
    pub async fn rewrite_context<'a>(
        &self,
        ctx: &Ctx,
        whose: impl Into<Whose<'a>>,
        text: &str,
        base: &str,
    ) -> Result<Vec<String>, Error> {
        if text.trim().is_empty() {
            let what = "is empty; give the new context";
            return Err(Invalid::new("context", what).into());
        }
        let mut taken = TakenOut::default();
        let text = self
            .safety
            .clean_change("context", text, base, &mut taken)?;
        ctx.notices.extend(taken.sentences());
        let home = self.ready_to_write(ctx, whose.into()).await?;
        let mut after = Document::parse(text);
        super::context::stamp(&mut after, Day::of(ctx.now));
        let empty = template(home.title(), Day::of(ctx.now), self.language);
        self.change(&home.file("context"), &empty, |document| {
            let there = document.as_str();
            let merged = merge(
                base,
                after.as_str(),
                if there == empty { base } else { there },
            );
            let clashes = merged
                .clashes
                .iter()
                .map(|clash| format!("{}: {}", clash.heading, clash.what));
            let clashes: Vec<String> = clashes.collect();
            *document = Document::parse(merged.text);
            Ok(clashes)
        })
        .await
    }

    /// Writes a decision of an agent or a team at the end of its log; returns the file.
    pub async fn decide<'a>(
        &self,
        ctx: &Ctx,
        whose: impl Into<Whose<'a>>,
        decision: &Decision,
    ) -> Result<String, Error> {
        let decision = self.screened(ctx, "decision", decision)?;
        let today = Day::of(ctx.now);
        // What cannot be written makes no agent.
        decision.print(today, self.language, false)?;
        let home = self.ready_to_write(ctx, whose.into()).await?;
        let new = self.language_of(&home).await?;
        let path = home.file("decisions");
        self.change(&path, &empty_decisions(new), |document| {
            let own = language(document.as_str(), new);
            let entry = decision.print(today, own, home.is_team)?;
            append(&path, document, &entry)
        })
        .await?;
        Ok(path)
    }

    /// Writes a learning at the end of the patterns.
    pub async fn learn(&self, ctx: &Ctx, name: &str, learning: &Learning) -> Result<String, Error> {
        let learning = self.screened(ctx, "learning", learning)?;
        let today = Day::of(ctx.now);
        learning.print(today, self.language)?;
        let home = self.ready_to_write(ctx, Whose::Agent(name)).await?;
        let new = self.language_of(&home).await?;
        let path = home.file("learnings");
        self.change(&path, &empty_learnings(new), |document| {
            let entry = learning.print(today, language(document.as_str(), new))?;
            append(&path, document, &entry)
        })
        .await?;
        Ok(path)
    }

    /// One of the files as it is; `None` when there is no such file.
    pub async fn show<'a>(
        &self,
        whose: impl Into<Whose<'a>>,
        file: &str,
    ) -> Result<Option<String>, Error> {
        let whose = whose.into();
        let home = self.home(whose).await?;
        let read = self.read(&format!("{}/{file}", home.memory)).await?;
        if read.is_none() {
            self.check_known(whose, &home).await?;
        }
        Ok(read.map(|read| read.text))
    }

    /// A document, empty if there is none; or why it cannot be read, so that one bad file does not
    /// hide the others.
    pub(super) async fn readable(&self, path: &str) -> (Document, Option<Warning>) {
        match self.text(path).await {
            Ok(text) => (Document::parse(text), None),
            Err(error) => (Document::parse(""), Some(Warning::unreadable(path, &error))),
        }
    }

    /// That it is not a file.
    pub(super) async fn check_folder(&self, folder: &str) -> Result<(), Error> {
        match self.files.read(folder).await.map_err(unreadable)? {
            None => Ok(()),
            Some(_) => Err(Error::BadFile {
                path: folder.to_owned(),
                what: "is a file and should be a folder; move it away".to_owned(),
            }),
        }
    }
}

/// Puts an entry at the end, if its headings are read there as they are read on their own. Below
/// an open fence they are not; and a fence in the entry would close that one and let the rest of
/// the entry pass for something else.
pub(super) fn append(path: &str, document: &mut Document, entry: &str) -> Result<(), Error> {
    let before = document.sections().len();
    let start = document.append_entry(entry);
    let alone = Document::parse(document.slice(&(start..document.as_str().len())));
    let expected = alone
        .sections()
        .iter()
        .map(|own| (own.level, start + own.span.start));
    let added = document.sections().iter().skip(before);
    let is_same = added.map(|own| (own.level, own.span.start)).eq(expected);
    if is_same && !alone.sections().is_empty() {
        return Ok(());
    }
    Err(Error::BadFile {
        path: path.to_owned(),
        what: "leaves a code fence or an HTML comment open at its end, so that nothing can be added; close it".to_owned(),
    })
}

/// A value of the front matter: `key: value` on one line.
pub(super) fn front_value(document: &Document, key: &str) -> Option<String> {
    let lines = document.front_matter()?.lines();
    let value = lines
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.trim() == key)?;
    let value = value.1.trim();
    let unquoted = serde_json::from_str::<String>(value).ok();
    Some(unquoted.unwrap_or_else(|| value.trim_matches('\'').to_owned()))
        .filter(|value| !value.is_empty())
}

/// A prompt that is being put together.
#[derive(Default)]
pub(super) struct Prompt {
    pub(super) parts: Vec<Part>,
    pub(super) notices: Vec<String>,
}

impl Prompt {
    /// The agent's memory in the document's words; `None` when there is nothing to say.
    fn memory(
        &mut self,
        context: &str,
        decisions: &Document,
        language: Language,
    ) -> Option<String> {
        let recent = decisions.recent(limits::RECENT_DECISIONS);
        let mut sections = Vec::new();
        if !context.trim().is_empty() {
            self.parts.push(Part::new("context", None, context));
            let title = CONTEXT.text(language);
            sections.push(format!("### {title}\n\n{}", context.trim_end()));
        }
        if !recent.is_empty() {
            let entries: Vec<&str> = recent
                .iter()
                .map(|entry| decisions.entry_text(entry))
                .collect();
            let entries = entries.join(BETWEEN);
            self.parts
                .push(Part::new("decisions", Some(recent.len()), &entries));
            sections.push(format!("### {}\n\n{entries}", DECISIONS.text(language)));
        }
        if sections.is_empty() {
            return None;
        }
        let title = MEMORY.text(language);
        Some(format!("## {title}\n\n{}", sections.join("\n\n")))
    }

    /// The knowledge as a part of the prompt, if there is any.
    pub(super) fn knowledge(&mut self, knowledge: Knowledge) -> Option<String> {
        let count = knowledge.files.len();
        let text = (count > 0).then(|| knowledge.text());
        let part = text
            .as_deref()
            .map(|text| Part::new("knowledge", Some(count), text));
        self.parts.extend(part);
        self.notices.extend(knowledge.notices);
        text
    }

    /// Warns of conflict marks that nobody has settled yet.
    pub(super) fn notice_conflict(&mut self, file: &str, text: &str) {
        if conflict(text).is_some() {
            self.notices.push(format!(
                "{file} holds two versions of the same lines (<<<<<<< …); keep one of them"
            ));
        }
    }
}
