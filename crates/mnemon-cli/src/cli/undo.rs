//! `mnemon undo`

use super::door::Door;
use super::shared::Shared;
use super::{history, text};
use mnemon_operations::operation::Undo;
use mnemon_operations::{Error, api};

/// Undo a commit: remove what it added and restore what it changed or deleted
///
/// Everything that one command wrote is one commit. The undo is a new commit, which can itself be
/// undone. It is refused, and changes nothing, if a record was changed again since. An undo that
/// was interrupted continues when it is run again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon undo              the newest commit, except those that only index files\n  \
    mnemon undo 12           this commit; `mnemon history` shows the numbers\n  \
    mnemon undo 12 13        these commits, one after the other\n  \
    mnemon undo --record ID  the newest commit that touched this record")]
pub(super) struct Args {
    #[command(flatten)]
    which: Shared<Undo>,
}

/// How many changes are printed one by one.
const SHOWN: usize = 20;

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    args.which.call_each("commit", door, tell).await
}

fn tell(done: api::undo::Response, door: &mut Door) -> Result<(), Error> {
    return_json!(door, &done);
    let items = done.receipt.items.len();
    if let (0, Some(by)) = (items, done.receipt.commit) {
        let commit = done.undone;
        let line = format!("commit {commit} was already undone by commit {by}");
        return door.out.line(line);
    }
    let count = text::count(items as u64, "record");
    say!(door, "undid commit {} ({count})", done.undone)?;
    let shown = done.changes.get(..SHOWN).unwrap_or(&done.changes);
    history::commits(shown, door)?;
    match items.saturating_sub(SHOWN) {
        0 => Ok(()),
        more => say!(door, "  and {more} more"),
    }
}
