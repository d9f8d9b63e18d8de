//! Where the files of an agent, a member of a team or a team are, by name.

use mnemon_core::markdown::Language;
use mnemon_core::{Ctx, Invalid};

use super::names::{self, Sort};
use super::writing::language;
use super::{AgentFiles, Team};
use crate::records::Error;

/// Whose files are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose<'a> {
    /// `AGENT`, or a member of a team: `TEAM/MEMBER`, `NAMESPACE/TEAM/MEMBER`.
    Agent(&'a str),
    /// The shared files of `TEAM` or `NAMESPACE/TEAM`.
    Team(&'a str),
}

impl<'a> From<&'a str> for Whose<'a> {
    fn from(agent: &'a str) -> Self {
        Self::Agent(agent)
    }
}

impl<'a> From<&'a String> for Whose<'a> {
    fn from(agent: &'a String) -> Self {
        Self::Agent(agent)
    }
}

/// The files of an agent, a member or a team.
#[derive(Debug, Clone)]
pub(super) struct Home {
    /// The folder of its definition and knowledge.
    pub(super) folder: String,
    /// The folder of its context and logs.
    pub(super) memory: String,
    pub(super) is_team: bool,
}

impl Home {
    /// The title of a new context.
    pub(super) fn title(&self) -> &'static str {
        match self.is_team {
            true => "Team Context",
            false => "Current Context",
        }
    }

    pub(super) fn file(&self, name: &str) -> String {
        format!("{}/{name}.md", self.memory)
    }

    /// The files that hold entries.
    pub(super) fn logs(&self) -> Vec<String> {
        let names: &[&str] = match self.is_team {
            true => &["decisions"],
            false => &["decisions", "learnings"],
        };
        names.iter().map(|name| self.file(name)).collect()
    }
}

/// `TEAM/MEMBER` or `NAMESPACE/TEAM/MEMBER`: the team and the member.
pub(super) fn member_address(name: &str) -> Result<Option<(&str, &str)>, Invalid> {
    let address = name.rsplit_once('/');
    if address.is_some() {
        name.split('/')
            .try_for_each(|part| names::check(Sort::Agent, part))?;
    }
    Ok(address)
}

impl AgentFiles {
    /// Where the files are, or would be. A team must be there, and so must a member.
    pub(super) async fn home(&self, whose: Whose<'_>) -> Result<Home, Error> {
        let is_team = matches!(whose, Whose::Team(_));
        let (folder, memory) = match whose {
            Whose::Team(name) => {
                let team = self.team(name).await?;
                (team.folder.clone(), format!("{}/team-memory", team.folder))
            }
            Whose::Agent(name) => match member_address(name)? {
                None => {
                    let folder = self.agent(name)?;
                    (folder.clone(), format!("{folder}/memory"))
                }
                Some((team, member)) => {
                    let team = self.team(team).await?;
                    self.home_of_member(&team, member).await?
                }
            },
        };
        Ok(Home {
            folder,
            memory,
            is_team,
        })
    }

    async fn home_of_member(&self, team: &Team, name: &str) -> Result<(String, String), Error> {
        match team.member(name) {
            Ok(member) => {
                let memory = self.memory_of_member(member).await?;
                Ok((member.folder.clone(), memory))
            }
            Err(_) if self.creates => {
                names::check(Sort::Agent, name)?;
                let folder = format!("{}/{name}", team.folder);
                Ok((folder.clone(), format!("{folder}/memory")))
            }
            Err(error) => Err(error),
        }
    }

    /// Where there are files of this agent or team, and nothing is left undone among them.
    pub(super) async fn ready(&self, whose: Whose<'_>) -> Result<Home, Error> {
        let home = self.home(whose).await?;
        self.check_folder(&home.memory).await?;
        self.check_known(whose, &home).await?;
        self.recover(&home.memory).await?;
        Ok(home)
    }

    /// That the agent has files.
    pub(super) async fn check_known(&self, whose: Whose<'_>, home: &Home) -> Result<(), Error> {
        match whose {
            Whose::Agent(name) if self.files.list(&home.folder).await?.is_empty() => {
                Err(self.no_agent(name).await?)
            }
            _ => Ok(()),
        }
    }

    /// The same for a write, which makes an agent only if that was asked for: the name may be a
    /// typing error.
    pub(super) async fn ready_to_write(&self, ctx: &Ctx, whose: Whose<'_>) -> Result<Home, Error> {
        match self.ready(whose).await {
            Err(Error::NoAgent(_)) if self.creates => {
                let home = self.home(whose).await?;
                if let Whose::Agent(name) = whose {
                    ctx.notices.add(format!("made the agent `{name}`"));
                }
                Ok(home)
            }
            other => other,
        }
    }

    /// The language of new files: that of the context beside them, or what is set.
    pub(super) async fn language_of(&self, home: &Home) -> Result<Language, Error> {
        let context = self.read(&home.file("context")).await?;
        let text = context.map(|read| read.text).unwrap_or_default();
        Ok(language(&text, self.language))
    }

    /// That there is no such agent, which one may have been meant, and which there are.
    pub(super) async fn no_agent(&self, name: &str) -> Result<Error, Error> {
        let known: Vec<String> = self.list().await?.into_iter().map(|one| one.name).collect();
        let teams = self.teams().await?;
        let what = match teams.iter().find(|team| team.name == name) {
            Some(team) => format!(
                "`{name}` is a team; name a member: {}",
                addresses(&team.members, name)
            ),
            None => format!(
                "there is no agent `{}`{}",
                name.escape_debug(),
                meant(name, &known)
            ),
        };
        Ok(Error::NoAgent(what))
    }
}

fn addresses(members: &[String], team: &str) -> String {
    let names = members.iter().map(|member| format!("{team}/{member}"));
    names.collect::<Vec<_>>().join(", ")
}

/// The nearest of the known names, then the first of them.
pub(super) fn meant(name: &str, known: &[String]) -> String {
    let last = |name: &str| name.rsplit('/').next().unwrap_or_default().to_lowercase();
    let nearness = |other: &String| {
        let whole = strsim::jaro_winkler(&name.to_lowercase(), &other.to_lowercase());
        whole.max(strsim::jaro_winkler(&last(name), &last(other)))
    };
    let nearest = known
        .iter()
        .map(|other| (nearness(other), other))
        .filter(|(nearness, _)| *nearness > 0.8)
        .max_by(|one, other| one.0.total_cmp(&other.0));
    let nearest = nearest.map(|(_, other)| format!("; did you mean `{other}`?"));
    let shown: Vec<&str> = known.iter().take(10).map(String::as_str).collect();
    match (nearest, shown.is_empty()) {
        (Some(nearest), _) => nearest,
        (None, true) => "; none exists yet".to_owned(),
        (None, false) => format!("; known: {}", shown.join(", ")),
    }
}
