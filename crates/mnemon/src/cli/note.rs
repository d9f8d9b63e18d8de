//! `mnemon note`

mod printing;

use mnemon_core::rank::Recipe;
use mnemon_core::{Id, Namespace, Owner, Viewer, limits};
use mnemon_engine::notes::{NewNote, NoteFilter};

use super::door::Door;
use super::filters::{self, OwnerArgs};
use super::{add, confirm, input, search};
use crate::{Error, api};

/// Keep short-term and long-term notes
///
/// Answers are short: ids, summaries and what describes the notes. The content comes with --content.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon note add \"The staging API answers with 429 after noon\" --tag api\n  \
    mnemon note add --namespace long-term --importance 0.9 \"Ann prefers tea\"\n  \
    mnemon note add --file docs/decision.md --namespace long-term\n  \
    mnemon note search what does Ann drink --limit 3\n  \
    mnemon note get 8f14e45fceea167a --content\n  \
    mnemon note clear short-term --yes\n\n\
    Short-term notes are kept for 14 days, long-term ones for 10 years; see docs/notes.md.")]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Keep a note
    Add(Box<AddArgs>),
    /// Find notes by an id, or by what they say
    Search(SearchArgs),
    /// Show a note, with its content if that is wanted
    Get(GetArgs),
    /// Show notes, newest first, a page at a time
    List(ListArgs),
    /// Forget notes; undo brings them back
    Delete(DeleteArgs),
    /// Forget all notes of a namespace, or of both
    Clear(ClearArgs),
    /// Show how many notes there are
    Stats,
    /// Erase what has expired
    Cleanup,
}

#[derive(Debug, clap::Args)]
struct AddArgs {
    /// What to note; without it, or with -, it is read from stdin
    #[arg(value_name = "CONTENT", conflicts_with = "file")]
    content: Vec<String>,
    /// Take the content from this file, which must lie below `notes.root`
    #[arg(long, value_name = "PATH")]
    file: Option<String>,
    /// How long it is kept [default: short-term]
    #[arg(long, value_parser = filters::namespace())]
    namespace: Option<Namespace>,
    /// A tag; repeat for several, up to 20
    #[arg(long)]
    tag: Vec<String>,
    /// Where it came from [default: file:PATH with --file]
    #[arg(long)]
    source: Option<String>,
    /// From 0 to 1
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    importance: Option<f64>,
    /// A piece of metadata; repeat for several
    #[arg(long, value_name = "KEY=VALUE")]
    metadata: Vec<String>,
    /// Metadata as a JSON object
    #[arg(long, value_name = "JSON")]
    meta_json: Option<String>,
    #[command(flatten)]
    owner: OwnerArgs,
    /// Makes a retry harmless: under the same key the same is noted once
    #[arg(long)]
    key: Option<String>,
}

/// Which notes.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Which notes")]
struct WhichArgs {
    /// Only those of this namespace
    #[arg(long, value_parser = filters::namespace())]
    namespace: Option<Namespace>,
    /// At least one of these tags
    #[arg(long)]
    tag: Vec<String>,
    #[command(flatten)]
    owner: OwnerArgs,
}

#[derive(Debug, clap::Args)]
struct SearchArgs {
    /// An id, or what to look for; - reads it from stdin
    #[arg(value_name = "QUERY", required = true)]
    query: Vec<String>,
    /// At most this many, from 1 to 100 [default: notes.top_k, 5]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Leave out what scores less, from 0 to 1 [default: notes.min_score, 0.15]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    min_score: Option<f64>,
    /// How to look [default: notes.recipe, hybrid]
    #[arg(long, value_parser = search::recipe())]
    recipe: Option<Recipe>,
    /// Show the beginning of each content
    #[arg(long)]
    content: bool,
    #[command(flatten)]
    which: WhichArgs,
}

#[derive(Debug, clap::Args)]
struct GetArgs {
    /// Its id
    #[arg(value_name = "ID")]
    id: Id,
    /// Show the content as well
    #[arg(long)]
    content: bool,
    /// Where in the content to begin
    #[arg(long, value_name = "N", default_value_t = 0, requires = "content")]
    offset: usize,
    /// At most so much of the content
    #[arg(long, value_name = "N", requires = "content")]
    length: Option<usize>,
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    /// At most this many, up to 1000
    #[arg(long, value_name = "N", default_value_t = api::note_list::LIMIT,
        value_parser = super::list::limit)]
    limit: usize,
    /// Go on where the page before ended
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
    #[command(flatten)]
    which: WhichArgs,
}

#[derive(Debug, clap::Args)]
struct DeleteArgs {
    /// Their ids
    #[arg(required = true, value_name = "ID")]
    ids: Vec<Id>,
}

