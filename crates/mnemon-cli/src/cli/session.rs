//! `mnemon session`

mod state_commands;

use self::state_commands::copy;
use super::door::Door;
use super::shared::Shared;
use mnemon_operations::Error;
use mnemon_operations::operation::{
    SessionFork, SessionList, SessionLoad, SessionRestore, SessionSnapshot,
};

/// Save, load and copy the state of an agent's components
///
/// A saved session holds a JSON state for each component of an agent (its memory, its tools, its
/// plan), in the store or in a folder. It is independent of conversations, which `mnemon chat`
/// stores.
#[derive(Debug, clap::Subcommand)]
#[command(after_help = "Examples:\n  \
    mnemon session save s1 --file state.json\n  \
    mnemon session load s1 | jq .components\n  \
    mnemon session list --folder ./sessions\n  \
    mnemon session snapshot s1 before-the-change\n  \
    mnemon session restore s1 before-the-change\n  \
    mnemon session fork s1 s2\n  \
    mnemon session delete s2 --yes\n\n\
    docs/sessions.md explains the formats and how a program saves its parts.")]
pub(super) enum Args {
    /// Save the states of a session and replace those saved before
    ///
    /// The states are read as JSON: an object with `sessionId` and `components`, or one with a
    /// state for each component.
    Save(state_commands::SaveArgs),
    /// Print the saved states of a session as JSON
    Load(Shared<SessionLoad>),
    /// List the saved sessions
    List(Shared<SessionList>),
    /// Copy the saved states to another session id, which must be free
    Fork(Shared<SessionFork>),
    /// Copy the saved states to SESSION@LABEL, to be restored later
    Snapshot(Shared<SessionSnapshot>),
    /// Replace the saved states by those of a snapshot
    Restore(Shared<SessionRestore>),
    /// Delete the saved states of a session or a snapshot
    Delete(state_commands::DeleteArgs),
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    match args {
        Args::Save(args) => state_commands::save(args, door).await,
        Args::Load(args) => args.run(door).await,
        Args::List(args) => args.run(door).await,
        Args::Fork(args) => copy(args, "forked", door).await,
        Args::Snapshot(args) => copy(args, "saved", door).await,
        Args::Restore(args) => copy(args, "restored", door).await,
        Args::Delete(args) => state_commands::delete(args, door).await,
    }
}
