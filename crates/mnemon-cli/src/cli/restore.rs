//! `mnemon restore`

use std::path::PathBuf;

use super::backup::contents;
use super::confirm::confirm;
use super::door::Door;
use super::text;
use mnemon_operations::config::without_passwords;
use mnemon_operations::{Error, api};

/// Check a backup and replace the store with it
///
/// The backup is checked first: its structure, its format and the checksum of every record. Then a
/// copy of it replaces the store in one step. The previous store is kept next to it, under the name
/// that is printed. Processes that are using the store continue with the restored one.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon restore memory-2026-01-31.db --check\n  \
    mnemon restore memory-2026-01-31.db\n  \
    mnemon restore memory-2026-01-31.db --store sqlite:other.db --yes")]
pub(super) struct Args {
    /// The file that `mnemon backup` wrote
    file: PathBuf,
    /// Check the backup and show its contents, without restoring it
    #[arg(long, visible_alias = "dry-run")]
    check: bool,
    /// Skip the confirmation
    #[arg(long, short)]
    yes: bool,
}

pub(super) fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    door.local()?;
    let mut done = api::restore::run(&door.config, &args.file, true)?;
    let held = contents(&done.backup);
    if !args.check {
        let store = text::one_line(&without_passwords(&door.config.store.value));
        let question = format!(
            "This replaces {store} with {held}; the current store is kept \
            under another name."
        );
        confirm(&question, args.yes)?;
        done = api::restore::run(&door.config, &args.file, false)?;
    }
    return_json!(door, &done);
    let place = text::one_line(&done.backup.place);
    if !done.restored {
        return say!(door, "{place} is intact: {held}");
    }
    say!(door, "restored {held} from {place}")?;
    match &done.kept {
        Some(kept) => {
            let kept = text::one_line(&kept.display().to_string());
            say!(door, "the previous store is kept as {kept}")
        }
        None => Ok(()),
    }
}
