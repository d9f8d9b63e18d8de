//! `mnemon ingest`

use std::path::PathBuf;

use super::door::Door;
use super::shared::Shared;
use super::{progress, text};
use crate::api::ingest::{Fate, FileOutcome, Request, Response};
use crate::operation::Ownership;
use crate::{Error, api};

/// Index files and folders as documents
///
/// Splits Markdown, plain text, HTML and source code (and PDF, if built with it) into chunks that
/// search finds separately. A document is identified by its absolute path and its owner: ingesting
/// a folder again replaces changed documents, keeps the others, and embeds only new chunks. Hidden
/// files, files that .gitignore excludes, and symbolic links are skipped.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon ingest docs/ README.md --tag manual\n  \
    mnemon ingest . --exclude '*.lock' --exclude 'vendor/' --dry-run\n  \
    mnemon ingest ~/notes --user ann --prune\n\n\
    A file that cannot be read does not stop the others. The exit code covers only the paths \
    that were named.")]
pub(super) struct Args {
    /// Files and folders to index
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    owner: Shared<Ownership>,
    /// Tag for each document; repeat for several
    #[arg(long)]
    tag: Vec<String>,
    /// Skip files in folders that match, as in a .gitignore; repeat for several
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,
    /// Delete documents whose files in the named folders no longer exist
    #[arg(long)]
    prune: bool,
    /// Show what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    let request = Request {
        paths: args.paths,
        owner: args.owner.arguments()?.take_owner(),
        tags: args.tag,
        exclude: args.exclude,
        prune: args.prune,
        dry_run: args.dry_run,
    };
    request.owner.check()?;
    let memory = door.memory()?;
    let bar = progress::bar(&door.out, 0, "files");
    let mut watch = |progress: api::ingest::Progress| {
        bar.set_length(progress.total);
        bar.set_position(progress.done);
    };
    let done = api::ingest::run(&memory, &door.ctx()?, request, &mut watch).await;
    bar.finish_and_clear();
    let done = done?;
    for told in done.files.iter().filter(|told| !told.notices.is_empty()) {
        let notices = told.notices.join(" ");
        door.out.note(&format!("{}: {notices}", told.path));
    }
    if door.out.json {
        door.out.json(&done)?;
    } else {
        show(&done, door)?;
    }
    let mut failures = done.named_failures();
    match failures.next() {
        None => Ok(()),
        Some(first) => Err(Error::NotIngested {
            path: first.path.clone(),
            why: first.reason.clone().unwrap_or_default(),
            kind: first.kind.unwrap_or(mnemon_core::ErrorKind::Invalid),
            more: failures.count(),
        }),
    }
}

/// Lines of one sort that are printed one by one.
const SHOWN: usize = 20;

fn show(done: &Response, door: &mut Door) -> Result<(), Error> {
    let sorts = [
        (Fate::Added, "added"),
        (Fate::Replaced, "replaced"),
        (Fate::Pruned, "deleted, its file no longer exists:"),
        (Fate::Skipped, "skipped"),
        (Fate::Failed, "failed"),
    ];
    for (fate, word) in sorts {
        let files: Vec<&FileOutcome> = done.files.iter().filter(|told| told.fate == fate).collect();
        for told in files.iter().take(SHOWN) {
            door.out.line(line(told, word))?;
        }
        if files.len() > SHOWN {
            let more = files.len() - SHOWN;
            say!(door, "{word} {more} more")?;
        }
    }
    door.out.line(summary(done))?;
    match done.dry_run {
        true => door.out.line("Nothing was changed."),
        false => door.out.undo_with(done.commit),
    }
}

fn line(told: &FileOutcome, word: &str) -> String {
    let path = text::one_line(&told.path);
    match (&told.reason, told.chunks) {
        (Some(reason), _) => format!("{word} {path}: {}", text::one_line(reason)),
        (None, Some(chunks)) if told.fate == Fate::Replaced => format!(
            "{word} {path}: {} new, {} kept, {} removed",
            text::count(chunks.added as u64, "chunk"),
            chunks.kept,
            chunks.removed
        ),
        (None, Some(chunks)) => {
            format!(
                "{word} {path}: {}",
                text::count(chunks.added as u64, "chunk")
            )
        }
        (None, None) => format!("{word} {path}"),
    }
}

fn summary(done: &Response) -> String {
    let counts = [
        (done.added, "added"),
        (done.replaced, "replaced"),
        (done.unchanged, "unchanged"),
        (done.pruned, "forgotten"),
        (done.skipped, "skipped"),
        (done.failed, "failed"),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let all = match counts.is_empty() {
        true => "no file found that can be indexed".to_owned(),
        false => counts.join(", "),
    };
    match done.dry_run {
        true => format!("This would be: {all}."),
        false => all,
    }
}
