//! `mnemon import`

use std::path::PathBuf;

use mnemon_core::{Fate, Id, Receipt, Record};
use mnemon_engine::OnConflict;
use serde::Serialize;

use super::door::Door;
use super::lines::{self, Lines};
use super::{progress, text};
use crate::Error;

/// Import records that `mnemon export` wrote
///
/// Records keep their ids, times and links, and belong to the current tenant. All lines are checked
/// before the first is written. Records that already exist unchanged are skipped, so an import that
/// was interrupted can be run again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon import memory.jsonl\n  \
    zcat ann.jsonl.gz | mnemon import - --on-conflict skip")]
pub(super) struct Args {
    /// File to read; - is stdin
    file: PathBuf,
    /// Action if a different record has the same id
    #[arg(long, value_enum, default_value_t)]
    on_conflict: OnConflictArg,
}

#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum OnConflictArg {
    /// Stop with an error
    #[default]
    Fail,
    /// Keep the existing record
    Skip,
    /// Replace it by the imported record; the old version stays in the history
    Replace,
}

impl From<OnConflictArg> for OnConflict {
    fn from(arg: OnConflictArg) -> Self {
        match arg {
            OnConflictArg::Fail => Self::Fail,
            OnConflictArg::Skip => Self::Skip,
            OnConflictArg::Replace => Self::Replace,
        }
    }
}

/// What became of all lines together.
#[derive(Debug, Default, Serialize)]
struct Summary {
    records: u64,
    stored: u64,
    replaced: u64,
    /// Already there, unchanged.
    duplicate: u64,
    /// A different record was there and was kept.
    skipped: u64,
    evicted: Vec<Id>,
    commit: Option<u64>,
}

impl Summary {
    fn add(&mut self, receipt: Receipt) {
        self.commit = self.commit.or(receipt.commit);
        self.evicted.extend(receipt.evicted);
        for item in receipt.items {
            self.records += 1;
            match item.fate {
                Fate::Updated { .. } => self.replaced += 1,
                Fate::Duplicate { .. } => self.duplicate += 1,
                Fate::Rejected { .. } => self.skipped += 1,
                _ => self.stored += 1,
            }
        }
    }
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    let mut lines = Lines::open(Some(&args.file))?;
    let count = lines.check::<Record>(Record::check)?;
    let memory = door.memory()?;
    let bar = progress::bar(&door.out, count, "records");
    let place = lines.place.clone();
    let mut summary = Summary::default();
    for batch in lines.batches::<Record>(|record| Some(&record.id))? {
        let batch = batch?;
        let size = batch.len() as u64;
        let ids: Vec<_> = batch
            .iter()
            .map(|item| (item.line, Some(item.value.id.clone())))
            .collect();
        let imported = batch.into_iter().map(|item| item.value).collect();
        let (records, ctx) = (memory.records(), door.ctx()?);
        let receipt = records
            .import(&ctx, imported, args.on_conflict.into())
            .await;
        summary.add(receipt.map_err(|error| lines::blame(&place, &ids, error.into()))?);
        bar.inc(size);
    }
    bar.finish_and_clear();
    show(&summary, door)
}

fn show(summary: &Summary, door: &mut Door) -> Result<(), Error> {
    return_json!(door, summary);
    let mut parts = vec![format!("{} stored", summary.stored)];
    let others = [
        (summary.replaced, "replaced"),
        (summary.duplicate, "already there"),
        (summary.skipped, "skipped, a different one is there"),
        (
            summary.evicted.len() as u64,
            "evicted, the namespace is full",
        ),
    ];
    let others = others.iter().filter(|(count, _)| *count > 0);
    parts.extend(others.map(|(count, what)| format!("{count} {what}")));
    let count = text::count(summary.records, "record");
    say!(door, "read {count}: {}", parts.join("; "))?;
    door.out.undo_with(summary.commit)
}
