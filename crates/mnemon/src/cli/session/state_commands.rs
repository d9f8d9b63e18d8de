//! `mnemon session save|load|list|fork|snapshot|restore|delete`

use std::path::PathBuf;

use mnemon_core::Invalid;
use mnemon_engine::Memory;
use mnemon_engine::session::{Session, SessionId, SessionInfo, Sessions};
use serde_json::json;

use super::super::door::Door;
use super::super::{input, text};
use crate::api::session::Places;
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
    pub(super) one: OneArgs,
    /// The new id
    #[arg(value_name = "NEW")]
    pub(super) to: SessionId,
}

#[derive(Debug, clap::Args)]
pub(super) struct LabelArgs {
    #[command(flatten)]
    pub(super) one: OneArgs,
    /// What the snapshot is called
    #[arg(value_name = "LABEL")]
    pub(super) label: String,
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

pub(super) async fn save(args: SaveArgs, door: &mut Door) -> Result<(), Error> {
    let json = match &args.file {
        Some(path) => input::file(path)?,
        None => input::stdin()?,
    };
    let state = serde_json::from_str(&json)
        .map_err(|error| Invalid::new("state", format!("is not JSON: {error}")))?;
    let memory = memory(&args.one.place, door)?;
    let place = sessions(&args.one.place, memory.as_ref(), &door.config)?;
    let info = api::session::save(&*place, &door.ctx()?, &args.one.session, state).await?;
    return_json!(door, &info);
    say("saved", &info, 0, door)
}

pub(super) async fn load(args: OneArgs, door: &mut Door) -> Result<(), Error> {
    let memory = memory(&args.place, door)?;
    let place = sessions(&args.place, memory.as_ref(), &door.config)?;
    let state = api::session::load(&*place, &door.ctx()?, &args.session).await?;
    return_json!(door, &state);
    let json = serde_json::to_string_pretty(&state)
        .map_err(|error| Error::Internal(format!("a session has no JSON form: {error}")))?;
    // JSON has its control characters escaped, but not those that turn the line around.
    door.out.line(text::clean(&json))
}

pub(super) async fn list(args: Place, door: &mut Door) -> Result<(), Error> {
    let memory = memory(&args, door)?;
    let place = sessions(&args, memory.as_ref(), &door.config)?;
    let found = api::session::list(&*place, &door.ctx()?).await?;
    return_json!(door, &found);
    door.out.notes(&found.unreadable);
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

/// How a session is copied.
pub(super) enum Copy {
    Fork(SessionId),
    Snapshot(String),
    Restore(String),
}

pub(super) async fn copy(one: OneArgs, how: Copy, door: &mut Door) -> Result<(), Error> {
    let memory = memory(&one.place, door)?;
    let states = sessions(&one.place, memory.as_ref(), &door.config)?;
    let user = one.place.user.as_deref().unwrap_or(USER);
    let places = Places {
        states: &*states,
        talk: memory.as_ref().map(|memory| (memory, user)),
    };
    let (ctx, id) = (door.ctx()?, &one.session);
    let (word, copied) = match how {
        Copy::Fork(to) => ("forked", places.fork(&ctx, id, &to).await?),
        Copy::Snapshot(label) => ("kept", places.snapshot(&ctx, id, &label).await?),
        Copy::Restore(label) => ("restored", places.restore(&ctx, id, &label).await?),
    };
    return_json!(door, &copied);
    say(word, &copied.info, copied.messages, door)
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
    let gone = Session::new(session.clone(), &*place);
    gone.delete_or_fail(&door.ctx()?).await?;
    return_json!(door, &json!({ "deleted": session }));
    let name = text::one_line(session.as_str());
    door.out.line(format!("deleted: {name}"))
}

fn say(word: &str, info: &SessionInfo, messages: usize, door: &mut Door) -> Result<(), Error> {
    let name = text::one_line(&info.session_id);
    let mut count = text::count(info.component_count as u64, "component");
    if messages > 0 {
        let messages = text::count(messages as u64, "message");
        count = format!("{count} and {messages}");
    }
    door.out.line(format!("{word}: {name} with {count}"))
}
