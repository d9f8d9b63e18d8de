//! The list of conversations, and the nearest names to one that does not exist.

use mnemon_core::{Ctx, Invalid, limits};
use mnemon_engine::{Conversation, Memory, Snapshot};
use serde::Serialize;

use super::Chat;
use crate::Error;

/// Conversations that an error names.
const NEAREST: usize = 3;

/// A page of the list, the conversation that was used last first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListRequest {
    /// Whose; without one, everybody's.
    pub user: Option<String>,
    pub limit: usize,
    /// How many conversations come before this page.
    pub skip: usize,
}

impl ListRequest {
    /// Conversations of a page when nobody says.
    pub const LIMIT: usize = 50;
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listed {
    #[serde(flatten)]
    pub conversation: Conversation,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub snapshots: Vec<Snapshot>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Page {
    /// The one that was used last comes first.
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
    let all = memory.conversations(ctx, request.user.as_deref()).await?;
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
    pub async fn unknown(&self, memory: &Memory, ctx: &Ctx) -> Result<Error, Error> {
        let user = (!self.names_other_users).then_some(self.user.as_str());
        let mut there = memory.conversations(ctx, user).await?;
        let alike = |conversation: &Conversation| {
            let session =
                strsim::normalized_damerau_levenshtein(&self.session, &conversation.session);
            session + strsim::normalized_damerau_levenshtein(&self.user, &conversation.user)
        };
        // Stable: of equals the one that was used last comes first.
        there.sort_by(|one, other| alike(other).total_cmp(&alike(one)));
        there.truncate(NEAREST);
        Ok(Error::NoConversation {
            user: self.user.clone(),
            session: self.session.clone(),
            nearest: there,
        })
    }
}