#[derive(Debug, clap::Args)]
struct ClearArgs {
    /// Which namespace
    #[arg(value_enum)]
    which: Cleared,
    /// Do it without asking
    #[arg(long)]
    yes: bool,
    /// Only say how many there are
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Cleared {
    ShortTerm,
    LongTerm,
    All,
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    match args.what {
        What::Add(args) => add_note(*args, door).await,
        What::Search(args) => find(args, door).await,
        What::Get(args) => get(args, door).await,
        What::List(args) => list(args, door).await,
        What::Delete(args) => delete(args, door).await,
        What::Clear(args) => clear(args, door).await,
        What::Stats => stats(door).await,
        What::Cleanup => cleanup(door).await,
    }
}

async fn add_note(args: AddArgs, door: &mut Door) -> Result<(), Error> {
    let metadata = add::metadata(&args.metadata, args.meta_json.as_deref())?;
    let note = NewNote {
        content: match args.file {
            Some(_) => None,
            None => Some(input::piped_words(&args.content)?),
        },
        content_path: args.file,
        namespace: args.namespace,
        tags: args.tag,
        source: args.source,
        importance: args.importance,
        metadata,
        owner: args.owner.into(),
        origin: None,
    };
    let (memory, ctx) = (door.memory()?, door.ctx()?);
    let added = memory.notes().add(&ctx, note, args.key.as_deref()).await?;
    return_json!(door, &added);
    printing::added(&added, door)
}

async fn find(args: SearchArgs, door: &mut Door) -> Result<(), Error> {
    let request = api::note_search::Request {
        query: input::words(&args.query)?,
        filter: args.which.into(),
        limit: args.limit,
        min_score: args.min_score,
        recipe: args.recipe,
        include_content: args.content.then_some(true),
    };
    let found = api::note_search::run(&door.memory()?, &door.ctx()?, request).await?;
    return_json!(door, &found);
    printing::found(&found, door)
}

async fn get(args: GetArgs, door: &mut Door) -> Result<(), Error> {
    let request = api::note_get::Request {
        content: args.content,
        offset: args.offset,
        length: args.length,
        ..api::note_get::Request::new(args.id, Viewer::Tenant)
    };
    let note = api::note_get::run(&door.memory()?, &door.ctx()?, request).await?;
    return_json!(door, &note);
    printing::note(&note, door)
}

async fn list(args: ListArgs, door: &mut Door) -> Result<(), Error> {
    let request = api::note_list::Request {
        filter: args.which.into(),
        after: args.after,
        limit: args.limit,
    };
    let page = api::note_list::run(&door.memory()?, &door.ctx()?, request).await?;
    return_json!(door, &page);
    printing::page(&page, door)
}

async fn delete(args: DeleteArgs, door: &mut Door) -> Result<(), Error> {
    let (memory, ctx) = (door.memory()?, door.ctx()?);
    let mut missing = Vec::new();
    for id in args.ids {
        let viewer = Viewer::Tenant;
        let request = api::note_delete::Request { id, viewer };
        let done = api::note_delete::run(&memory, &ctx, request).await?;
        if door.out.json {
            door.out.json(&done)?;
        } else if done.deleted {
            door.out.line(format!("forgotten {}", done.id))?;
        }
        if !done.deleted {
            missing.push(done.id);
        }
    }
    match missing.is_empty() {
        true => Ok(()),
        false => Err(Error::Missing(missing)),
    }
}

async fn clear(args: ClearArgs, door: &mut Door) -> Result<(), Error> {
    let (namespace, which) = match args.which {
        Cleared::ShortTerm => (Some(Namespace::ShortTerm), "all short-term notes"),
        Cleared::LongTerm => (Some(Namespace::LongTerm), "all long-term notes"),
        Cleared::All => (None, "all notes"),
    };
    if args.dry_run {
        return stats(door).await;
    }
    confirm::confirm(&format!("Forget {which}?"), args.yes)?;
    let (memory, ctx) = (door.memory()?, door.ctx()?);
    let everybody = Owner::default();
    let cleared = memory.notes().clear(&ctx, namespace, &everybody).await?;
    return_json!(door, &cleared);
    printing::cleared(&cleared, door)
}

async fn stats(door: &mut Door) -> Result<(), Error> {
    let request = api::note_stats::Request {
        viewer: Viewer::Tenant,
    };
    let counts = api::note_stats::run(&door.memory()?, &door.ctx()?, request).await?;
    return_json!(door, &counts);
    for (name, count) in [
        ("total", counts.total),
        ("short-term", counts.short_term),
        ("long-term", counts.long_term),
    ] {
        door.out.line(format!("{name:<11} {count}"))?;
    }
    Ok(())
}

async fn cleanup(door: &mut Door) -> Result<(), Error> {
    let cleaned = door.memory()?.notes().cleanup(&door.ctx()?).await?;
    return_json!(door, &cleaned);
    door.out.line(&cleaned.message)?;
    match cleaned.more {
        true => door.out.line("There is more; run it again."),
        false => Ok(()),
    }
}

impl From<WhichArgs> for NoteFilter {
    fn from(args: WhichArgs) -> Self {
        let owner: Owner = args.owner.into();
        Self {
            namespace: args.namespace,
            tags: args.tag,
            viewer: Viewer::of_caller(owner.user.clone(), owner.agent.clone()),
            owner,
        }
    }
}

/// Shown in help: one number for two places.
const _: () = assert!(limits::NOTE_HITS == 100 && limits::NOTE_TAGS == 20);
