//! `mnemon note`

mod printing;

use mnemon_core::rank::Recipe;
use mnemon_core::{Id, Invalid, Namespace, Owner, Viewer, limits};
use mnemon_engine::notes::{NewNote, NoteFilter, NoteQuery};
use serde_json::json;

use super::door::Door;
use super::filters::{self, OwnerArgs};
use super::{add, confirm, input, search, text};
use crate::Error;

/// Notes of a page when nobody says.
const PAGE: usize = 20;

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
    #[arg(long, value_name = "N", default_value_t = PAGE,
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
    if added.not_stored {
        let what = format!("is too low. {}", added.message);
        return Err(Invalid::new("--importance", what).into());
    }
    return_json!(door, &added);
    printing::added(&added, door)
}

async fn find(args: SearchArgs, door: &mut Door) -> Result<(), Error> {
    let most = limits::NOTE_HITS;
    if let Some(limit) = args.limit.filter(|limit| !(1..=most).contains(limit)) {
        let what = format!("is {limit}; from 1 to {most} is allowed");
        return Err(Invalid::new("limit", what).into());
    }
    let query = NoteQuery {
        text: input::words(&args.query)?,
        filter: args.which.into(),
        limit: args.limit,
        min_score: args.min_score,
        recipe: args.recipe,
        include_content: args.content.then_some(true),
    };
    let memory = door.memory()?;
    let found = memory.notes().search(&door.ctx()?, &query).await?;
    return_json!(door, &found);
    printing::found(&found, door)
}

async fn get(args: GetArgs, door: &mut Door) -> Result<(), Error> {
    let (memory, ctx) = (door.memory()?, door.ctx()?);
    let (notes, viewer, id) = (memory.notes(), &Viewer::Tenant, &args.id);
    let missing = || Error::Missing(vec![id.clone()]);
    if !args.content {
        let view = notes.get(&ctx, viewer, id, None).await?;
        let view = view.ok_or_else(missing)?;
        return_json!(door, &view);
        return printing::note(&view, None, door);
    }
    let most = args.length.unwrap_or(limits::CONTENT_BYTES);
    let text = notes.text(&ctx, viewer, id, args.offset, most).await?;
    let text = text.ok_or_else(missing)?;
    return_json!(door, &text);
    printing::note(&text.note, Some(&text), door)
}

async fn list(args: ListArgs, door: &mut Door) -> Result<(), Error> {
    let after = args.after.map(|text| text.parse()).transpose()?;
    let (memory, ctx) = (door.memory()?, door.ctx()?);
    let (notes, filter) = (memory.notes(), args.which.into());
    let page = notes.list(&ctx, &filter, after, args.limit).await?;
    return_json!(door, &page);
    printing::page(&page, door)
}

async fn delete(args: DeleteArgs, door: &mut Door) -> Result<(), Error> {
    let (memory, ctx) = (door.memory()?, door.ctx()?);
    let mut missing = Vec::new();
    for id in args.ids {
        let deleted = memory.notes().delete(&ctx, &Viewer::Tenant, &id).await?;
        if door.out.json {
            door.out.json(&json!({ "deleted": deleted, "id": id }))?;
        } else if deleted {
            door.out.line(format!("forgotten {id}"))?;
        }
        if !deleted {
            missing.push(id);
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
        let (memory, ctx) = (door.memory()?, door.ctx()?);
        let counts = memory.notes().stats(&ctx, &Viewer::Tenant).await?;
        let count = match args.which {
            Cleared::ShortTerm => counts.short_term,
            Cleared::LongTerm => counts.long_term,
            Cleared::All => counts.total,
        };
        return_json!(door, &json!({ "dryRun": true, "count": count }));
        let count = text::count(count, "note");
        return door.out.line(format!("would forget {count}"));
    }
    confirm::confirm(&format!("Forget {which}?"), args.yes)?;
    let (memory, ctx) = (door.memory()?, door.ctx()?);
    let everybody = Owner::default();
    let cleared = memory.notes().clear(&ctx, namespace, &everybody).await?;
    return_json!(door, &cleared);
    printing::cleared(&cleared, door)
}

async fn stats(door: &mut Door) -> Result<(), Error> {
    let (memory, ctx) = (door.memory()?, door.ctx()?);
    let counts = memory.notes().stats(&ctx, &Viewer::Tenant).await?;
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
    if cleaned.cleaned > 0 {
        let what = "they are erased; `mnemon undo` does not bring them back";
        door.out.line(what)?;
    }
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
