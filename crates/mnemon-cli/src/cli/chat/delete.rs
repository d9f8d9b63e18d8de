//! `mnemon chat delete`

use super::super::confirm::agreed;
use super::super::door::Door;
use super::super::shared::{Shared, call, open};
use super::super::text;
use mnemon_operations::Error;
use mnemon_operations::api::session_forget::{self, Response, Status};
use mnemon_operations::operation::{
    ChatDelete, ChatDeleteSnapshot, Conversation, USER, forgetting,
};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct DeleteArgs {
    #[command(flatten)]
    conversation: Shared<ChatDelete>,
    /// Delete only this snapshot
    #[arg(long, value_name = "LABEL", conflicts_with_all = ["purge", "folder"])]
    snapshot: Option<String>,
    /// Skip the confirmation
    #[arg(long, short)]
    yes: bool,
}

pub(super) async fn delete(args: DeleteArgs, door: &mut Door) -> Result<(), Error> {
    let mut given = args.conversation.arguments()?;
    if let Some(label) = args.snapshot {
        given.set("label", label);
        let gone = call::<ChatDeleteSnapshot>(given, door).await?;
        return_json!(door, &gone);
        let label = text::one_line(&gone.deleted);
        return say!(door, "deleted: snapshot {label}");
    }
    if given.flag("purge") == Some(true) && !args.yes {
        let user = given.text("user").unwrap_or_else(|| USER.to_owned());
        if door.remote.is_none() {
            let chat = open::<Conversation>(given.clone(), door).await?;
            let request = forgetting(&chat, &given);
            if !session_forget::is_there(&chat.memory, &chat.ctx, &request).await? {
                return Err(chat.unknown().await?);
            }
        }
        let whose = format!("conversation {} of {user}", given.needed("session"));
        agreed(&format!("This erases {whose}; it cannot be undone."), false)?;
    }
    let gone = call::<ChatDelete>(given, door).await?;
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
