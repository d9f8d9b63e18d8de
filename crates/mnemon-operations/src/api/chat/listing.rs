//! The list of conversations, and the nearest names to one that does not exist.

use std::cmp::Reverse;

use mnemon_core::{Ctx, Invalid, limits};
use mnemon_engine::{Conversation, Memory, Project, Snapshot};
use serde::{Deserialize, Serialize};

use super::Chat;
use crate::Error;
use crate::api::session_forget::InProject;

/// Conversations that an error names.
const NEAREST: usize = 3;
/// Characters of a name in an error.
const NAME_CHARS: usize = 60;

/// What the list is sorted by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sort {
    /// The conversation that was used last first.
    #[default]
    Last,
    /// The longest first.
    Messages,
    /// By name, without regard to case.
    Session,
    User,
}

impl Sort {
    /// All of them, by name.
    pub const ALL: [(&str, Self); 4] = [
        ("last", Self::Last),
        ("messages", Self::Messages),
        ("session", Self::Session),
        ("user", Self::User),
    ];

    /// The one of this name, or the usual one.
    pub fn of(word: Option<&str>) -> Self {
        let mut all = Self::ALL.iter();
        let sort = all.find(|(known, _)| word == Some(*known));
        sort.map_or(Self::default(), |(_, sort)| *sort)
    }

    /// Sorts conversations, of which the one that was used last comes first. Equals keep that order.
    fn arrange(self, all: &mut [Conversation]) {
        match self {
            Self::Last => {}
            Self::Messages => all.sort_by_key(|one| Reverse(one.messages)),
            Self::Session => all.sort_by_cached_key(|one| one.session.to_lowercase()),
            Self::User => all.sort_by_cached_key(|one| one.user.to_lowercase()),
        }
    }
}

/// A page of the list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListRequest {
    /// Whose; without one, everybody's.
    pub user: Option<String>,
    pub limit: usize,
    /// How many conversations come before this page.
    pub skip: usize,
    pub sort: Sort,
    /// The last one in the order comes first.
    pub is_reversed: bool,
}

impl ListRequest {
    /// Conversations of a page when nobody says.
    pub const LIMIT: usize = 50;
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    #[serde(flatten)]
    pub conversation: Conversation,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub snapshots: Vec<Snapshot>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    pub conversations: Vec<Listed>,
    /// The `skip` of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<usize>,
}

/// A page of the conversations with their snapshots.
pub async fn list(memory: &Memory, ctx: &Ctx, request: &ListRequest) -> Result<Page, Error> {
    if !(1..=limits::PAGE).contains(&request.limit) {
        let what = format!(
            "is {}, it must be from 1 to {}",
            request.limit,
            limits::PAGE
        );
        return Err(Invalid::new("limit", what).into());
    }
    let mut all = memory.conversations(ctx, request.user.as_deref()).await?;
    request.sort.arrange(&mut all);
    if request.is_reversed {
        all.reverse();
    }
    let end = request.skip.saturating_add(request.limit);
    let mut page = Page {
        next: (all.len() > end).then_some(end),
        ..Page::default()
    };
    let shown = all.into_iter().skip(request.skip).take(request.limit);
    for conversation in shown {
        let snapshots = memory.snapshots(ctx, &conversation).await?;
        page.conversations.push(Listed {
            conversation,
            snapshots,
        });
    }
    Ok(page)
}

impl Chat {
    /// The error for a conversation that is not there: it names the nearest ones.
    pub async fn unknown(&self) -> Result<Error, Error> {
        let user = (!self.names_other_users).then_some(self.user.as_str());
        let mut there = self.memory.conversations(&self.ctx, user).await?;
        let alike = |conversation: &Conversation| {
            let session =
                strsim::normalized_damerau_levenshtein(&self.session, &conversation.session);
            session + strsim::normalized_damerau_levenshtein(&self.user, &conversation.user)
        };
        // Stable: of equals the one that was used last comes first.
        there.sort_by(|one, other| alike(other).total_cmp(&alike(one)));
        let mut nearest = Vec::new();
        for one in &there {
            let name = self.described(one).await?;
            nearest.extend(name.filter(|name| !nearest.contains(name)));
            if nearest.len() == NEAREST {
                break;
            }
        }
        Ok(Error::NoConversation {
            user: short(&self.user),
            session: short(&self.session),
            nearest,
        })
    }

    /// The name of another conversation, and the option that opens it. A caller who may not see
    /// other users' conversations is not shown those of other projects either.
    async fn described(&self, other: &Conversation) -> Result<Option<String>, Error> {
        let (memory, ctx) = (&self.memory, &self.ctx);
        let session = format!("`{}`", short(&other.session));
        let of_user = format!("{session} of user `{}`", short(&other.user));
        let own = self.project.as_deref().map(Project::root);
        let root = memory.project_root(ctx, other).await?;
        if root.as_deref() == own && root.is_some() == other.project.is_some() {
            return Ok(Some(of_user));
        }
        if !self.names_other_users {
            return Ok(None);
        }
        let name = match other.user == self.user {
            true => session,
            false => of_user,
        };
        Ok(Some(match InProject::of(memory, ctx, other).await? {
            None => format!("{name} in no project (leave out --files)"),
            Some(InProject { project, files }) => {
                let project = short(&project);
                let how = files.map_or(String::new(), |files| {
                    let files = files.display().to_string();
                    format!(" (pass --files {})", files.escape_debug())
                });
                format!("{name} in project {project}{how}")
            }
        }))
    }
}

/// The name on one line, and not longer than a line.
fn short(name: &str) -> String {
    let mut short: String = name.chars().take(NAME_CHARS).collect();
    if short.len() < name.len() {
        short.push('…');
    }
    short.escape_debug().to_string()
}
