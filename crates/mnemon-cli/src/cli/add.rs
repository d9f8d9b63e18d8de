//! `mnemon add`

use std::path::Path;

use mnemon_core::{Fate, Receipt};
use mnemon_engine::Draft;

use super::door::Door;
use super::lines::{self, Lines};
use super::shared::{self, Shared};
use super::{input, progress, text};
use mnemon_operations::Error;
use mnemon_operations::operation::{Add, Stored};

/// Store a record
///
/// The content comes from the arguments, from --file, or from stdin. With --jsonl every line of
/// stdin is one draft in JSON, and all lines are checked before the first is written.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon add \"Ann prefers tea\" --user ann --tag drinks --importance 0.8\n  \
    git log -1 | mnemon add --kind event --source git --namespace short-term\n  \
    mnemon add --file decision.md --kind decision\n  \
    echo '{\"content\":\"Ann prefers tea\",\"tags\":[\"drinks\"]}' | mnemon add --jsonl")]
pub(super) struct Args {
    /// Read one JSON draft per line of stdin; only --key may be given with it
    #[arg(long)]
    jsonl: bool,
    #[command(flatten)]
    draft: Shared<Add>,
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    if args.jsonl {
        return many(args.draft.only("key", "--jsonl")?, door).await;
    }
    let mut draft = args.draft.arguments()?;
    if let Some(path) = draft.take_text("file") {
        draft.set("content", input::file(Path::new(&path))?);
        for (name, value) in [("source", path.as_str()), ("origin", "file")] {
            if !draft.has(name) {
                draft.set(name, value);
            }
        }
    }
    let stored = shared::call::<Add>(draft, door).await?;
    return_json!(door, &stored);
    let Stored {
        receipt,
        near_duplicate,
    } = stored;
    if let Some(near) = near_duplicate {
        door.out.notices.add(super::note::nearly(&near));
    }
    for item in &receipt.items {
        let fate = fate(&item.fate);
        let commit = receipt.commit.unwrap_or_default();
        say!(door, "{fate} {} (commit {commit})", item.id)?;
    }
    evicted(&receipt, door)
}

pub(super) fn fate(fate: &Fate) -> String {
    match fate {
        Fate::Stored { .. } => "stored".to_owned(),
        Fate::Updated { version } => format!("updated to version {version}:"),
        Fate::Duplicate { of } => format!("duplicate of {of}:"),
        Fate::Deleted => "forgotten".to_owned(),
        Fate::Purged => "purged".to_owned(),
        Fate::Missing => "missing".to_owned(),
        Fate::Rejected { why } => format!("left out ({why}):"),
    }
}

fn evicted(receipt: &Receipt, door: &mut Door) -> Result<(), Error> {
    for id in &receipt.evicted {
        say!(door, "evicted {id} (the namespace is full)")?;
    }
    Ok(())
}

/// In JSON mode every batch's receipt is printed as soon as it is safe.
async fn many(key: Option<String>, door: &mut Door) -> Result<(), Error> {
    door.local_option("--jsonl")?;
    let mut lines = Lines::open(None)?;
    let ctx = door.ctx()?;
    let safety = door.config.safety();
    let count = lines.check::<Draft>(|draft| {
        draft.check(&ctx)?;
        safety.check(draft)
    })?;
    let memory = door.memory()?;
    let bar = progress::bar(&door.out, count, "records");
    let place = lines.place.clone();
    for (number, batch) in lines.batches::<Draft>(|_| None)?.enumerate() {
        let batch = batch?;
        bar.inc(batch.len() as u64);
        let ids: Vec<_> = batch
            .iter()
            .map(|item| (item.line, item.value.id.clone()))
            .collect();
        let drafts = batch.into_iter().map(|item| item.value).collect();
        let key = key.as_deref().map(|key| batch_key(key, number));
        let records = memory.records();
        let receipt = records.add(&door.ctx()?, drafts, key.as_deref()).await;
        let receipt = receipt.map_err(|error| lines::blame(&place, &ids, error.into()))?;
        if door.out.json {
            door.out.json(&receipt)?;
            door.out.flush()?;
        } else {
            evicted(&receipt, door)?;
        }
    }
    bar.finish_and_clear();
    if door.out.json {
        return Ok(());
    }
    say!(door, "stored {}", text::count(count, "record"))
}

/// The first batch has the key itself, the others have it with their number.
fn batch_key(key: &str, number: usize) -> String {
    match number {
        0 => key.to_owned(),
        _ => format!("{key}#{}", number + 1),
    }
}
