//! Who may see a record, and who looks.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::Invalid;
use crate::model::limits;
use crate::model::owner::check_line;

/// Who may see a record, within its tenant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Audience {
    User(String),
    Agent(String),
    Team(String),
    /// Everyone in the tenant.
    Everyone,
}

impl Audience {
    /// The default for a record of this owner: the user if one is named, otherwise everyone.
    pub fn of_user(user: Option<&str>) -> Self {
        user.map_or(Self::Everyone, |user| Self::User(user.to_owned()))
    }

    /// Who may see a text that was derived from records with these audiences; `None` if nobody may.
    ///
    /// - Sources of one audience: that audience.
    /// - Sources of several users, or of users and everyone: everyone. The caller tells only what
    ///   several of them have in common.
    /// - If some sources are for one agent or one team, the text is for that agent or team, unless
    ///   the other sources are private to one user. Sources of two agents or teams have no common
    ///   audience.
    pub fn of_sources<'a>(sources: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        let sources: BTreeSet<&Self> = sources.into_iter().collect();
        let (closed, open): (Vec<&Self>, Vec<&Self>) =
            sources.into_iter().partition(|source| source.is_closed());
        let open = match open.as_slice() {
            [] => None,
            [only] => Some((*only).clone()),
            _ => Some(Self::Everyone),
        };
        match (closed.as_slice(), open) {
            ([], open) => open,
            ([only], None | Some(Self::Everyone)) => Some((*only).clone()),
            _ => None,
        }
    }

    /// Whether it is for one agent or one team. What is learnt from such records stays with them,
    /// however many users they have.
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Agent(_) | Self::Team(_))
    }

    /// The user, if it is for one user.
    pub fn user(&self) -> Option<&str> {
        match self {
            Self::User(user) => Some(user),
            _ => None,
        }
    }

    /// Somebody who sees what is for this audience and for everyone, and nothing else.
    pub fn viewer(&self) -> Viewer {
        let (mut user, mut agent, mut teams) = (None, None, Vec::new());
        match self.clone() {
            Self::User(name) => user = Some(name),
            Self::Agent(name) => agent = Some(name),
            Self::Team(name) => teams.push(name),
            Self::Everyone => {}
        }
        Viewer::Person { user, agent, teams }
    }

    /// A name to build ids and index keys from: the user's name, nothing for everyone, and for
    /// agents and teams a name that no user can have, because it holds a control character.
    pub fn key(&self) -> Option<String> {
        match self {
            Self::User(user) => Some(user.clone()),
            Self::Agent(_) | Self::Team(_) => Some(format!("\0{self}")),
            Self::Everyone => None,
        }
    }

    /// Names follow the rules for owners.
    pub fn check(&self) -> Result<(), Invalid> {
        match self {
            Self::User(name) | Self::Agent(name) | Self::Team(name) => {
                check_line("audience", name, limits::NAME_CHARS)
            }
            Self::Everyone => Ok(()),
        }
    }
}

impl fmt::Display for Audience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(name) => write!(f, "user:{name}"),
            Self::Agent(name) => write!(f, "agent:{name}"),
            Self::Team(name) => write!(f, "team:{name}"),
            Self::Everyone => f.write_str("everyone"),
        }
    }
}

impl FromStr for Audience {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let named = |name: &str| name.to_owned();
        let audience = match text.split_once(':') {
            Some(("user", name)) => Self::User(named(name)),
            Some(("agent", name)) => Self::Agent(named(name)),
            Some(("team", name)) => Self::Team(named(name)),
            None if text == "everyone" => Self::Everyone,
            _ => {
                let text = text.escape_debug();
                let what = format!(
                    "`{text}` is not an audience; use user:NAME, agent:NAME, team:NAME or everyone"
                );
                return Err(Invalid::new("audience", what));
            }
        };
        audience.check().map(|()| audience)
    }
}

impl Serialize for Audience {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Audience {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Who looks at records. There is no default: every search, list and lesson says who asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Viewer {
    /// Somebody who may see everything in the tenant: its administrator, upkeep, a local user.
    Tenant,
    /// Somebody who sees what is for everyone, and what is for this user, this agent or one of
    /// these teams.
    Person {
        #[serde(default)]
        user: Option<String>,
        #[serde(default)]
        agent: Option<String>,
        #[serde(default)]
        teams: Vec<String>,
    },
}

impl Viewer {
    /// A person without a name, who sees what is for everyone.
    pub const ANYONE: Self = Self::Person {
        user: None,
        agent: None,
        teams: Vec::new(),
    };

    /// This user.
    pub fn user(user: impl Into<String>) -> Self {
        Self::person(Some(user.into()), None)
    }

    /// This user at this agent.
    pub fn person(user: Option<String>, agent: Option<String>) -> Self {
        Self::Person {
            user,
            agent,
            teams: Vec::new(),
        }
    }

    /// The caller of an operation that may name a user and an agent: without a user it is the
    /// tenant, which sees everything.
    pub fn of_caller(user: Option<String>, agent: Option<String>) -> Self {
        match user {
            Some(user) => Self::person(Some(user), agent),
            None => Self::Tenant,
        }
    }

    /// Whether this viewer may see what is for this audience. Nothing else decides it.
    pub fn sees(&self, audience: &Audience) -> bool {
        let Self::Person { user, agent, teams } = self else {
            return true;
        };
        match audience {
            Audience::User(name) => user.as_ref() == Some(name),
            Audience::Agent(name) => agent.as_ref() == Some(name),
            Audience::Team(name) => teams.contains(name),
            Audience::Everyone => true,
        }
    }

    /// The audiences that a person sees beside everyone; `None` for the tenant, which sees all.
    pub fn audiences(&self) -> Option<Vec<Audience>> {
        let Self::Person { user, agent, teams } = self else {
            return None;
        };
        let user = user.iter().cloned().map(Audience::User);
        let agent = agent.iter().cloned().map(Audience::Agent);
        let teams = teams.iter().cloned().map(Audience::Team);
        Some(user.chain(agent).chain(teams).collect())
    }

    /// Names follow the rules for owners, and there are not too many teams.
    pub fn check(&self) -> Result<(), Invalid> {
        let audiences = self.audiences().unwrap_or_default();
        let most = limits::VIEWER_TEAMS + 2;
        if audiences.len() > most {
            let what = format!(
                "names more than {} teams; leave some out",
                limits::VIEWER_TEAMS
            );
            return Err(Invalid::new("viewer", what));
        }
        audiences.iter().try_for_each(Audience::check)
    }
}

#[cfg(test)]
mod tests;
