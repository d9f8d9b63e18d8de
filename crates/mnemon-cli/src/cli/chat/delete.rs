//! `mnemon chat delete`

use std::path::PathBuf;

use serde_json::json;

use super::super::confirm::agreed;
use super::super::door::Door;
use super::super::text;
use super::{ConversationArgs, chat};
use crate::api::session_forget::{self, Response, Status};
use crate::{Error, wiring};

#[derive(Debug, clap::Args)]
pub(super) struct DeleteArgs {
    #[command(flatten)]
    conversation: ConversationArgs,
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
    match args.snapshot {
        Some(label) => delete_snapshot(args.conversation, &label, door).await,
        None => delete_conversation(args, door).await,
    }
}

async fn delete_snapshot(
    conversation: ConversationArgs,
    label: &str,
    door: &mut Door,
) -> Result<(), Error> {
    let chat = chat(conversation, None, door).await?;
    let (memory, ctx) = (door.memory()?, door.ctx()?);
    chat.delete_snapshot(&memory, &ctx, label).await?;
    return_json!(door, &json!({ "deleted": label }));
    let label = text::one_line(label);
    door.out.line(format!("deleted: snapshot {label}"))
}

async fn delete_conversation(args: DeleteArgs, door: &mut Door) -> Result<(), Error> {
    let files = args.conversation.files.clone();
    let chat = chat(args.conversation, None, door).await?;
    let whose = format!("conversation {} of {}", chat.session, chat.user);
    let request = session_forget::Request {
        user: chat.user.clone(),
        session: chat.session.clone(),
        purge: args.purge,
        files: files.into_iter().collect(),
        folders: args.folder,
    };
    let (memory, ctx) = (door.memory()?, door.ctx()?);
    if !args.purge {
        // What lies in a log unread would be shown as if it was not deleted.
        chat.catch_up(&memory, &ctx).await?;
    }
    if args.purge && !args.yes {
        if !session_forget::is_there(&memory, &ctx, &request).await? {
            return Err(chat.unknown(&memory, &ctx).await?);
        }
        agreed(&format!("This erases {whose}; it cannot be undone."), false)?;
    }
    let mut gone = session_forget::run(&memory, &ctx, request).await?;
    if gone.status == Status::Nothing {
        return Err(chat.unknown(&memory, &ctx).await?);
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
    door.out.line(format!("{word}: {count}"))?;
    if forgotten.kept > 0 {
        let count = text::count(forgotten.kept, "record");
        door.out.line(format!("kept: {count} with other sources"))?;
    }
    for fork in &forgotten.forks {
        let name = text::one_line(fork);
        door.out
            .line(format!("kept: session {name}, which was forked from it"))?;
    }
    for left in &forgotten.left {
        let (path, why) = (text::one_line(&left.path), text::one_line(&left.why));
        door.out.line(format!("not erased: {path} ({why})"))?;
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
