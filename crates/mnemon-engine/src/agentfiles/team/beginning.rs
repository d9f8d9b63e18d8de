//! A new team: its shared files and its members.

use mnemon_core::markdown::{Day, Document};
use mnemon_core::{Ctx, Invalid};
use serde::{Deserialize, Serialize};

use crate::agentfiles::agent::front_value;
use crate::agentfiles::context::template;
use crate::agentfiles::names::{self, Sort};
use crate::agentfiles::writing::{BLOCKERS, HANDOFFS, empty_decisions, empty_log};
use crate::agentfiles::{AgentFiles, Whose};
use crate::records::Error;

/// A team that is to be made, or gets more members.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NewTeam {
    /// `TEAM`, or `NAMESPACE/TEAM`.
    pub team: String,
    pub lead: Option<String>,
    pub members: Vec<String>,
}

impl AgentFiles {
    /// Makes a team with its members; of a team that is there, what is missing. Returns the files
    /// that were made.
    pub async fn begin_team(&self, ctx: &Ctx, new: &NewTeam) -> Result<Vec<String>, Error> {
        let folder = self.folder_of_team(&new.team).await?;
        let language = self.language;
        let shared = [
            (
                "context",
                template("Team Context", Day::of(ctx.now), language),
            ),
            ("decisions", empty_decisions(language)),
            ("handoffs", empty_log(HANDOFFS, language)),
            ("blockers", empty_log(BLOCKERS, language)),
        ];
        let path = |name: &str| format!("{folder}/team-memory/{name}.md");
        let mut files = Vec::from(shared.map(|(name, text)| (path(name), text)));
        if let Some(lead) = &new.lead {
            self.check_lead(&new.team, lead).await?;
        }
        let lead = new.lead.as_ref().map(|name| (name, true));
        let members = new.members.iter().map(|name| (name, false));
        for (name, is_lead) in lead.into_iter().chain(members) {
            files.extend(self.new_member(ctx, &folder, name, is_lead).await?);
        }
        let made = self.write_new(files).await?;
        if made.is_empty() {
            return Err(Error::AgentExists(new.team.clone()));
        }
        Ok(made)
    }

    /// That the member leads the team already, or can: files that are there are not changed.
    async fn check_lead(&self, team: &str, name: &str) -> Result<(), Error> {
        let team = match self.team(team).await {
            Ok(team) => team,
            Err(Error::NoAgent(_)) => return Ok(()),
            Err(error) => return Err(error),
        };
        let what = match (team.members.iter().find(|one| one.lead), team.member(name)) {
            (Some(lead), _) if lead.name.eq_ignore_ascii_case(name) => return Ok(()),
            (Some(lead), _) => format!(
                "`{name}` cannot lead {}: `{}` does; change is_lead in the agent.md of both",
                team.name, lead.name
            ),
            (None, Ok(member)) => format!(
                "`{name}` is a member of {} already; set is_lead: true in {}/agent.md",
                team.name, member.folder
            ),
            (None, Err(_)) => return Ok(()),
        };
        Err(Invalid::new("lead", what).into())
    }

    async fn folder_of_team(&self, name: &str) -> Result<String, Error> {
        match self.team(name).await {
            Ok(team) => return Ok(team.folder),
            Err(Error::NoAgent(_)) => {}
            Err(error) => return Err(error),
        }
        Ok(match name.split_once('/') {
            Some((namespace, short)) => format!("{}/{namespace}/teams/{short}", self.agents()),
            None => format!("{}/teams/{name}", self.root),
        })
    }

    /// The files of a new member. An agent of that name lends it its description and its memory.
    async fn new_member(
        &self,
        ctx: &Ctx,
        team: &str,
        name: &str,
        is_lead: bool,
    ) -> Result<Vec<(String, String)>, Error> {
        names::check(Sort::Agent, name)?;
        let agent = self.home(Whose::Agent(name)).await?;
        let definition = self.text(&format!("{}/agent.md", agent.folder)).await?;
        let described = front_value(&Document::parse(definition), "description");
        let word = if is_lead { "Lead" } else { "Member" };
        let short = team.rsplit('/').next().unwrap_or_default();
        let description = described.unwrap_or_else(|| format!("{word} of the team {short}"));
        let folder = format!("{team}/{name}");
        let mut files = vec![self.definition(ctx, &folder, name, &description, is_lead)?];
        if self.files.list(&agent.memory).await?.is_empty() {
            files.extend(self.empty_memory(ctx, &format!("{folder}/memory")));
        }
        Ok(files)
    }
}
