//! `mnemon session save|load|list|fork|snapshot|restore|delete`

use std::path::PathBuf;

use mnemon_core::Invalid;
use mnemon_engine::Memory;
use mnemon_engine::session::{SessionId, SessionInfo, Sessions};

use super::super::door::Door;
use super::super::{input, text};
use crate::api::session_copy::{Copied, Places};
use crate::config::Config;
use crate::{Error, api, wiring};

/// Where the saved sessions lie.
#[derive(Debug, clap::Args)]
pub(super) struct Place {
    /// Whose sessions are meant; without it, those of nobody in particular
    #[arg(long, value_name = "NAME", conflicts_with = "folder")]
    user: Option<String>,
    /// Sessions as files DIR/SESSION.json, instead of those in the store
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(super) struct OneArgs {
    /// The session
    #[arg(value_name = "SESSION")]
    session: SessionId,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, clap::Args)]
pub(super) struct SaveArgs {
    #[command(flatten)]
    one: OneArgs,
    /// Where the states are read from; stdin otherwise
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(super) struct ForkArgs {
    #[command(flatten)]
    one: OneArgs,
    /// The new id
    #[arg(value_name = "NEW")]
    to: SessionId,
}

#[derive(Debug, clap::Args)]
pub(super) struct LabelArgs {
    #[command(flatten)]
    one: OneArgs,
    /// What the snapshot is called
    #[arg(value_name = "LABEL")]
    label: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct DeleteArgs {
    #[command(flatten)]
    one: OneArgs,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

/// The store is opened only if it is needed.
fn memory(place: &Place, door: &Door) -> Result<Option<Memory>, Error> {
    match place.folder {
        Some(_) => Ok(None),
        None => door.memory().map(Some),
    }
}

fn sessions<'a>(
    place: &Place,
    memory: Option<&'a Memory>,
    config: &Config,
) -> Result<Box<dyn Sessions + 'a>, Error> {
    match (&place.folder, memory) {
        (Some(folder), _) => {
            let files = wiring::session_files(&config.tenant.value, folder);
            Ok(Box::new(files.safety(config.safety())))
        }
        (None, Some(memory)) => Ok(Box::new(memory.sessions(place.user.as_deref())?)),
        (None, None) => Err(Error::Internal("no place for sessions".to_owned())),
    }
}

/// Whose conversations are meant when nobody is named, as in `mnemon chat`.
pub(super) const USER: &str = "default";

fn places<'a>(
    place: &'a Place,
    states: &'a dyn Sessions,
    memory: Option<&'a Memory>,
) -> Places<'a> {
    let user = place.user.as_deref().unwrap_or(USER);
    Places {
        states,
        talk: memory.map(|memory| (memory, user)),
    }
}

pub(super) async fn save(args: SaveArgs, door: &mut Door) -> Result<(), Error> {
    let json = match &args.file {
        Some(path) => input::file(path)?,
        None => input::stdin()?,
    };
    let state = serde_json::from_str(&json)
        .map_err(|error| Invalid::new("state", format!("is not JSON: {error}")))?;
    let memory = memory(&args.one.place, door)?;
    let place = sessions(&args.one.place, memory.as_ref(), &door.config)?;
    let request = api::session_save::Request {
        session: args.one.session,
        state,
    };
    let info = api::session_save::run(&*place, &door.ctx()?, request).await?;
    say("saved", &info, door)
}

pub(super) async fn load(args: OneArgs, door: &mut Door) -> Result<(), Error> {
    let memory = memory(&args.place, door)?;
    let place = sessions(&args.place, memory.as_ref(), &door.config)?;
    let request = api::session_load::Request {
        session: args.session,
    };
    let state = api::session_load::run(&*place, &door.ctx()?, request).await?;
    return_json!(door, &state);
    let json = serde_json::to_string_pretty(&state)
        .map_err(|error| Error::Internal(format!("a session has no JSON form: {error}")))?;
    // JSON has its control characters escaped, but not those that turn the line around.
    door.out.line(text::clean(&json))
}

