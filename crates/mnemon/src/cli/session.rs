//! `mnemon session`

mod state_commands;

use std::path::PathBuf;

use self::state_commands::{Copy, copy};
use super::confirm::{confirm, is_interactive};
use super::door::Door;
use super::text;
use crate::api::session_forget::{Response, Status};
use crate::{Error, api, wiring};

/// Save, load, copy or forget a session
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon session save s1 --file state.json\n  \
    mnemon session load s1 | jq .components\n  \
    mnemon session list --folder ./sessions\n  \
    mnemon session snapshot s1 before-the-change\n  \
    mnemon session fork s1 s2\n  \
    mnemon session forget s1 --user ann\n  \
    mnemon session forget s1 --user ann --purge --yes\n  \
    mnemon session forget s1 --purge --files . --folder ./sessions")]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Save the states of a session, in place of what was saved before
    ///
    /// They are read as JSON: an object with `sessionId` and `components`, or one with a state for
    /// each component.
    Save(state_commands::SaveArgs),
    /// Print the saved states of a session as JSON
    Load(state_commands::OneArgs),
    /// List the saved sessions
    List(state_commands::Place),
    /// Make a session once more under another id, which must be free
    ///
    /// Its saved states are copied, and with a store everything that was said in it.
    Fork(state_commands::ForkArgs),
    /// Keep a session as it is now, as SESSION@LABEL
    ///
    /// Its saved states are copied; of its conversation the window is kept.
    Snapshot(state_commands::LabelArgs),
    /// Make a session what it was when the snapshot was taken
    ///
    /// What was said since stays in the conversation, but is not in its window any more.
    Restore(state_commands::LabelArgs),
    /// Take the saved states of a session away; what was said in it stays
    Delete(state_commands::DeleteArgs),
    /// Forget what was said and done in a session, and what is known only from it
    ///
    /// Its dialog, state and experience go, its snapshots, and all that was derived only from them.
    /// The user's profile, knowledge and skills stay; what has other sources, too, stays without
    /// this one. Records of the session that belong to no user go as well, unless another user has
    /// a session of the same name.
    ///
    /// With --purge all of it is erased for good, also what was forgotten earlier, and the session's
    /// log and pages in projects that the store knows. Files that are not erased are listed, and the
    /// command exits with 5: it is only partly purged.
    Forget(ForgetArgs),
}

#[derive(Debug, clap::Args)]
struct ForgetArgs {
    /// The session
    #[arg(value_name = "SESSION")]
    session: String,
    /// Whose session it is
    #[arg(long, value_name = "NAME", default_value = state_commands::USER)]
    user: String,
    /// Erase for good, history and files included: this cannot be undone
    #[arg(long)]
    purge: bool,
    /// A project in which the session has a log or pages, besides those that the store knows
    #[arg(long, value_name = "ROOT")]
    files: Vec<PathBuf>,
    /// A folder in which its states were saved
    #[arg(long, value_name = "DIR")]
    folder: Vec<PathBuf>,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    match args.what {
        What::Save(args) => state_commands::save(args, door).await,
        What::Load(args) => state_commands::load(args, door).await,
        What::List(place) => state_commands::list(place, door).await,
        What::Fork(args) => copy(args.one, Copy::Fork(args.to), door).await,
        What::Snapshot(args) => copy(args.one, Copy::Snapshot(args.label), door).await,
        What::Restore(args) => copy(args.one, Copy::Restore(args.label), door).await,
        What::Delete(args) => state_commands::delete(args, door).await,
        What::Forget(args) => forget(args, door).await,
    }
}

/// Asks, unless the answer was given; without anybody to ask, nothing happens.
fn agreed(question: &str, yes: bool) -> Result<(), Error> {
    if !yes && !is_interactive() {
        let how = format!("{question} Pass --yes to say so");
        return Err(Error::Unconfirmed(how));
    }
    confirm(&text::one_line(question), yes)
}

async fn forget(args: ForgetArgs, door: &mut Door) -> Result<(), Error> {
    let whose = format!("session {} of {}", args.session, args.user);
    let question = match args.purge {
        true => format!("This erases {whose} for good; it cannot be undone."),
        false => format!("This forgets {whose}."),
    };
    agreed(&question, args.yes)?;
    let request = api::session_forget::Request {
        user: args.user,
        session: args.session,
        purge: args.purge,
        files: args.files,
        folders: args.folder,
    };
    let mut gone = {
        let within = door.config.own_project();
        api::session_forget::run(&door.memory()?, &door.ctx()?, request, within).await?
    };
    if args.purge && gone.status != Status::Nothing {
        gone.list(wiring::kept_copies(&door.config));
    }
    if door.out.json {
        door.out.json(&gone)?;
    } else {
        show(&gone, door)?;
    }
    let Response { status, forgotten } = gone;
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
        Status::Nothing => return door.out.line("there is nothing of it to forget"),
        Status::Forgotten => "forgotten",
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
    door.out.undo_with(forgotten.commit)?;
    if forgotten.more && gone.status == Status::Forgotten {
        door.out
            .note("records were written to the session meanwhile; run it again");
    }
    Ok(())
}
