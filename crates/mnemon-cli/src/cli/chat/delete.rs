//! `mnemon chat delete`

use std::path::PathBuf;

use serde_json::json;

use super::super::confirm::agreed;
use super::super::door::Door;
use super::super::shared::{Shared, call};
use super::super::text;
use crate::api::session_forget::{self, Response, Status};
use crate::operation::Conversation;
use crate::{Error, wiring};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct DeleteArgs {
    #[command(flatten)]
    conversation: Shared<Conversation>,
    /// Delete only this snapshot
    #[arg(long, value_name = "LABEL", conflicts_with_all = ["purge", "folder"])]
    snapshot: Option<String>,
    /// Erase permanently, with history and files: this cannot be undone
    #[arg(long)]
    purge: bool,
    /// Folder in which its states were saved
    #[arg(long, value_name = "DIR", conflicts_with = "files")]
    folder: Vec<PathBuf>,
    /// Skip the confirmation
    #[arg(long, short)]
    yes: bool,
}

pub(super) async fn delete(args: DeleteArgs, door: &mut Door) -> Result<(), Error> {
    let given = args.conversation.arguments()?;
    let files = given.text("files").map(PathBuf::from);
    let chat = call::<Conversation>(given, door).await?;
    if let Some(label) = args.snapshot {
        chat.delete_snapshot(&label).await?;
        return_json!(door, &json!({ "deleted": label }));
        let label = text::one_line(&label);
        return say!(door, "deleted: snapshot {label}");
    }
    let whose = format!("conversation {} of {}", chat.session, chat.user);
    let request = session_forget::Request {
        user: chat.user.clone(),
        session: chat.session.clone(),
        purge: args.purge,
        files: files.into_iter().collect(),
        folders: args.folder,
    };
    let (memory, ctx) = (&chat.memory, &chat.ctx);
    if !args.purge {
        // What lies in a log unread would be shown as if it was not deleted.
        chat.catch_up().await?;
    }
    if args.purge && !args.yes {
        if !session_forget::is_there(memory, ctx, &request).await? {
            return Err(chat.unknown().await?);
        }
        agreed(&format!("This erases {whose}; it cannot be undone."), false)?;
    }
    let mut gone = session_forget::run(memory, ctx, request).await?;
    if gone.status == Status::Nothing {
        return Err(chat.unknown().await?);
    }
    if args.purge {
        gone.list(wiring::kept_copies(&door.config));
    }
    if door.out.json {
        door.out.json(&gone)?;
    } else {
        show(&gone, door)?;
    }
    let Response {
        status, forgotten, ..
    } = gone;
    match status {
        Status::PartlyPurged => Err(Error::NotErased {
            left: forgotten.left.len(),
            more: forgotten.more,
        }),
        _ => Ok(()),
    }
}

fn show(gone: &Response, door: &mut Door) -> Result<(), Error> {
    let forgotten = &gone.forgotten;
    let word = match gone.status {
        Status::Nothing | Status::Forgotten => "deleted",
        Status::Purged => "purged",
        Status::PartlyPurged => "partly purged",
    };
    let mut count = text::count(forgotten.records, "record");
    if !forgotten.files.is_empty() {
        let files = text::count(forgotten.files.len() as u64, "file");
        count = format!("{count} and {files}");
    }
    say!(door, "{word}: {count}")?;
    if forgotten.kept > 0 {
        let count = text::count(forgotten.kept, "record");
        say!(door, "kept: {count} with other sources")?;
    }
    for fork in &forgotten.forks {
        let name = text::one_line(fork);
        say!(door, "kept: session {name}, which was forked from it")?;
    }
    for left in &forgotten.left {
        let (path, why) = (text::one_line(&left.path), text::one_line(&left.why));
        say!(door, "not erased: {path} ({why})")?;
    }
    for one in &gone.elsewhere {
        let project = text::one_line(&one.project);
        door.out.line(match &one.files {
            Some(root) => {
                let root = text::one_line(&root.display().to_string());
                format!("also in project {project} ({root}): delete it with --files {root}")
            }
            None => format!("also in project {project}: delete it with --files and its folder"),
        })?;
    }
    door.out.undo_with(forgotten.commit)?;
    if forgotten.more && gone.status == Status::Forgotten {
        door.out
            .note("records were written to the session meanwhile; run it again");
    }
    Ok(())
}
