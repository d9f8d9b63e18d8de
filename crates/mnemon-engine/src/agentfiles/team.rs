//! Teams: shared context and decisions, handoffs from one member to another, blockers.

mod beginning;
mod blockers;
mod handoffs;

use std::collections::BTreeMap;

use mnemon_core::markdown::Document;
use mnemon_core::{Ctx, Time, limits};
use serde::{Deserialize, Serialize};

pub use beginning::NewTeam;
pub use blockers::{Blocker, BlockerInfo};
pub use handoffs::{Handoff, HandoffInfo};

use super::agent::{AgentInfo, BETWEEN, Prompt, front_value};
use super::home::meant;
use super::names::{self, Sort};
use super::{Activation, AgentFiles, Part, Warning};
use crate::records::Error;

/// A team that has files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamInfo {
    pub name: String,
    /// Where it is.
    pub folder: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lead: Option<String>,
    pub members: Vec<String>,
    /// Definitions of members that cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Warning>,
}

/// A member of a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Member {
    pub name: String,
    pub lead: bool,
    #[serde(skip)]
    description: Option<String>,
    /// Why its definition cannot be read.
    #[serde(skip)]
    problem: Option<Warning>,
    /// Its definition, if it has one.
    #[serde(skip)]
    path: Option<String>,
    /// Its folder in the team.
    #[serde(skip)]
    pub(super) folder: String,
}

