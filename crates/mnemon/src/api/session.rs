//! The saved states of sessions; copies of a session also hold what was said in it.

use mnemon_core::{Ctx, ErrorKind, Invalid, Limits, limits};
use mnemon_engine::session::{self, SessionId, SessionInfo, SessionState, Sessions};
use mnemon_engine::{Memory, Window};
use serde::Serialize;
use serde_json::Value;

use crate::Error;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// By name.
    pub sessions: Vec<SessionInfo>,
    /// Names that look like sessions but cannot be read, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
}

/// The saved sessions.
pub async fn list(states: &dyn Sessions, ctx: &Ctx) -> Result<Listed, Error> {
    let mut listed = Listed::default();
    let names = states.list(ctx).await?;
    let most = Limits::DEFAULT.sessions;
    if names.len() == most {
        ctx.notices
            .add(format!("The list ends after {most} sessions."));
    }
    for name in names {
        let Ok(id) = name.parse::<SessionId>() else {
            continue;
        };
        match states.info(ctx, &id).await {
            Ok(info) => listed.sessions.extend(info),
            Err(error) => listed.unreadable.push(error.to_string()),
        }
    }
    Ok(listed)
}

/// The saved states as an envelope: `sessionId`, `components`, `timestamp`.
pub async fn load(states: &dyn Sessions, ctx: &Ctx, id: &SessionId) -> Result<Value, Error> {
    match states.load(ctx, id).await? {
        Some((state, _)) => Ok(state.to_json()),
        None => Err(not_found(id)),
    }
}

/// Saves the states of a session, in place of what was saved before: the envelope, or an object
/// with a state for each component.
pub async fn save(
    states: &dyn Sessions,
    ctx: &Ctx,
    id: &SessionId,
    state: Value,
) -> Result<SessionInfo, Error> {
    let state = SessionState::from_json(id, state, "the input");
    let mut state = state.map_err(asked_wrongly)?;
    state.timestamp = Some(ctx.now.to_string());
    let mut tries = 0;
    loop {
        let seen = states.load(ctx, id).await?.map(|(_, mark)| mark);
        tries += 1;
        match states.save(ctx, &state, seen.as_ref()).await {
            Err(error) if error.kind() == ErrorKind::Conflict && tries < limits::CHANGE_TRIES => {}
            done => break done?,
        }
    }
    let info = states.info(ctx, id).await?;
    info.ok_or_else(|| not_found(id))
}

/// A file of another shape is somebody else's; a request of another shape is a mistake.
fn asked_wrongly(error: mnemon_engine::Error) -> Error {
    match error {
        mnemon_engine::Error::NoSessionFile { what, .. } => Invalid::new("state", what).into(),
        other => other.into(),
    }
}

fn not_found(session: &SessionId) -> Error {
    mnemon_engine::Error::NoSession(session.to_string()).into()
}

/// Where a session lies that is copied.
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
    /// Makes a session once more under another id, which must be free.
    pub async fn fork(&self, ctx: &Ctx, id: &SessionId, to: &SessionId) -> Result<Copied, Error> {
        let (has_states, said) = self.find(ctx, id).await?;
        // Both are looked at first, so that no half of a fork is left behind.
        if self.has_states(ctx, to).await? || self.said(ctx, to).await?.is_some() {
            return Err(mnemon_engine::Error::SessionExists(to.to_string()).into());
        }
        if has_states {
            session::fork(self.states, ctx, id, to).await?;
        }
        let messages = match said {
            Some(window) => window.fork(ctx, to.as_str()).await?,
            None => 0,
        };
        self.copied(ctx, to, messages).await
    }

    /// Keeps a session as it is now, as `SESSION@LABEL`: its saved states, and its window.
    pub async fn snapshot(&self, ctx: &Ctx, id: &SessionId, label: &str) -> Result<Copied, Error> {
        let (has_states, said) = self.find(ctx, id).await?;
        if has_states {
            session::snapshot(self.states, ctx, id, label).await?;
        }
        let messages = match said {
            Some(window) => window.snapshot(ctx, label).await?,
            None => 0,
        };
        let kept = format!("{id}@{label}").parse()?;
        self.copied(ctx, &kept, messages).await
    }

    /// Makes a session what it was when a snapshot was taken: its saved states, and its window.
    pub async fn restore(&self, ctx: &Ctx, id: &SessionId, label: &str) -> Result<Copied, Error> {
        let kept: SessionId = format!("{id}@{label}").parse()?;
        let has_states = self.has_states(ctx, &kept).await?;
        let shown = match self.window(id)? {
            Some(window) => window.restore(ctx, label).await?,
            None => None,
        };
        if !has_states && shown.is_none() {
            return Err(not_found(&kept));
        }
        if has_states {
            session::restore(self.states, ctx, id, label).await?;
        }
        self.copied(ctx, id, shown.unwrap_or(0)).await
    }

    /// Whether the session has saved states, and its conversation. One of them must be there.
    async fn find(&self, ctx: &Ctx, id: &SessionId) -> Result<(bool, Option<Window<'a>>), Error> {
        let found = (self.has_states(ctx, id).await?, self.said(ctx, id).await?);
        match found {
            (false, None) => Err(not_found(id)),
            _ => Ok(found),
        }
    }

    fn window(&self, session: &SessionId) -> Result<Option<Window<'a>>, Error> {
        let window = self
            .talk
            .map(|(memory, user)| memory.window(user, session.as_str()));
        Ok(window.transpose()?)
    }

    /// The conversation, if something was said in it.
    async fn said(&self, ctx: &Ctx, session: &SessionId) -> Result<Option<Window<'a>>, Error> {
        match self.window(session)? {
            Some(window) if !window.is_empty(ctx).await? => Ok(Some(window)),
            _ => Ok(None),
        }
    }

    async fn has_states(&self, ctx: &Ctx, session: &SessionId) -> Result<bool, Error> {
        Ok(self.states.info(ctx, session).await?.is_some())
    }

    async fn copied(&self, ctx: &Ctx, id: &SessionId, messages: usize) -> Result<Copied, Error> {
        let info = self.states.info(ctx, id).await?;
        // A conversation need not have states.
        let info = info.unwrap_or_else(|| SessionInfo {
            session_id: id.to_string(),
            size: 0,
            last_modified: ctx.now,
            component_count: 0,
        });
        Ok(Copied { info, messages })
    }
}
