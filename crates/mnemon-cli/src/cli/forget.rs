//! `mnemon forget`

use mnemon_core::{Fate, Id};

use super::confirm::confirm;
use super::door::Door;
use super::shared::{Shared, call};
use super::{list, text};
use mnemon_operations::operation::{Arguments, Forget, ForgetPreview, WouldForget};
use mnemon_operations::{Error, api};

/// Delete records and everything derived only from them
///
/// Records derived from other sources as well are kept and lose this source; summaries are deleted.
/// Deleted records are hidden at once, and undo restores them. With --purge they are erased
/// permanently, with their history and every copy in the store, together with records deleted
/// earlier that match the options. Logs and pages in files that still hold the text are listed, and
/// the command exits with 5; `mnemon chat delete SESSION --purge` erases them, too.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon forget 01920e4a-6f2b-7c3d-8e4f-5a6b7c8d9e0f\n  \
    mnemon forget --session s1 --dry-run\n  \
    mnemon forget --user ann --purge --yes")]
pub(super) struct Args {
    #[command(flatten)]
    which: Shared<Forget>,
    /// Show which records would be deleted, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Skip the confirmation of --purge; without --purge, undo restores the records
    #[arg(long, short)]
    yes: bool,
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    let given = args.which.arguments()?;
    let (purge, by_ids) = (given.flag("purge").unwrap_or(false), given.has("ids"));
    let words = match by_ids && !args.dry_run {
        true => text::count(given.texts("ids").len() as u64, "record"),
        false => {
            let mut which = given.clone();
            which.take("key");
            let chosen = call::<ForgetPreview>(which, door).await?;
            if args.dry_run {
                return preview(chosen, door);
            }
            if chosen.records.is_empty() && chosen.forgotten_earlier == 0 && !chosen.more {
                return nothing(chosen.file_entries, door);
            }
            words(&chosen)
        }
    };
    if purge {
        let what = format!("This erases {words}; it cannot be undone.");
        confirm(&what, args.yes)?;
    }
    remove(given, door).await
}

fn nothing(file_entries: usize, door: &mut Door) -> Result<(), Error> {
    if file_entries > 0 {
        let entries = text::count(file_entries as u64, "entry");
        door.out.note(&format!(
            "not forgotten: {entries} of agents' files; remove them with `mnemon agent remove`"
        ));
    }
    if door.out.json {
        let none = serde_json::json!({ "commit": null, "items": [], "more": false });
        return door.out.json(&none);
    }
    door.out.line("nothing to forget")
}

fn words(chosen: &WouldForget) -> String {
    let mut count = text::count(chosen.records.len() as u64, "record");
    if chosen.forgotten_earlier > 0 {
        count = format!("{count} and {} forgotten earlier", chosen.forgotten_earlier);
    }
    match chosen.more {
        true => format!("more than {count}"),
        false => count,
    }
}

fn preview(chosen: WouldForget, door: &mut Door) -> Result<(), Error> {
    if door.out.json {
        door.out.json(&chosen)?;
    } else {
        let words = words(&chosen);
        say!(
            door,
            "This would forget {words}, and what was derived only from them. Nothing was changed."
        )?;
        if !chosen.records.is_empty() {
            door.out.line("")?;
            list::table(&chosen.records, door)?;
        }
    }
    match chosen.missing.is_empty() {
        true => Ok(()),
        false => Err(Error::Missing(chosen.missing)),
    }
}

/// Until nothing is left; all rounds are one commit.
async fn remove(given: Arguments, door: &mut Door) -> Result<(), Error> {
    let mut missing = Vec::new();
    let (mut left, mut commit) = (0, None);
    let mut round: usize = 1;
    loop {
        let mut given = given.clone();
        if let (Some(key), 2..) = (given.text("key"), round) {
            given.set("key", format!("{key}#{round}"));
        }
        let done = call::<Forget>(given, door).await?;
        show(&done, door)?;
        left += done.left.len();
        commit = commit.or(done.receipt.commit);
        let gone = done.receipt.items.into_iter();
        missing.extend(
            gone.filter(|item| item.fate == Fate::Missing)
                .map(|item| item.id),
        );
        if !done.more {
            break;
        }
        round += 1;
    }
    if !door.out.json {
        door.out.undo_with(commit)?;
    }
    match (missing.is_empty(), left) {
        (false, _) => Err(Error::Missing(missing)),
        (true, 0) => Ok(()),
        (true, left) => Err(Error::NotErased { left, more: false }),
    }
}

/// How many ids are printed one by one.
const SHOWN: usize = 20;

fn show(done: &api::forget::Response, door: &mut Door) -> Result<(), Error> {
    return_json!(door, done);
    let gone = |id: &Id, word: &str| format!("{word} {id}");
    let items = done.receipt.items.iter();
    let lines: Vec<String> = items
        .filter_map(|item| match item.fate {
            Fate::Deleted => Some(gone(&item.id, "forgotten")),
            Fate::Purged => Some(gone(&item.id, "purged")),
            _ => None,
        })
        .chain(
            done.receipt
                .cascaded
                .iter()
                .map(|id| gone(id, "deleted with it, as derived:")),
        )
        .collect();
    for line in lines.iter().take(SHOWN) {
        door.out.line(line)?;
    }
    if lines.len() > SHOWN {
        say!(door, "and {} more", lines.len() - SHOWN)?;
    }
    for left in &done.left {
        let (path, why) = (text::one_line(&left.path), text::one_line(&left.why));
        say!(door, "not erased: {path} ({why})")?;
    }
    Ok(())
}
