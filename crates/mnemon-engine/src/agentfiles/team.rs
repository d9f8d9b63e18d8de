//! Teams: shared context and decisions, handoffs from one member to another, blockers.

mod blockers;
mod handoffs;

use std::collections::BTreeMap;

use mnemon_core::markdown::Document;
use mnemon_core::{Ctx, Time, limits};
use serde::Serialize;

pub use blockers::{Blocker, BlockerInfo};
pub use handoffs::{Handoff, HandoffInfo};

use super::agent::{BETWEEN, Prompt, front_value};
use super::names::{self, Sort};
use super::{Activation, AgentFiles, Part};
use crate::records::Error;

/// A team that has files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TeamInfo {
    pub name: String,
    /// Where it is.
    pub folder: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lead: Option<String>,
    pub members: Vec<String>,
}

/// A member of a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Member {
    pub name: String,
    pub lead: bool,
    /// Its definition, if it has one.
    #[serde(skip)]
    path: Option<String>,
    /// Where its own memory is.
    #[serde(skip)]
    memory: String,
}

/// How a team stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TeamStatus {
    #[serde(flatten)]
    pub team: TeamInfo,
    /// Those that are not complete.
    pub handoffs: Vec<HandoffInfo>,
    /// Those that are not resolved.
    pub blockers: Vec<BlockerInfo>,
}

/// A team that was found.
#[derive(Debug, Clone)]
pub struct Team {
    pub name: String,
    pub folder: String,
    pub members: Vec<Member>,
}

impl Team {
    fn file(&self, name: &str) -> String {
        format!("{}/team-memory/{name}.md", self.folder)
    }

    fn info(&self) -> TeamInfo {
        TeamInfo {
            name: self.name.clone(),
            folder: self.folder.clone(),
            lead: self
                .members
                .iter()
                .find(|member| member.lead)
                .map(|member| member.name.clone()),
            members: self
                .members
                .iter()
                .map(|member| member.name.clone())
                .collect(),
        }
    }

    fn member(&self, name: &str) -> Result<&Member, Error> {
        let found = self
            .members
            .iter()
            .find(|member| member.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| {
            let names: Vec<&str> = self
                .members
                .iter()
                .map(|member| member.name.as_str())
                .collect();
            let known = if names.is_empty() {
                "it has none".to_owned()
            } else {
                format!("there is: {}", names.join(", "))
            };
            Error::NotThere(format!(
                "`{}` is not a member of {}; {known}",
                name.escape_debug(),
                self.name
            ))
        })
    }
}

/// `teams/NAME` or `agents/NAMESPACE/teams/NAME`: the folder, and what is left of the path.
fn team_of<'a>(root: &str, path: &'a str) -> Option<(String, &'a str, &'a str)> {
    let rest = path.strip_prefix(root)?.strip_prefix('/')?;
    let mut parts = rest.split('/');
    let depth = match parts.next()? {
        "teams" => 1,
        "agents" => {
            parts.next()?;
            (parts.next()? == "teams").then_some(3)?
        }
        _ => return None,
    };
    let name = parts.next()?;
    let before: usize = rest.split('/').take(depth).map(|part| part.len() + 1).sum();
    let inner = rest.get(before + name.len() + 1..)?;
    let folder = format!("{root}/{}{name}", rest.get(..before)?);
    names::check(Sort::Team, name).ok()?;
    Some((folder, name, inner))
}

/// The member that a file of a team belongs to, and whether it is its definition.
fn member_of(inner: &str) -> Option<(&str, bool)> {
    let inner = inner
        .strip_prefix("agents/")
        .or_else(|| inner.strip_prefix("members/"))
        .unwrap_or(inner);
    let (name, is_definition) = match inner.split_once('/') {
        Some((name, "agent.md")) => (name, true),
        Some((name, rest)) => (name, rest.strip_suffix(".md") == Some(name)),
        None => (inner.strip_suffix(".md")?, true),
    };
    let is_page = matches!(
        name.to_lowercase().as_str(),
        "readme" | "team" | "workflow" | "index"
    );
    (names::check(Sort::Agent, name).is_ok() && !is_page).then_some((name, is_definition))
}

impl AgentFiles {
    /// The teams, by folder.
    pub async fn teams(&self) -> Result<Vec<TeamInfo>, Error> {
        Ok(self.all_teams().await?.iter().map(Team::info).collect())
    }

    async fn all_teams(&self) -> Result<Vec<Team>, Error> {
        let listed = self.files.list(&self.root).await?;
        let mut folders: BTreeMap<String, (String, BTreeMap<String, Option<String>>)> =
            BTreeMap::new();
        for file in &listed {
            let Some((folder, name, inner)) = team_of(&self.root, &file.path) else {
                continue;
            };
            let team = folders
                .entry(folder)
                .or_insert_with(|| (name.to_owned(), BTreeMap::new()));
            if let Some((member, is_definition)) = member_of(inner) {
                let path = team.1.entry(member.to_owned()).or_default();
                if is_definition {
                    *path = Some(file.path.clone());
                }
            }
        }
        let mut teams = Vec::new();
        for (folder, (name, members)) in folders.into_iter().take(limits::AGENTS) {
            let mut found = Vec::new();
            for (member, path) in members {
                found.push(self.member(&folder, member, path).await?);
            }
            teams.push(Team {
                name,
                folder,
                members: found,
            });
        }
        Ok(teams)
    }