pub(super) async fn list(args: Place, door: &mut Door) -> Result<(), Error> {
    let memory = memory(&args, door)?;
    let place = sessions(&args, memory.as_ref(), &door.config)?;
    let found = api::session_list::run(&*place, &door.ctx()?).await?;
    return_json!(door, &found);
    for what in &found.unreadable {
        door.out.note(what);
    }
    if found.sessions.is_empty() {
        return door.out.line("there are no saved sessions");
    }
    let rows = found.sessions.iter().map(|info| {
        vec![
            text::cut(&info.session_id, 60),
            info.component_count.to_string(),
            info.size.to_string(),
            text::local(info.last_modified),
        ]
    });
    let header = ["SESSION", "COMPONENTS", "BYTES", "SAVED"];
    door.out.table(&header, rows.collect())
}

pub(super) async fn fork(args: ForkArgs, door: &mut Door) -> Result<(), Error> {
    let memory = memory(&args.one.place, door)?;
    let place = sessions(&args.one.place, memory.as_ref(), &door.config)?;
    let places = places(&args.one.place, &*place, memory.as_ref());
    let request = api::session_fork::Request {
        session: args.one.session,
        to: args.to,
    };
    let info = api::session_fork::run(&places, &door.ctx()?, request).await?;
    say_copied("forked", &info, door)
}

pub(super) async fn snapshot(args: LabelArgs, door: &mut Door) -> Result<(), Error> {
    let memory = memory(&args.one.place, door)?;
    let place = sessions(&args.one.place, memory.as_ref(), &door.config)?;
    let places = places(&args.one.place, &*place, memory.as_ref());
    let request = api::session_snapshot::Request {
        session: args.one.session,
        label: args.label,
    };
    let info = api::session_snapshot::run(&places, &door.ctx()?, request).await?;
    say_copied("kept", &info, door)
}

pub(super) async fn restore(args: LabelArgs, door: &mut Door) -> Result<(), Error> {
    let memory = memory(&args.one.place, door)?;
    let place = sessions(&args.one.place, memory.as_ref(), &door.config)?;
    let places = places(&args.one.place, &*place, memory.as_ref());
    let request = api::session_restore::Request {
        session: args.one.session,
        label: args.label,
    };
    let info = api::session_restore::run(&places, &door.ctx()?, request).await?;
    say_copied("restored", &info, door)
}

pub(super) async fn delete(args: DeleteArgs, door: &mut Door) -> Result<(), Error> {
    let session = args.one.session;
    let question = match args.one.place.folder {
        Some(_) => format!("This deletes the file of session {session}; it cannot be undone."),
        None => format!("This deletes the saved states of session {session}."),
    };
    super::agreed(&question, args.yes)?;
    let memory = memory(&args.one.place, door)?;
    let place = sessions(&args.one.place, memory.as_ref(), &door.config)?;
    let request = api::session_delete::Request { session };
    let gone = api::session_delete::run(&*place, &door.ctx()?, request).await?;
    return_json!(door, &gone);
    let name = text::one_line(gone.deleted.as_str());
    door.out.line(format!("deleted: {name}"))
}

fn say(word: &str, info: &SessionInfo, door: &mut Door) -> Result<(), Error> {
    return_json!(door, info);
    let name = text::one_line(&info.session_id);
    let count = text::count(info.component_count as u64, "component");
    door.out.line(format!("{word}: {name} with {count}"))
}

fn say_copied(word: &str, copied: &Copied, door: &mut Door) -> Result<(), Error> {
    return_json!(door, copied);
    if copied.messages == 0 {
        return say(word, &copied.info, door);
    }
    let name = text::one_line(&copied.info.session_id);
    let count = text::count(copied.info.component_count as u64, "component");
    let messages = text::count(copied.messages as u64, "message");
    door.out
        .line(format!("{word}: {name} with {count} and {messages}"))
}
