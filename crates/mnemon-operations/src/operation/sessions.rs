//! Operations on the saved states of an agent's components.

use std::path::Path;
use std::sync::Arc;

use mnemon_core::{Invalid, limits};
use mnemon_engine::Memory;
use mnemon_engine::session::{self, SessionId, SessionInfo, Sessions};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Access, Arguments, Field, Interface, Operation, SessionDelete, SessionFork, SessionList,
    SessionLoad, SessionRestore, SessionSave, SessionSnapshot, Spelling,
};
use crate::api::session::Listed;
use crate::{Error, api, wiring};

fn place() -> [Field; 2] {
    let user = "User who owns the sessions; without it, those that belong to no user";
    let folder = "Use files DIR/SESSION.json instead of the store";
    [
        super::notes::user(user).excludes("folder"),
        Field::text("folder", limits::PATH_BYTES, folder)
            .value("DIR")
            .only(Interface::CommandLine)
            .local(),
    ]
}

fn of_session() -> Vec<Field> {
    let session = Field::text("session", limits::NAME_CHARS, "Id of the session").required();
    let session = session.positional(Spelling::Positional, "SESSION");
    std::iter::once(session).chain(place()).collect()
}

fn with(name: &'static str, value: &'static str, about: &'static str) -> Vec<Field> {
    let field = Field::text(name, limits::NAME_CHARS, about).required();
    let mut fields = of_session();
    fields.insert(1, field.positional(Spelling::Positional, value));
    fields
}

fn id(arguments: &Arguments, name: &str) -> Result<SessionId, Invalid> {
    let id = arguments.needed(name).parse();
    id.map_err(|wrong: Invalid| Invalid::new(name, wrong.what))
}

/// Where the saved sessions lie.
fn sessions<'a>(
    access: &Access<'a, Arc<Memory>>,
    arguments: &Arguments,
) -> Result<Box<dyn Sessions + 'a>, Error> {
    let config = access.config;
    if let Some(folder) = arguments.text("folder") {
        let files = wiring::session_files(&config.tenant.value, Path::new(&folder));
        return Ok(Box::new(files.safety(config.safety())));
    }
    let user = arguments.text("user").or(access.user.map(str::to_owned));
    Ok(Box::new(access.memory.sessions(user.as_deref())?))
}

impl Operation for SessionSave {
    const COMMAND: &'static str = "session save";
    type Answer = SessionInfo;

    fn fields() -> Vec<Field> {
        let state = "The states: an object with `sessionId` and `components`, or one with a state for \
            each component";
        let state = Field::json("state", state).required();
        let mut fields = of_session();
        fields.push(state.only(Interface::Http));
        fields
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<SessionInfo, Error> {
        let (place, id) = (sessions(access, &arguments)?, id(&arguments, "session")?);
        let state = arguments.take("state").unwrap_or_default();
        api::session::save(&*place, access.ctx, &id, state).await
    }
}

impl Operation for SessionLoad {
    const COMMAND: &'static str = "session load";
    type Answer = Value;

    fn fields() -> Vec<Field> {
        of_session()
    }

    async fn run(access: &Access<'_>, arguments: Arguments) -> Result<Value, Error> {
        let place = sessions(access, &arguments)?;
        api::session::load(&*place, access.ctx, &id(&arguments, "session")?).await
    }
}

impl Operation for SessionList {
    const COMMAND: &'static str = "session list";
    type Answer = Listed;

    fn fields() -> Vec<Field> {
        place().into()
    }

    async fn run(access: &Access<'_>, arguments: Arguments) -> Result<Listed, Error> {
        api::session::list(&*sessions(access, &arguments)?, access.ctx).await
    }
}

impl Operation for SessionFork {
    const COMMAND: &'static str = "session fork";
    type Answer = SessionInfo;

    fn fields() -> Vec<Field> {
        with("to", "NEW", "Id of the copy")
    }

    async fn run(access: &Access<'_>, arguments: Arguments) -> Result<SessionInfo, Error> {
        let place = sessions(access, &arguments)?;
        let (from, to) = (id(&arguments, "session")?, id(&arguments, "to")?);
        session::fork(&*place, access.ctx, &from, &to).await?;
        api::session::info(&*place, access.ctx, &to).await
    }
}

impl Operation for SessionSnapshot {
    const COMMAND: &'static str = "session snapshot";
    type Answer = SessionInfo;

    fn fields() -> Vec<Field> {
        with("label", "LABEL", "Label of the snapshot")
    }

    async fn run(access: &Access<'_>, arguments: Arguments) -> Result<SessionInfo, Error> {
        let (place, id) = (sessions(access, &arguments)?, id(&arguments, "session")?);
        let label = arguments.needed("label");
        let made = session::snapshot(&*place, access.ctx, &id, &label).await?;
        api::session::info(&*place, access.ctx, &made).await
    }
}

impl Operation for SessionRestore {
    const COMMAND: &'static str = "session restore";
    type Answer = SessionInfo;

    fn fields() -> Vec<Field> {
        with("label", "LABEL", "Label of the snapshot")
    }

    async fn run(access: &Access<'_>, arguments: Arguments) -> Result<SessionInfo, Error> {
        let (place, id) = (sessions(access, &arguments)?, id(&arguments, "session")?);
        session::restore(&*place, access.ctx, &id, &arguments.needed("label")).await?;
        api::session::info(&*place, access.ctx, &id).await
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub struct DeletedSession {
    pub deleted: String,
}

impl Operation for SessionDelete {
    const COMMAND: &'static str = "session delete";
    type Answer = DeletedSession;

    fn fields() -> Vec<Field> {
        of_session()
    }

    async fn run(access: &Access<'_>, arguments: Arguments) -> Result<DeletedSession, Error> {
        let (place, id) = (sessions(access, &arguments)?, id(&arguments, "session")?);
        if !place.delete(access.ctx, &id).await? {
            return Err(mnemon_engine::Error::NoSession(id.to_string()).into());
        }
        Ok(DeletedSession {
            deleted: id.to_string(),
        })
    }
}
