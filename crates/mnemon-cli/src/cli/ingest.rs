//! `mnemon ingest`

use std::path::PathBuf;

use mnemon_core::{Cursor, Id, Owner, Receipt, limits};
use mnemon_engine::{Document, DocumentReceipt, Known};
use serde_json::{Map, Value, json};

use super::door::Door;
use super::shared::{Shared, call};
use super::{progress, text};
use mnemon_operations::api::ingest::{Fate, FileOutcome, Library, Request, Response};
use mnemon_operations::api::list::Response as Page;
use mnemon_operations::operation::{
    Arguments, DocumentAdd, DocumentKnown, Forget, List, Ownership, SentDocument,
};
use mnemon_operations::{Error, api};

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
    let bar = progress::bar(&door.out, 0, "files");
    let mut watch = |progress: api::ingest::Progress| {
        bar.set_length(progress.total);
        bar.set_position(progress.done);
    };
    let ctx = door.ctx()?;
    let done = match door.remote {
        Some(_) => {
            let there = There {
                door,
                owner: request.owner.clone(),
                tags: request.tags.clone(),
            };
            api::ingest::run_in(&there, ctx.now, request, &mut watch).await
        }
        None => api::ingest::run(&*door.memory()?, &ctx, request, &mut watch).await,
    };
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

/// The documents of a server, to which the text of the files is sent.
struct There<'a> {
    door: &'a Door,
    owner: Owner,
    tags: Vec<String>,
}

impl There<'_> {
    fn owned(&self, owner: &Owner) -> Result<Map<String, Value>, Error> {
        match serde_json::to_value(owner).map_err(Error::no_json)? {
            Value::Object(fields) => Ok(fields),
            _ => Ok(Map::new()),
        }
    }

    fn arguments(&self, documents: &[Document]) -> Result<Arguments, Error> {
        let sent: Vec<_> = documents.iter().map(SentDocument::new).collect();
        let mut fields = self.owned(&self.owner)?;
        fields.insert("documents".to_owned(), json!(sent));
        fields.insert("tags".to_owned(), json!(self.tags));
        Ok(Arguments::from_fields(fields))
    }
}

impl Library for There<'_> {
    async fn known(&self, documents: &[Document]) -> Result<Vec<Option<Known>>, Error> {
        let known = call::<DocumentKnown>(self.arguments(documents)?, self.door);
        Ok(known.await?.documents)
    }

    async fn add(&self, documents: Vec<Document>) -> Result<Vec<DocumentReceipt>, Error> {
        let added = call::<DocumentAdd>(self.arguments(&documents)?, self.door);
        Ok(added.await?.documents)
    }

    async fn page(&self, owner: &Owner, after: Option<Cursor>) -> Result<Page, Error> {
        let mut fields = self.owned(owner)?;
        fields.insert("kind".to_owned(), json!(["document"]));
        fields.insert("limit".to_owned(), json!(limits::PAGE));
        fields.extend(after.map(|after| ("after".to_owned(), json!(after.to_string()))));
        call::<List>(Arguments::from_fields(fields), self.door).await
    }

    async fn forget(&self, ids: &[Id]) -> Result<Receipt, Error> {
        let fields = Map::from_iter([("ids".to_owned(), json!(ids))]);
        let gone = call::<Forget>(Arguments::from_fields(fields), self.door).await?;
        Ok(gone.receipt)
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
