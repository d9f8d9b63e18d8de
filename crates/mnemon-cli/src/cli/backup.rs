//! `mnemon backup`

use std::path::PathBuf;

use super::door::Door;
use super::text;
use mnemon_operations::Error;
use mnemon_operations::wiring::{self, BackupSummary};

/// Write a consistent copy of the whole store to a file
///
/// The store may be in use: no process has to wait, and the copy is a snapshot of one moment. It
/// holds every tenant with its history, and nothing that was purged. It is checked before it gets
/// its name, and only you can read it. The backup of a jsonl: store is a folder.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon backup memory-2026-01-31.db\n  \
    mnemon backup ~/memory.db --force\n  \
    mnemon restore memory-2026-01-31.db --check")]
pub(super) struct Args {
    /// File to write; it must not exist yet
    file: PathBuf,
    /// Overwrite the file if it exists
    #[arg(long)]
    force: bool,
}

pub(super) fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    door.local()?;
    let backup = wiring::backup(&door.config, &args.file, args.force)?;
    return_json!(door, &backup);
    let (place, held) = (text::one_line(&backup.place), contents(&backup));
    say!(door, "wrote {held} to {place}")
}

/// What a backup holds, in words.
pub(super) fn contents(backup: &BackupSummary) -> String {
    format!(
        "{}, {} and {}",
        text::count(backup.records, "record"),
        text::count(backup.history, "past version"),
        text::count(backup.tenants, "tenant"),
    )
}
