//! `mnemon forget`

use mnemon_core::{Ctx, Fate, Filter, HiddenScan, Id, Record, Scan, Viewer, limits};
use mnemon_engine::Memory;

use super::confirm::confirm;
use super::door::Door;
use super::shared::{Shared, call_on};
use super::{list, text};
use crate::operation::Forget;
use crate::{Error, api, wiring};

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
    let (memory, ctx) = (door.memory()?, door.ctx()?);
    let request = call_on::<Forget, _>(&memory, args.which.arguments()?, door).await?;
    let words = match &request.filter {
        None if args.dry_run => {
            return Chosen::by_ids(&memory, &ctx, request.ids).await?.show(door);
        }
        None => text::count(request.ids.len() as u64, "record"),
        Some(filter) => {
            let chosen = Chosen::by_filter(&memory, &ctx, filter.clone(), request.purge).await?;
            if args.dry_run {
                return chosen.show(door);
            }
            if chosen.records.is_empty() && chosen.earlier == 0 && !chosen.more {
                return nothing(chosen.file_entries, door);
            }
            chosen.words()
        }
    };
    if request.purge {
        let what = format!("This erases {words}; it cannot be undone.");
        confirm(&what, args.yes)?;
    }
    remove(&memory, request, door).await
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

/// What would go: the first page of it.
struct Chosen {
    records: Vec<Record>,
    /// Entries of agents' files, which only a purge removes.
    file_entries: usize,
    /// How many of those that were forgotten earlier or have expired a purge would erase.
    earlier: usize,
    missing: Vec<Id>,
    more: bool,
}

impl Chosen {
    async fn by_ids(memory: &Memory, ctx: &Ctx, ids: Vec<Id>) -> Result<Self, Error> {
        let found = api::get::run(memory, ctx, &Viewer::Tenant, ids).await?;
        Ok(Self {
            records: found.records,
            file_entries: 0,
            earlier: 0,
            missing: found.missing,
            more: false,
        })
    }

    async fn by_filter(
        memory: &Memory,
        ctx: &Ctx,
        filter: Filter,
        purge: bool,
    ) -> Result<Self, Error> {
        let earlier = match purge {
            true => {
                let scan = HiddenScan::new(filter.clone());
                memory.records().hidden(ctx, &scan).await?
            }
            false => Vec::new(),
        };
        let scan = Scan::new(filter, limits::PAGE);
        let page = api::list::run(memory, ctx, scan).await?;
        let records = page.records.into_iter();
        let is_in_file = |record: &Record| !purge && record.is_of_agent_file();
        let (in_files, records): (Vec<_>, Vec<_>) = records.partition(is_in_file);
        Ok(Self {
            more: page.next.is_some() || earlier.len() == limits::PAGE,
            records,
            file_entries: in_files.len(),
            earlier: earlier.iter().filter(|hidden| !hidden.is_live).count(),
            missing: Vec::new(),
        })
    }

    fn words(&self) -> String {
        let mut count = text::count(self.records.len() as u64, "record");
        if self.earlier > 0 {
            count = format!("{count} and {} forgotten earlier", self.earlier);
        }
        match self.more {
            true => format!("more than {count}"),
            false => count,
        }
    }

    fn show(self, door: &mut Door) -> Result<(), Error> {
        if door.out.json {
            door.out.json(&serde_json::json!({
                "dry_run": true,
                "records": self.records,
                "forgotten_earlier": self.earlier,
                "missing": self.missing,
                "more": self.more,
            }))?;
        } else {
            let words = self.words();
            say!(
                door,
                "This would forget {words}, and what was derived only from them. Nothing was changed."
            )?;
            if !self.records.is_empty() {
                door.out.line("")?;
                list::table(&self.records, door)?;
            }
        }
        match self.missing.is_empty() {
            true => Ok(()),
            false => Err(Error::Missing(self.missing)),
        }
    }
}

/// Until nothing is left; all rounds are one commit.
async fn remove(
    memory: &Memory,
    request: api::forget::Request,
    door: &mut Door,
) -> Result<(), Error> {
    let mut missing = Vec::new();
    let (mut left, mut commit) = (0, None);
    let mut round: usize = 1;
    loop {
        let key = request.key.as_deref().map(|key| match round {
            1 => key.to_owned(),
            _ => format!("{key}#{round}"),
        });
        let request = api::forget::Request {
            key,
            ..request.clone()
        };
        let purge = request.purge;
        let mut done = api::forget::run(memory, &door.ctx()?, request).await?;
        if purge && !done.more {
            done.left.extend(wiring::kept_copies(&door.config));
        }
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
