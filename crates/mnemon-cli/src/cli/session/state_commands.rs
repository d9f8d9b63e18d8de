//! `mnemon session save|load|list|fork|snapshot|restore|delete`

use std::path::PathBuf;
use std::sync::Arc;

use mnemon_core::Invalid;
use mnemon_engine::Memory;
use mnemon_engine::session::{self, Session, SessionId, SessionInfo, Sessions};
use serde_json::json;

use super::super::confirm::agreed;
use super::super::door::Door;
use super::super::{input, text};
use crate::config::Config;
use crate::{Error, api, wiring};

/// Where the saved sessions lie.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Place {
    /// User who owns the sessions; without it, those that belong to no user
    #[arg(long, value_name = "NAME", conflicts_with = "folder")]
    user: Option<String>,
    /// Use files DIR/SESSION.json instead of the store
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct OneArgs {
    /// Id of the session
    #[arg(value_name = "SESSION")]
    session: SessionId,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct SaveArgs {
    #[command(flatten)]
    one: OneArgs,
    /// File to read the states from; without it, stdin
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ForkArgs {
    #[command(flatten)]
    pub(super) one: OneArgs,
    /// Id of the copy
    #[arg(value_name = "NEW")]
    pub(super) to: SessionId,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct LabelArgs {
    #[command(flatten)]
    pub(super) one: OneArgs,
    /// Label of the snapshot
    #[arg(value_name = "LABEL")]
    pub(super) label: String,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct DeleteArgs {
    #[command(flatten)]
    one: OneArgs,
    /// Skip the confirmation
    #[arg(long, short)]
    yes: bool,
}

/// The store is opened only if it is needed.
fn memory(place: &Place, door: &Door) -> Result<Option<Arc<Memory>>, Error> {
    match place.folder {
        Some(_) => Ok(None),
        None => door.memory().map(Some),
    }
}

fn sessions<'a>(
    place: &Place,
    memory: Option<&'a Arc<Memory>>,
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

pub(super) async fn save(args: SaveArgs, door: &mut Door) -> Result<(), Error> {
    let json = match &args.file {
        Some(path) => input::file(path)?,
        None => input::stdin()?,
    };
    // Some editors begin UTF-8 with a byte order mark.
    let state = serde_json::from_str(json.trim_start_matches('\u{feff}'))
        .map_err(|error| Invalid::new("state", format!("is not JSON: {error}")))?;
    let memory = memory(&args.one.place, door)?;
    let place = sessions(&args.one.place, memory.as_ref(), &door.config)?;
    let info = api::session::save(&*place, &door.ctx()?, &args.one.session, state).await?;
    return_json!(door, &info);
    say("saved", &info, door)
}

pub(super) async fn load(args: OneArgs, door: &mut Door) -> Result<(), Error> {
    let memory = memory(&args.place, door)?;
    let place = sessions(&args.place, memory.as_ref(), &door.config)?;
    let state = api::session::load(&*place, &door.ctx()?, &args.session).await?;
    return_json!(door, &state);
    let json = serde_json::to_string_pretty(&state).map_err(Error::no_json)?;
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
    let place = sessions(&one.place, memory.as_ref(), &door.config)?;
    let (ctx, id) = (door.ctx()?, one.session);
    let (word, made) = match how {
        Copy::Fork(to) => {
            session::fork(&*place, &ctx, &id, &to).await?;
            ("forked", to)
        }
        Copy::Snapshot(label) => {
            let made = session::snapshot(&*place, &ctx, &id, &label).await?;
            ("saved", made)
        }
        Copy::Restore(label) => {
            session::restore(&*place, &ctx, &id, &label).await?;
            ("restored", id)
        }
    };
    let info = api::session::info(&*place, &ctx, &made).await?;
    return_json!(door, &info);
    say(word, &info, door)
}

pub(super) async fn delete(args: DeleteArgs, door: &mut Door) -> Result<(), Error> {
    let session = args.one.session;
    if args.one.place.folder.is_some() {
        let question = format!("This deletes the file of session {session}; it cannot be undone.");
        agreed(&question, args.yes)?;
    }
    let memory = memory(&args.one.place, door)?;
    let place = sessions(&args.one.place, memory.as_ref(), &door.config)?;
    let gone = Session::new(session.clone(), &*place);
    gone.delete_or_fail(&door.ctx()?).await?;
    return_json!(door, &json!({ "deleted": session }));
    let name = text::one_line(session.as_str());
    say!(door, "deleted: {name}")
}

fn say(word: &str, info: &SessionInfo, door: &mut Door) -> Result<(), Error> {
    let name = text::one_line(&info.session_id);
    let count = text::count(info.component_count as u64, "component");
    say!(door, "{word}: {name} with {count}")
}
