//! `mnemon session save|load|list|fork|snapshot|restore|delete`

use std::path::PathBuf;

use mnemon_core::Invalid;
use mnemon_engine::session::SessionInfo;
use serde_json::Value;

use super::super::confirm::agreed;
use super::super::door::Door;
use super::super::shared::{Shared, Shown, call};
use super::super::{input, text};
use mnemon_operations::Error;
use mnemon_operations::api::session::Listed;
use mnemon_operations::operation::routes::Routed;
use mnemon_operations::operation::{DeletedSession, SessionDelete, SessionSave};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct SaveArgs {
    #[command(flatten)]
    one: Shared<SessionSave>,
    /// File to read the states from; without it, stdin
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct DeleteArgs {
    #[command(flatten)]
    one: Shared<SessionDelete>,
    /// Skip the confirmation
    #[arg(long, short)]
    yes: bool,
}

pub(super) async fn save(args: SaveArgs, door: &mut Door) -> Result<(), Error> {
    let json = match &args.file {
        Some(path) => input::file(path)?,
        None => input::stdin()?,
    };
    // Some editors begin UTF-8 with a byte order mark.
    let state: Value = serde_json::from_str(json.trim_start_matches('\u{feff}'))
        .map_err(|error| Invalid::new("state", format!("is not JSON: {error}")))?;
    let mut arguments = args.one.arguments()?;
    arguments.set("state", state);
    said("saved", call::<SessionSave>(arguments, door).await?, door)
}

/// Copies a session, and says by this word that it did.
pub(super) async fn copy<O>(args: Shared<O>, word: &str, door: &mut Door) -> Result<(), Error>
where
    O: Routed<Answer = SessionInfo>,
{
    said(word, args.call(door).await?, door)
}

pub(super) async fn delete(args: DeleteArgs, door: &mut Door) -> Result<(), Error> {
    let arguments = args.one.arguments()?;
    if arguments.has("folder") {
        let session = arguments.needed("session");
        let question = format!("This deletes the file of session {session}; it cannot be undone.");
        agreed(&question, args.yes)?;
    }
    let gone = call::<SessionDelete>(arguments, door).await?;
    return_json!(door, &gone);
    let DeletedSession { deleted } = gone;
    say!(door, "deleted: {}", text::one_line(&deleted))
}

impl Shown for Value {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        let json = serde_json::to_string_pretty(self).map_err(Error::no_json)?;
        // JSON has its control characters escaped, but not those that turn the line around.
        door.out.line(text::clean(&json))
    }
}

impl Shown for Listed {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        door.out.notes(&self.unreadable);
        if self.sessions.is_empty() {
            return door.out.line("there are no saved sessions");
        }
        let rows = self.sessions.iter().map(|info| {
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
}

fn said(word: &str, info: SessionInfo, door: &mut Door) -> Result<(), Error> {
    return_json!(door, &info);
    let name = text::one_line(&info.session_id);
    let count = text::count(info.component_count as u64, "component");
    say!(door, "{word}: {name} with {count}")
}