    async fn member(
        &self,
        folder: &str,
        name: String,
        path: Option<String>,
    ) -> Result<Member, Error> {
        let definition = match &path {
            Some(path) => self
                .read(path)
                .await?
                .map(|read| Document::parse(read.text)),
            None => None,
        };
        let says = definition
            .as_ref()
            .and_then(|doc| front_value(doc, "is_lead"));
        let lead = says.map_or(name.ends_with("-lead"), |says| says == "true");
        let beside = path
            .as_deref()
            .and_then(|path| path.strip_suffix("/agent.md"));
        let memory = beside.map_or_else(
            || format!("{folder}/{name}/memory"),
            |own| format!("{own}/memory"),
        );
        Ok(Member {
            name,
            lead,
            path,
            memory,
        })
    }

    /// The team with this name, or with this namespace and name (`core/web`).
    pub async fn team(&self, name: &str) -> Result<Team, Error> {
        let (namespace, short) = name
            .split_once('/')
            .map_or((None, name), |(space, short)| (Some(space), short));
        names::check(Sort::Team, short)?;
        if let Some(namespace) = namespace {
            names::check(Sort::Agent, namespace)?;
        }
        let all = self.all_teams().await?;
        let within = |team: &&Team| {
            namespace.is_none_or(|space| {
                team.folder == format!("{}/agents/{space}/teams/{short}", self.root)
            })
        };
        let found: Vec<&Team> = all
            .iter()
            .filter(|team| team.name == short)
            .filter(within)
            .collect();
        match found.as_slice() {
            [one] => Ok((*one).clone()),
            [] => {
                let names: Vec<&str> = all.iter().map(|team| team.name.as_str()).collect();
                let known = if names.is_empty() {
                    format!("there are none below {}", self.root)
                } else {
                    format!("there is: {}", names.join(", "))
                };
                Err(Error::NotThere(format!(
                    "there is no team `{name}`; {known}"
                )))
            }
            many => {
                let folders: Vec<&str> = many.iter().map(|team| team.folder.as_str()).collect();
                let what = format!(
                    "several are called `{short}` ({}); write NAMESPACE/NAME",
                    folders.join(", ")
                );
                Err(mnemon_core::Invalid::new("team", what).into())
            }
        }
    }

    /// What a member is told: the team's context and recent decisions, its own context, the
    /// handoffs that wait for it, and its prompt.
    pub async fn activate_member(&self, team: &str, member: &str) -> Result<Activation, Error> {
        let team = self.team(team).await?;
        let member = team.member(member)?.clone();
        self.recover(&member.memory).await?;
        let mut prompt = Prompt::default();
        let mut sections: Vec<String> = Vec::new();
        let mut tell = |prompt: &mut Prompt, title: &str, entries: Option<usize>, text: &str| {
            if !text.trim().is_empty() {
                prompt
                    .parts
                    .push(Part::new(&title.to_lowercase(), entries, text));
                sections.push(format!("## {title}\n\n{}", text.trim_end()));
            }
        };
        let context = self.text(&team.file("context")).await?;
        prompt.notice_clashes("team-memory/context.md", &context);
        tell(&mut prompt, "Team Context", None, &context);
        let decisions = Document::outline(self.text(&team.file("decisions")).await?);
        let recent = decisions.recent(limits::RECENT_TEAM_DECISIONS);
        let texts: Vec<&str> = recent
            .iter()
            .map(|entry| decisions.entry_text(entry))
            .collect();
        tell(
            &mut prompt,
            "Team Decisions",
            Some(texts.len()),
            &texts.join(BETWEEN),
        );
        let own = self.own_context(&member).await?;
        tell(&mut prompt, "Personal Context", None, &own);
        let handoffs = Document::parse(self.text(&team.file("handoffs")).await?);
        let waiting: Vec<String> = handoffs::all(&handoffs)
            .into_iter()
            .filter(|handoff| handoff.waits_for(&member.name))
            .map(|handoff| handoff.text)
            .collect();
        tell(
            &mut prompt,
            "Pending Handoffs",
            Some(waiting.len()),
            &waiting.join(BETWEEN),
        );
        let mut parts: Vec<String> = Vec::new();
        if !sections.is_empty() {
            parts.push(sections.join("\n\n"));
        }
        if let Some(path) = &member.path {
            let body = Document::parse(self.text(path).await?)
                .body()
                .trim_start()
                .to_owned();
            prompt.parts.push(Part::new("prompt", None, &body));
            parts.push(body);
        }
        Ok(Activation {
            prompt: parts.join(BETWEEN),
            parts: prompt.parts,
            notices: prompt.notices,
        })
    }

    /// The member's own context; it may be an agent beside the team as well.
    async fn own_context(&self, member: &Member) -> Result<String, Error> {
        let beside = format!("{}/{}/memory", self.agents(), member.name);
        for memory in [&member.memory, &beside] {
            if let Some(read) = self.read(&format!("{memory}/context.md")).await? {
                return Ok(read.text);
            }
        }
        Ok(String::new())
    }

    /// How a team stands: what waits, what is blocked, and for how long.
    pub async fn team_status(&self, ctx: &Ctx, team: &str) -> Result<TeamStatus, Error> {
        let team = self.team(team).await?;
        let handoffs = Document::parse(self.text(&team.file("handoffs")).await?);
        let blockers = Document::parse(self.text(&team.file("blockers")).await?);
        let open = handoffs::all(&handoffs)
            .into_iter()
            .filter(|handoff| !handoff.is_complete());
        Ok(TeamStatus {
            handoffs: open.collect(),
            blockers: blockers::open(&blockers, ctx.now),
            team: team.info(),
        })
    }

    /// The text of a file; empty when there is none.
    async fn text(&self, path: &str) -> Result<String, Error> {
        Ok(self
            .read(path)
            .await?
            .map(|read| read.text)
            .unwrap_or_default())
    }
}

/// `2025-12-31 14:30`, in UTC.
fn minute(now: Time) -> String {
    let text = now.to_string();
    text.get(..16)
        .map(|text| text.replace('T', " "))
        .unwrap_or(text)
}