/// How a team stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
            problems: self
                .members
                .iter()
                .filter_map(|member| member.problem.clone())
                .collect(),
        }
    }

    pub(super) fn member(&self, name: &str) -> Result<&Member, Error> {
        let found = self
            .members
            .iter()
            .find(|member| member.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| {
            let members = self.members.iter().map(|member| member.name.clone());
            let known: Vec<String> = members.collect();
            Error::NoAgent(format!(
                "`{}` is not a member of {}{}",
                name.escape_debug(),
                self.name,
                meant(name, &known)
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
                found.push(self.member(&folder, member, path).await);
            }
            teams.push(Team {
                name,
                folder,
                members: found,
            });
        }
        Ok(teams)
    }

    async fn member(&self, folder: &str, name: String, path: Option<String>) -> Member {
        let (definition, problem) = match &path {
            Some(path) => self.readable(path).await,
            None => (Document::parse(""), None),
        };
        let says = front_value(&definition, "is_lead");
        let lead = says.map_or(name.ends_with("-lead"), |says| says == "true");
        let beside = path
            .as_deref()
            .and_then(|path| path.strip_suffix("/agent.md"));
        let folder = beside.map_or_else(|| format!("{folder}/{name}"), str::to_owned);
        Member {
            name,
            lead,
            description: front_value(&definition, "description"),
            problem,
            path,
            folder,
        }
    }

    /// The members of all teams, each as `TEAM/MEMBER`.
    pub(super) async fn members(&self) -> Result<Vec<AgentInfo>, Error> {
        let teams = self.all_teams().await?;
        let mut found = Vec::new();
        for team in &teams {
            let same = teams.iter().filter(|other| other.name == team.name);
            let space = team.folder.strip_prefix(&format!("{}/", self.agents()));
            let space = space.and_then(|rest| rest.split('/').next());
            let lead = match space.filter(|_| same.count() > 1) {
                Some(space) => format!("{space}/{}", team.name),
                None => team.name.clone(),
            };
            for member in &team.members {
                let memory = self.memory_of_member(member).await?;
                let files = self.files.list(&memory).await?;
                let files = files.iter().filter(|file| file.path.ends_with(".md"));
                found.push(AgentInfo {
                    name: format!("{lead}/{}", member.name),
                    description: member.description.clone(),
                    files: files.count(),
                    problem: member.problem.clone(),
                });
            }
        }
        Ok(found)
    }

    /// Where a member's own context and logs are: in the team, unless it has none there and an
    /// agent beside the team has its name.
    pub(super) async fn memory_of_member(&self, member: &Member) -> Result<String, Error> {
        let own = format!("{}/memory", member.folder);
        let beside = format!("{}/{}/memory", self.agents(), member.name);
        let is_beside =
            self.files.list(&own).await?.is_empty() && !self.files.list(&beside).await?.is_empty();
        Ok(if is_beside { beside } else { own })
    }

    /// A member of the team, or an agent beside it that works with the team.
    async fn find_member(&self, team: &Team, name: &str) -> Result<Member, Error> {
        match team.member(name) {
            Ok(member) => Ok(member.clone()),
            Err(error) => {
                let Ok(folder) = self.agent(name) else {
                    return Err(error);
                };
                if self.files.list(&folder).await?.is_empty() {
                    return Err(error);
                }
                let path = format!("{folder}/agent.md");
                let path = self.read(&path).await?.map(|_| path);
                Ok(Member {
                    name: name.to_owned(),
                    lead: false,
                    description: None,
                    problem: None,
                    path,
                    folder,
                })
            }
        }
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
                let known: Vec<String> = all.iter().map(|team| team.name.clone()).collect();
                let known = meant(short, &known);
                Err(Error::NoAgent(format!("there is no team `{name}`{known}")))
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
    /// handoffs that wait for it, the knowledge that its task asks for, and its prompt.
    pub async fn activate_member(
        &self,
        team: &str,
        member: &str,
        task: Option<&str>,
    ) -> Result<Activation, Error> {
        let team = self.team(team).await?;
        let member = self.find_member(&team, member).await?;
        let memory = self.memory_of_member(&member).await?;
        self.recover(&memory).await?;
        let mut prompt = Prompt::default();
        let sections = self.sections(&team, &member, &memory, &mut prompt).await?;
        let mut parts: Vec<String> = Vec::new();
        if !sections.is_empty() {
            parts.push(sections.join("\n\n"));
        }
        let knowledge = self.knowledge(&member.folder, task.unwrap_or_default());
        parts.extend(prompt.knowledge(knowledge.await?));
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

    /// What a team and its member remember, in the order of the format.
    async fn sections(
        &self,
        team: &Team,
        member: &Member,
        memory: &str,
        prompt: &mut Prompt,
    ) -> Result<Vec<String>, Error> {
        let context = self.checked(&team.file("context"), prompt).await?;
        let decisions = self.checked(&team.file("decisions"), prompt).await?;
        let handoffs = self.checked(&team.file("handoffs"), prompt).await?;
        let own = format!("{memory}/context.md");
        let own = self.checked(&own, prompt).await?;
        let others = ["decisions", "learnings"].map(|file| format!("{memory}/{file}.md"));
        for path in [team.file("blockers")].iter().chain(&others) {
            self.checked(path, prompt).await?;
        }
        let decisions = Document::outline(decisions);
        let recent = decisions.recent(limits::RECENT_TEAM_DECISIONS);
        let recent: Vec<&str> = recent
            .iter()
            .map(|entry| decisions.entry_text(entry))
            .collect();
        let waiting: Vec<String> = handoffs::all(&Document::parse(handoffs))
            .into_iter()
            .filter(|handoff| handoff.waits_for(&member.name))
            .map(|handoff| handoff.text)
            .collect();
        let mut sections = Vec::new();
        for (title, entries, text) in [
            ("Team Context", None, context),
            ("Team Decisions", Some(recent.len()), recent.join(BETWEEN)),
            ("Personal Context", None, own),
            (
                "Pending Handoffs",
                Some(waiting.len()),
                waiting.join(BETWEEN),
            ),
        ] {
            if !text.trim().is_empty() {
                let part = Part::new(&title.to_lowercase(), entries, &text);
                prompt.parts.push(part);
                sections.push(format!("## {title}\n\n{}", text.trim_end()));
            }
        }
        Ok(sections)
    }

    /// The text of a file, with a notice if it holds conflict marks.
    pub(super) async fn checked(&self, path: &str, prompt: &mut Prompt) -> Result<String, Error> {
        let text = self.text(path).await?;
        prompt.notice_conflict(path, &text);
        Ok(text)
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
    pub(super) async fn text(&self, path: &str) -> Result<String, Error> {
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
