//! The list of conversations.

use mnemon_core::{Ctx, Filter, Kind, Owner, Scope, Time};
use serde::{Deserialize, Serialize};

use super::window::Snapshot;
use crate::memory::Memory;
use crate::records::Error;

/// A conversation as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversation {
    pub user: String,
    pub session: String,
    /// The project that it belongs to, as the store names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    pub messages: u64,
    /// When the newest message was appended.
    pub last: Time,
}

impl Memory {
    /// The conversations of a user, or of all users, the one that was used last first; at most
    /// [`Limits::sessions`](mnemon_core::Limits::sessions). A store that can group reads no message
    /// for this.
    pub async fn conversations(
        &self,
        ctx: &Ctx,
        user: Option<&str>,
    ) -> Result<Vec<Conversation>, Error> {
        let filter = Filter {
            owner: Owner::of(user, None),
            scopes: vec![Scope::Dialog],
            kinds: vec![Kind::Message],
            ..Filter::all_of_tenant()
        };
        let counted = self.records_of(Scope::Dialog).sessions(ctx, &filter);
        let conversations = counted.await?.into_iter().filter_map(|counted| {
            // A project is part of the session's name in the store; no session has a `/` itself.
            let (project, session) = match counted.session.rsplit_once('/') {
                Some((project, session)) => (Some(project.to_owned()), session.to_owned()),
                None => (None, counted.session),
            };
            Some(Conversation {
                user: counted.user?,
                session,
                project,
                messages: counted.records,
                last: counted.last,
            })
        });
        Ok(conversations.collect())
    }

    /// The snapshots of a conversation, the newest first.
    pub async fn snapshots(
        &self,
        ctx: &Ctx,
        conversation: &Conversation,
    ) -> Result<Vec<Snapshot>, Error> {
        let session = match &conversation.project {
            Some(project) => format!("{project}/{}", conversation.session),
            None => conversation.session.clone(),
        };
        let owner = Owner::of(Some(&conversation.user), Some(&session));
        self.window_of(owner).snapshots(ctx).await
    }
}
