//! One agent: its list, its beginning, its activation, and what it notes down while it works.

use std::collections::BTreeSet;

use mnemon_core::Ctx;
use mnemon_core::limits;
use mnemon_core::markdown::{Day, Document, merge};
use mnemon_core::{Invalid, files::FilesError};
use serde::Serialize;

use super::context::template;
use super::names::{self, Sort, check_line};
use super::writing::{DECISIONS, LEARNINGS};
use super::{AgentFiles, ContextChange, Decision, Learning};
use crate::memory::payload::estimate;
use crate::records::Error;
use crate::records::safety::TakenOut;

/// An agent that has files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AgentInfo {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Files of its memory.
    pub files: usize,
}

/// What an agent is told before it begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Activation {
    /// Memory, knowledge and the agent's own prompt, in this order.
    pub prompt: String,
    /// What it is made of.
    pub parts: Vec<Part>,
    /// Sentences for people: what looks wrong in the files.
    pub notices: Vec<String>,
}

/// A part of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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

/// What marks a clash that nobody has settled yet.
const CLASH: &str = "\n<<<<<<< in the file";

impl AgentFiles {
    /// The agents, by name.
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
            let definition = self.read(&format!("{folder}/{name}/agent.md")).await?;
            let description =
                definition.and_then(|read| front_value(&Document::parse(read.text), "description"));
            agents.push(AgentInfo {
                name: name.clone(),
                description,
                files: files.count(),
            });
        }
        Ok(agents)
    }

    /// Makes an agent: its definition and an empty memory. Files that are there stay as they are.
    pub async fn begin(
        &self,
        ctx: &Ctx,
        name: &str,
        description: &str,
    ) -> Result<Vec<String>, Error> {
        check_line("description", description)?;
        let description = &self.screened(ctx, "description", &description.to_owned())?;
        let (agent, memory) = (self.agent(name)?, self.memory_of(name)?);
        let today = Day::of(ctx.now);
        // JSON's quotes are YAML's, too.
        let quoted = serde_json::Value::from(description.trim()).to_string();
        let files = [
            (
                format!("{agent}/agent.md"),
                format!(
                    "---\nname: {name}\ndescription: {quoted}\n---\n\n# {name}\n\n{}\n",
                    description.trim()
                ),
            ),
            (
                format!("{memory}/context.md"),
                template("Current Context", today),
            ),
            (format!("{memory}/decisions.md"), DECISIONS.to_owned()),
            (format!("{memory}/learnings.md"), LEARNINGS.to_owned()),
        ];
        let mut made = Vec::new();
        for (path, text) in files {
            match self.files.write(&path, text.as_bytes(), None).await {
                Ok(_) => made.push(path),
                Err(FilesError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if made.is_empty() {
            let what = format!("`{name}` is there already; nothing was changed");
            return Err(Invalid::new("agent", what).into());
        }
        Ok(made)
    }

    /// What the agent is told: the whole context, its most recent decisions, the knowledge that
    /// its task asks for, and its own prompt. Learnings are searched for when they are needed, and
    /// sessions are never told.
    pub async fn activate(&self, name: &str, task: Option<&str>) -> Result<Activation, Error> {
        let (agent, memory) = (self.agent(name)?, self.memory_of(name)?);
        self.check_folder(&memory).await?;
        self.recover(&memory).await?;
        let context = self.read(&format!("{memory}/context.md")).await?;
        let decisions = self.read(&format!("{memory}/decisions.md")).await?;
        let definition = self.read(&format!("{agent}/agent.md")).await?;
        let knowledge = self.knowledge(&agent, task.unwrap_or_default()).await?;
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
        prompt.notice_clashes("context.md", &context);
        prompt.notice_clashes("decisions.md", decisions.as_str());
        let memory = prompt.memory(&context, &decisions);
        let mut texts: Vec<String> = Vec::from_iter(memory);
        if !knowledge.files.is_empty() {
            let text = knowledge.text();
            prompt
                .parts
                .push(Part::new("knowledge", Some(knowledge.files.len()), &text));
            texts.push(text);
        }
        prompt.notices.extend(knowledge.notices);
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

    /// Changes single lines of the context.
    pub async fn update_context(
        &self,
        ctx: &Ctx,
        name: &str,
        change: &ContextChange,
    ) -> Result<(), Error> {
        let change = self.screened(ctx, "context", change)?;
        let memory = self.ready_or_new(ctx, name).await?;
        let today = Day::of(ctx.now);
        let empty = template("Current Context", today);
        let path = format!("{memory}/context.md");
        self.change(&path, &empty, |document| Ok(change.apply(document, today)?))
            .await
    }

    /// Replaces the whole context. `base` is what the writer had read: what others changed since
    /// then is merged, section by section, and where both changed the same lines both stay.
    pub async fn rewrite_context(
        &self,
        ctx: &Ctx,
        name: &str,
        text: &str,
        base: &str,
    ) -> Result<Vec<String>, Error> {
        if text.trim().is_empty() {
            let what = "is empty; a context is only ever replaced by something";
            return Err(Invalid::new("context", what).into());
        }
        let mut taken = TakenOut::default();
        let text = self
            .safety
            .clean_change("context", text, base, &mut taken)?;
        ctx.notices.extend(taken.sentences());
        let memory = self.ready_or_new(ctx, name).await?;
        let mut after = Document::parse(text);
        super::context::stamp(&mut after, Day::of(ctx.now));
        let path = format!("{memory}/context.md");
        let empty = template("Current Context", Day::of(ctx.now));
        self.change(&path, &empty, |document| {
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

    /// Writes a decision at the end of the log; says which line it went to.
    pub async fn decide(
        &self,
        ctx: &Ctx,
        name: &str,
        decision: &Decision,
    ) -> Result<String, Error> {
        let entry = self
            .screened(ctx, "decision", decision)?
            .print(Day::of(ctx.now))?;
        let memory = self.ready_or_new(ctx, name).await?;
        let path = format!("{memory}/decisions.md");
        self.change(&path, DECISIONS, |document| append(&path, document, &entry))
            .await?;
        Ok(path)
    }

    /// Writes a learning at the end of the patterns.
    pub async fn learn(&self, ctx: &Ctx, name: &str, learning: &Learning) -> Result<String, Error> {
        let entry = self
            .screened(ctx, "learning", learning)?
            .print(Day::of(ctx.now))?;
        let memory = self.ready_or_new(ctx, name).await?;
        let path = format!("{memory}/learnings.md");
        self.change(&path, LEARNINGS, |document| append(&path, document, &entry))
            .await?;
        Ok(path)
    }

    /// One of the agent's files as it is.
    pub async fn show(&self, name: &str, file: &str) -> Result<Option<String>, Error> {
        let memory = self.memory_of(name)?;
        let read = self.read(&format!("{memory}/{file}")).await?;
        Ok(read.map(|read| read.text))
    }

    /// The folder of the agent's memory, with nothing left undone in it.
    pub(super) async fn ready(&self, name: &str) -> Result<String, Error> {
        let memory = self.memory_of(name)?;
        self.check_folder(&memory).await?;
        self.recover(&memory).await?;
        Ok(memory)
    }

    /// That it is not a file.
    pub(super) async fn check_folder(&self, folder: &str) -> Result<(), Error> {
        match self.files.read(folder).await? {
            None => Ok(()),
            Some(_) => Err(Error::BadFile {
                path: folder.to_owned(),
                what: "is a file and should be a folder; move it away".to_owned(),
            }),
        }
    }

    /// The same for a write, which makes an agent that does not exist. Its name may be a typing
    /// error, so a notice says that it is new.
    pub(super) async fn ready_or_new(&self, ctx: &Ctx, name: &str) -> Result<String, Error> {
        let agent = self.agent(name)?;
        if self.files.list(&agent).await?.is_empty() {
            let known = match self.list().await?.is_empty() {
                true => String::new(),
                false => format!("; {}", self.known_names().await?),
            };
            ctx.notices.add(format!(
                "there was no agent `{name}` before, so it was made{known}"
            ));
        }
        self.ready(name).await
    }

    /// That there is such an agent, for verbs that make nothing.
    pub(super) async fn known(&self, name: &str) -> Result<(), Error> {
        let agent = self.agent(name)?;
        match self.files.list(&agent).await?.is_empty() {
            true => Err(self.no_agent(name).await?),
            false => Ok(()),
        }
    }

    async fn no_agent(&self, name: &str) -> Result<Error, Error> {
        let known = self.known_names().await?;
        Ok(Error::NotThere(format!(
            "there is no agent `{name}`; {known}"
        )))
    }

    /// The agents there are, in a sentence.
    async fn known_names(&self) -> Result<String, Error> {
        let known: Vec<String> = self
            .list()
            .await?
            .into_iter()
            .map(|agent| agent.name)
            .collect();
        Ok(match known.as_slice() {
            [] => format!("there are none below {}", self.agents()),
            names => format!(
                "there is: {}",
                names
                    .iter()
                    .take(10)
                    .cloned()
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
        })
    }
}

/// Puts an entry at the end, if its headings are read there as they are read on their own. Below
/// an open fence they are not; and a fence in the entry would close that one and let the rest of
/// the entry pass for something else.
pub(super) fn append(path: &str, document: &mut Document, entry: &str) -> Result<(), Error> {
    let before = document.sections().len();
    let start = document.append(entry);
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
    fn memory(&mut self, context: &str, decisions: &Document) -> Option<String> {
        let recent = decisions.recent(limits::RECENT_DECISIONS);
        let mut sections = Vec::new();
        if !context.trim().is_empty() {
            self.parts.push(Part::new("context", None, context));
            sections.push(format!(
                "### Current Context | Context hiện tại\n\n{}",
                context.trim_end()
            ));
        }
        if !recent.is_empty() {
            let entries: Vec<&str> = recent
                .iter()
                .map(|entry| decisions.entry_text(entry))
                .collect();
            let entries = entries.join(BETWEEN);
            self.parts
                .push(Part::new("decisions", Some(recent.len()), &entries));
            sections.push(format!(
                "### Recent Decisions | Quyết định gần đây\n\n{entries}"
            ));
        }
        if sections.is_empty() {
            return None;
        }
        Some(format!(
            "## Agent Memory | Memory của Agent\n\n{}",
            sections.join("\n\n")
        ))
    }

    pub(super) fn notice_clashes(&mut self, file: &str, text: &str) {
        if text.contains(CLASH) {
            self.notices.push(format!(
                "{file} holds two versions of the same lines (<<<<<<< …); keep one of them"
            ));
        }
    }
}
