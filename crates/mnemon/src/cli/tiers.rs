//! `mnemon tiers`

use std::path::PathBuf;
use std::sync::Arc;

use mnemon_core::Invalid;
use mnemon_engine::Memory;
use mnemon_engine::session::SessionId;
use mnemon_engine::tiers::{Said, Tiers};
use serde_json::{Value, json};

use super::door::Door;
use super::{input, text};
use crate::{Error, api, wiring};

/// Keep the log of a session in tiers: hot, warm, cold, frozen
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon tiers append s1 \"Write the parser\" --files .\n  \
    mnemon tiers append s1 --type action --tool write_file '{\"path\":\"a.rs\"}' --files .\n  \
    mnemon tiers boot s1 --files .\n  \
    mnemon tiers compress s1 --files .\n  \
    mnemon tiers query \"what was decided about the parser?\" --files .\n\n\
    With --files the tiers lie in ROOT/.airsspec; without it they are records in the store.\n\
    docs/tiers.md says what is kept where.")]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Add a line to the frozen log; what has no room in view any more is indexed
    Append(AppendArgs),
    /// Show the hot lines: the last valid ones of the log, read from its end
    Boot(OneArgs),
    /// Make a page of the older half, if the window is over its threshold
    ///
    /// The log stays whole: the next boot shows its last lines again.
    Compress(OneArgs),
    /// Ask what left the windows, the pages, and all that is known
    Query(QueryArgs),
}

#[derive(Debug, clap::Args)]
struct Place {
    /// The project whose folder .airsspec holds the tiers; without it the store does
    #[arg(long, value_name = "ROOT")]
    files: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct AppendArgs {
    /// The session
    #[arg(value_name = "SESSION")]
    session: SessionId,
    /// What was said, or what a tool was given or gave back; without it, or with -, from stdin
    #[arg(value_name = "TEXT")]
    text: Vec<String>,
    /// What sort of line it is
    #[arg(long = "type", value_enum, default_value_t)]
    sort: Sort,
    /// The tool of an action
    #[arg(long, value_name = "NAME", required_if_eq("sort", "action"))]
    tool: Option<String>,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum Sort {
    #[default]
    User,
    Thought,
    /// TEXT is what the tool was given, in JSON
    Action,
    /// TEXT is what the tool gave back, in JSON or in words
    Observation,
}

#[derive(Debug, clap::Args)]
struct OneArgs {
    /// The session
    #[arg(value_name = "SESSION")]
    session: SessionId,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, clap::Args)]
struct QueryArgs {
    /// What is asked
    #[arg(value_name = "QUERY", required = true)]
    query: Vec<String>,
    /// At most so many excerpts
    #[arg(long, value_name = "N", default_value_t = api::tiers::LIMIT)]
    limit: usize,
    #[command(flatten)]
    place: Place,
}

async fn open(place: &Place, door: &Door) -> Result<(Tiers, Arc<Memory>), Error> {
    let memory = Arc::new(door.memory()?);
    let tiers = wiring::tiers(&door.config, memory.clone(), place.files.as_deref()).await?;
    Ok((tiers, memory))
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    match args.what {
        What::Append(args) => append(args, door).await,
        What::Boot(args) => boot(args, door).await,
        What::Compress(args) => compress(args, door).await,
        What::Query(args) => query(args, door).await,
    }
}

fn said(args: &AppendArgs) -> Result<Said, Error> {
    let content = input::words(&args.text)?;
    let json = serde_json::from_str::<Value>(&content);
    Ok(match args.sort {
        Sort::User => Said::User { content },
        Sort::Thought => Said::Thought { content },
        Sort::Action => Said::Action {
            tool: args.tool.clone().unwrap_or_default(),
            params: match json {
                Ok(params) => params,
                Err(error) => {
                    let what = format!("what a tool is given must be JSON: {error}");
                    return Err(Invalid::new("text", what).into());
                }
            },
        },
        Sort::Observation => Said::Observation {
            result: json.unwrap_or(Value::String(content)),
        },
    })
}

async fn append(args: AppendArgs, door: &mut Door) -> Result<(), Error> {
    let said = said(&args)?;
    let (tiers, _) = open(&args.place, door).await?;
    let done = api::tiers::append(&tiers, &door.ctx()?, &args.session, said).await?;
    return_json!(door, &done);
    let hot = text::count(done.hot as u64, "line");
    door.out
        .line(format!("appended at {}; {hot} in view", done.at))
}

async fn boot(args: OneArgs, door: &mut Door) -> Result<(), Error> {
    let (tiers, _) = open(&args.place, door).await?;
    let found = api::tiers::boot(&tiers, &door.ctx()?, &args.session).await?;
    return_json!(door, &found);
    for line in &found.skipped_lines {
        let why = format!("the line at {} was skipped: {}", line.at, line.why);
        door.out.note(&why);
    }
    for line in &found.lines {
        door.out.line(text::one_line(&line.text))?;
    }
    let lines = text::count(found.lines.len() as u64, "line");
    let (tokens, read) = (found.tokens, found.bytes_read);
    let due = if found.is_over {
        "; it is due to be compressed"
    } else {
        ""
    };
    door.out
        .line(format!("{lines}, {tokens} tokens, {read} bytes read{due}"))
}

async fn compress(args: OneArgs, door: &mut Door) -> Result<(), Error> {
    let (tiers, memory) = open(&args.place, door).await?;
    let llm = memory.llm().cloned();
    let done = api::tiers::compress(&tiers, llm, &door.ctx()?, &args.session).await?;
    return_json!(door, &done);
    let Some(history) = &done.history else {
        return door
            .out
            .line("nothing was compressed: the window is small enough");
    };
    let lines = text::count(done.lines as u64, "line");
    let (before, after) = (done.tokens_before, done.tokens_after);
    let name = text::one_line(history);
    door.out
        .line(format!("{name}: {lines}, {before} → {after} tokens"))
}

async fn query(args: QueryArgs, door: &mut Door) -> Result<(), Error> {
    let (tiers, _) = open(&args.place, door).await?;
    let query = args.query.join(" ");
    let excerpts = api::tiers::query(&tiers, &door.ctx()?, &query, args.limit).await?;
    return_json!(door, &json!({ "excerpts": excerpts }));
    if excerpts.is_empty() {
        return door.out.line("nothing was found");
    }
    for excerpt in &excerpts {
        let source = text::one_line(&excerpt.source);
        let text = text::one_line(&excerpt.text);
        door.out.line(format!("{source}: {text}"))?;
    }
    Ok(())
}
