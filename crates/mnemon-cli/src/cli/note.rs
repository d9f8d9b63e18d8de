//! `mnemon note`

mod printing;

pub(super) use printing::nearly;

use serde_json::json as value;

use super::door::Door;
use super::shared::{Shared, call};
use super::text;
use mnemon_operations::Error;
use mnemon_operations::operation::routes::Routed;
use mnemon_operations::operation::{
    Arguments, NoteAdd, NoteCleanup, NoteClear, NoteDelete, NoteGet, NoteList, NoteSearch,
    NoteStats, Operation, Update,
};

/// Store short-term and long-term notes
///
/// Output is short: ids, summaries and attributes of the notes. --content adds the content.
#[derive(Debug, clap::Subcommand)]
#[command(after_help = "Examples:\n  \
    mnemon note add \"The staging API answers with 429 after noon\" --tag api\n  \
    mnemon note add --namespace long-term --importance 0.9 \"Ann prefers tea\"\n  \
    mnemon note add --file docs/decision.md --namespace long-term\n  \
    mnemon note search what does Ann drink --limit 3\n  \
    mnemon note get 8f14e45fceea167a --content\n  \
    mnemon note edit 8f14 \"Ann prefers coffee\" --ttl 2y\n  \
    mnemon note clear short-term --yes\n\n\
    Short-term notes are kept for 14 days, long-term ones for 10 years; see docs/notes.md.")]
pub(super) enum Args {
    /// Store a note
    Add(Shared<NoteAdd>),
    /// Search notes by text or id
    Search(Shared<NoteSearch>),
    /// Show a note, with its content if requested
    #[command(visible_alias = "show")]
    Get(Shared<NoteGet>),
    /// List notes, newest first, a page at a time
    #[command(visible_alias = "ls")]
    List(Shared<NoteList>),
    /// Change a note: its content, tags, metadata, importance or how long it is kept
    ///
    /// Fields that are not named stay. The earlier version stays in the history, and undo restores
    /// it.
    #[command(alias = "update")]
    Edit(Shared<Update>),
    /// Delete notes; undo restores them
    #[command(visible_alias = "rm", alias = "forget")]
    Delete(Shared<NoteDelete>),
    /// Delete all notes of a namespace, or of both
    Clear(ClearArgs),
    /// Show the number of notes
    Stats(Shared<NoteStats>),
    /// Erase expired notes
    Cleanup(Shared<NoteCleanup>),
}

#[derive(Debug, clap::Args)]
pub(super) struct ClearArgs {
    #[command(flatten)]
    which: Shared<NoteClear>,
    /// Accepted for scripts; undo restores the notes, so there is no question
    #[arg(long, hide = true)]
    yes: bool,
    /// Show the number of notes, and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    match args {
        Args::Add(args) => args.run(door).await,
        Args::Search(args) => search(args, door).await,
        Args::Get(args) => args.run(door).await,
        Args::List(args) => args.run(door).await,
        Args::Edit(args) => args.run(door).await,
        Args::Delete(args) => delete(args, door).await,
        Args::Clear(args) => clear(args, door).await,
        Args::Stats(args) => args.run(door).await,
        Args::Cleanup(args) => args.run(door).await,
    }
}

async fn search(args: Shared<NoteSearch>, door: &mut Door) -> Result<(), Error> {
    let arguments = args.arguments()?;
    let is_cut = arguments.number("min_score") != Some(0.0);
    let found = call::<NoteSearch>(arguments, door).await?;
    return_json!(door, &NoteSearch::json(&found)?);
    printing::found(&found, is_cut, door)
}

async fn delete(args: Shared<NoteDelete>, door: &mut Door) -> Result<(), Error> {
    let mut missing = Vec::new();
    let tell = |done: <NoteDelete as Operation>::Answer, door: &mut Door| {
        if door.out.json {
            door.out.json(&NoteDelete::json(&done)?)?;
        } else if done.deleted {
            say!(door, "forgotten {}", done.id)?;
        }
        if !done.deleted {
            missing.push(done.id);
        }
        Ok(())
    };
    args.call_each("id", door, tell).await?;
    match missing.is_empty() {
        true => Ok(()),
        false => Err(Error::Missing(missing)),
    }
}

async fn clear(args: ClearArgs, door: &mut Door) -> Result<(), Error> {
    let which = args.which.arguments()?;
    let namespace = which.needed("namespace");
    if args.dry_run {
        let counts = call::<NoteStats>(Arguments::default(), door).await?;
        let count = match namespace.as_str() {
            "short-term" => counts.short_term,
            "long-term" => counts.long_term,
            _ => counts.total,
        };
        return_json!(door, &value!({ "dry_run": true, "count": count }));
        let count = text::count(count, "note");
        return say!(door, "would forget {count}");
    }
    let cleared = call::<NoteClear>(which, door).await?;
    return_json!(door, &NoteClear::json(&cleared)?);
    printing::cleared(&cleared, door)
}
