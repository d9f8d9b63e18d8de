//! What copies of a session are made of: its saved states, and what was said in it.

use mnemon_core::Ctx;
use mnemon_engine::session::{SessionId, SessionInfo, Sessions};
use mnemon_engine::{Memory, Window};
use serde::Serialize;

use crate::Error;

/// Where a session lies.
pub struct Places<'a> {
    pub states: &'a dyn Sessions,
    /// The memory and the user whose conversations are meant; none when only files are.
    pub talk: Option<(&'a Memory, &'a str)>,
}

/// A session that was made, or made anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Copied {
    #[serde(flatten)]
    pub info: SessionInfo,
    /// What its conversation has: of a fork everything that was said, of a snapshot what its window
    /// shows.
    pub messages: usize,
}

impl<'a> Places<'a> {
    pub(super) fn window(&self, session: &SessionId) -> Result<Option<Window<'a>>, Error> {
        let window = self
            .talk
            .map(|(memory, user)| memory.window(user, session.as_str()));
        Ok(window.transpose()?)
    }

    /// The conversation, if something was said in it.
    pub(super) async fn said(
        &self,
        ctx: &Ctx,
        session: &SessionId,
    ) -> Result<Option<Window<'a>>, Error> {
        match self.window(session)? {
            Some(window) if !window.is_empty(ctx).await? => Ok(Some(window)),
            _ => Ok(None),
        }
    }

    /// Whether states were saved under this id.
    pub(super) async fn has_states(&self, ctx: &Ctx, session: &SessionId) -> Result<bool, Error> {
        Ok(self.states.info(ctx, session).await?.is_some())
    }

    pub(super) async fn copied(
        &self,
        ctx: &Ctx,
        session: &SessionId,
        messages: usize,
    ) -> Result<Copied, Error> {
        let info = self.states.info(ctx, session).await?;
        // A conversation need not have states.
        let info = info.unwrap_or_else(|| SessionInfo {
            session_id: session.to_string(),
            size: 0,
            last_modified: ctx.now,
            component_count: 0,
        });
        Ok(Copied { info, messages })
    }
}

pub(super) fn not_found(session: &SessionId) -> Error {
    mnemon_engine::Error::NoSession(session.to_string()).into()
}
