//! `mnemon chat`

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use mnemon_core::window::Settings;
use mnemon_core::{Block, Invalid, Message, Role};
use mnemon_engine::{Seen, SeenAs, Shown, Utterance};
use serde_json::json;

use super::door::Door;
use super::{input, text};
use crate::api::chat::{Append, Chat};
use crate::{Error, api};

/// Keep a conversation, and a window of it that fits the model
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon chat append s1 \"Where is the tea house?\" --user ann\n  \
    mnemon chat append s1 --user ann --role assistant \"In the old town.\"\n  \
    mnemon chat append s1 --user ann --message '{\"role\":\"TOOL\",\"content\":[{\"type\":\"tool_result\",\"id\":\"c1\",\"name\":\"ls\",\"output\":[{\"type\":\"text\",\"text\":\"a.txt\"}]}]}'\n  \
    mnemon chat show s1 --user ann\n  \
    mnemon chat compress s1 --user ann --last-keep 10\n  \
    mnemon chat reload s1 01890a5d-ac96-774b-bcce-b302099a8057 --user ann\n  \
    mnemon chat tail s1 --user ann -n 5\n\n\
    docs/conversations.md says how a window is compressed.")]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Add a message, and compress the window if it is due
    Append(AppendArgs),
    /// Draw the window: what is hot, summarised and offloaded, and the tokens of each
    Show(ShowArgs),
    /// Compress the window, by the gentlest way that makes it smaller
    Compress(CompressArgs),
    /// Read back what a tag in the window stands for
    Reload(ReloadArgs),
    /// Show the last messages as they were said
    Tail(TailArgs),
}

/// Which conversation.
#[derive(Debug, clap::Args)]
struct Whose {
    /// The conversation: a plain name of at most 255 characters, without / \ and ..
    #[arg(value_name = "SESSION")]
    session: String,
    /// Whose conversation it is
    #[arg(long, value_name = "NAME", default_value = "default")]
    user: String,
}

/// How large the window may be.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "The window")]
struct Size {
    /// What the model can read; from three quarters of it on the window is due [default: 131072]
    #[arg(long, value_name = "TOKENS")]
    max_token: Option<usize>,
    /// From so many messages on the window is due [default: 100]
    #[arg(long, value_name = "N")]
    msg_threshold: Option<usize>,
    /// The last messages, which gentle ways leave alone [default: 50]
    #[arg(long, value_name = "N")]
    last_keep: Option<usize>,
    /// Count the tokens of this model instead of estimating them
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
}

#[derive(Debug, clap::Args)]
struct AppendArgs {
    #[command(flatten)]
    whose: Whose,
    /// What was said; without it, or with -, it is read from stdin
    #[arg(value_name = "TEXT", conflicts_with = "message")]
    text: Vec<String>,
    /// Who speaks
    #[arg(long, value_parser = role(), default_value = "user", conflicts_with = "message")]
    role: Role,
    /// The speaker's name
    #[arg(long, value_name = "NAME", conflicts_with = "message")]
    name: Option<String>,
    /// The message in JSON, with role and content; - reads it from stdin, @PATH from a file
    #[arg(long, value_name = "JSON|-|@PATH")]
    message: Option<String>,
    /// Makes a retry harmless: under the same key the same is said once
    #[arg(long)]
    key: Option<String>,
    /// Leave the window as it is
    #[arg(long)]
    leave_window: bool,
    /// Write it to the frozen log of this project, too: ROOT/.airsspec/contexts/agent/SESSION.jsonl
    #[arg(long, value_name = "ROOT")]
    files: Option<PathBuf>,
    #[command(flatten)]
    size: Size,
}

#[derive(Debug, clap::Args)]
struct ShowArgs {
    #[command(flatten)]
    whose: Whose,
    #[command(flatten)]
    size: Size,
}

#[derive(Debug, clap::Args)]
struct CompressArgs {
    #[command(flatten)]
    whose: Whose,
    /// Only if it is due
    #[arg(long)]
    if_needed: bool,
    #[command(flatten)]
    size: Size,
}

#[derive(Debug, clap::Args)]
struct ReloadArgs {
    #[command(flatten)]
    whose: Whose,
    /// What the tag says
    #[arg(value_name = "UUID")]
    uuid: String,
}

#[derive(Debug, clap::Args)]
struct TailArgs {
    #[command(flatten)]
    whose: Whose,
    /// How many, up to 1000
    #[arg(short = 'n', long, value_name = "N", default_value_t = api::chat::TAIL)]
    count: usize,
}

fn role() -> impl TypedValueParser<Value = Role> {
    PossibleValuesParser::new(["user", "assistant", "system", "tool"]).map(|word| {
        match word.as_str() {
            "assistant" => Role::Assistant,
            "system" => Role::System,
            "tool" => Role::Tool,
            _ => Role::User,
        }
    })
}

fn word(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::System => "system",
        Role::Tool => "tool",
    }
}

fn chat(whose: Whose, size: Option<Size>, mut settings: Settings) -> Chat {
    let mut model = None;
    if let Some(size) = size {
        settings.max_token = size.max_token.unwrap_or(settings.max_token);
        settings.msg_threshold = size.msg_threshold.unwrap_or(settings.msg_threshold);
        settings.last_keep = size.last_keep.unwrap_or(settings.last_keep);
        model = size.model;
    }
    Chat {
        user: whose.user,
        session: whose.session,
        settings,
        model,
    }
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    match args.what {
        What::Append(args) => append(args, door).await,
        What::Show(args) => show(args, door).await,
        What::Compress(args) => compress(args, door).await,
        What::Reload(args) => reload(args, door).await,
        What::Tail(args) => tail(args, door).await,
    }
}

async fn append(args: AppendArgs, door: &mut Door) -> Result<(), Error> {
    let message = match args.message.as_deref() {
        Some(json) => parse(json)?,
        None => {
            let said = input::words(&args.text)?;
            if said.trim().is_empty() {
                return Err(Invalid::new("text", "is empty; nothing was said").into());
            }
            Utterance {
                name: args.name,
                ..Utterance::text(args.role, said)
            }
        }
    };
    let append = Append {
        message,
        key: args.key.as_deref(),
        leave_window: args.leave_window,
        files: args.files.as_deref(),
    };
    let chat = chat(args.whose, Some(args.size), door.config.window.value);
    let done = chat.append(&door.memory()?, &door.ctx()?, append).await?;
    return_json!(door, &done);
    let commit = done.receipt.commit.unwrap_or_default();
    for item in &done.receipt.items {
        door.out
            .line(format!("appended {} (commit {commit})", item.id))?;
    }
    match done.compressed {
        true => door.out.line("the window was compressed"),
        false => Ok(()),
    }
}

fn parse(json: &str) -> Result<Utterance, Error> {
    serde_json::from_str(&input::given_or_file(json)?)
        .map_err(|error| Invalid::new("message", format!("is no message: {error}")).into())
}

async fn show(args: ShowArgs, door: &mut Door) -> Result<(), Error> {
    let chat = chat(args.whose, Some(args.size), door.config.window.value);
    let shown = chat.show(&door.memory()?, &door.ctx()?).await?;
    return_json!(door, &shown);
    draw(&shown, door)
}

/// Columns of the bar.
const BAR: usize = 50;

fn draw(shown: &Shown, door: &mut Door) -> Result<(), Error> {
    let (tokens, limit) = (shown.tokens, shown.token_limit);
    let messages = text::count(shown.messages.len() as u64, "message");
    let due = if shown.due {
        "; it is due to be compressed"
    } else {
        ""
    };
    door.out
        .line(format!("{messages}, {tokens} of {limit} tokens{due}"))?;
    let kinds = [
        (SeenAs::Summarised, '='),
        (SeenAs::Offloaded, '-'),
        (SeenAs::Hot, '#'),
    ];
    let mut bar = String::new();
    for (as_, sign) in kinds {
        let columns = (shown.part(as_).2 * BAR).div_ceil(limit.max(tokens).max(1));
        bar.extend(std::iter::repeat_n(sign, columns));
    }
    door.out.line(format!("[{bar:<BAR$.BAR$}]"))?;
    let rows = kinds.iter().map(|(as_, sign)| {
        let (count, covers, tokens) = shown.part(*as_);
        let stands_for = match *as_ {
            SeenAs::Hot => String::new(),
            _ => format!("for {covers}"),
        };
        vec![
            format!("{sign} {}", name(*as_)),
            count.to_string(),
            stands_for,
            format!("{tokens} tokens"),
        ]
    });
    door.out.table(&[], rows.collect())?;
    for (number, seen) in shown.messages.iter().enumerate() {
        let line = row(number, seen);
        let line = text::cut(&line, door.out.width);
        door.out.line(line)?;
    }
    Ok(())
}

fn name(as_: SeenAs) -> &'static str {
    match as_ {
        SeenAs::Hot => "hot",
        SeenAs::Summarised => "summarised",
        SeenAs::Offloaded => "offloaded",
    }
}

fn row(number: usize, seen: &Seen) -> String {
    let sign = match seen.as_ {
        SeenAs::Hot => '#',
        SeenAs::Summarised => '=',
        SeenAs::Offloaded => '-',
    };
    let stands_for = match &seen.uuid {
        Some(uuid) => format!("[{} {uuid}] ", text::count(seen.covers, "message")),
        None => String::new(),
    };
    let (tokens, said) = (seen.tokens, line(&seen.message));
    format!("{sign} {number} {tokens}t {stands_for}{said}")
}

/// A message in words: who, the text, calls and results.
fn line(message: &Message) -> String {
    let mut who = word(message.role).to_owned();
    if let Some(name) = &message.name
        && *name != who
    {
        who.push_str(&format!(" {name}"));
    }
    let parts: Vec<String> = message.content.iter().map(part).collect();
    format!("{who}: {}", parts.join(" "))
}

fn part(block: &Block) -> String {
    match block {
        Block::Text { text } => text.clone(),
        Block::Thinking { thinking, .. } => format!("(thinks: {thinking})"),
        Block::Image { .. } => "(image)".to_owned(),
        Block::Audio { .. } => "(audio)".to_owned(),
        Block::Video { .. } => "(video)".to_owned(),
        Block::ToolUse { name, input, .. } => {
            let input = serde_json::to_string(input).unwrap_or_default();
            format!("→ {name} {input}")
        }
        Block::ToolResult { name, output, .. } => {
            let output: Vec<String> = output.iter().map(part).collect();
            format!("← {name}: {}", output.join(" "))
        }
    }
}

async fn compress(args: CompressArgs, door: &mut Door) -> Result<(), Error> {
    let chat = chat(args.whose, Some(args.size), door.config.window.value);
    let (memory, ctx) = (door.memory()?, door.ctx()?);
    let done = chat.compress(&memory, &ctx, args.if_needed).await?;
    return_json!(door, &done);
    if done.events.is_empty() {
        return door
            .out
            .line("nothing was compressed: there is nothing to be gained");
    }
    for event in &done.events {
        let before = event.number("tokenBefore").unwrap_or_default();
        let after = event.number("tokenAfter").unwrap_or_default();
        let count = text::count(event.compressed_message_count as u64, "message");
        let what = text::one_line(&event.event_type);
        door.out
            .line(format!("{what}: {count}, {before} → {after} tokens"))?;
    }
    let (before, after) = (done.tokens_before, done.tokens_after);
    door.out
        .line(format!("the window: {before} → {after} tokens"))
}

async fn reload(args: ReloadArgs, door: &mut Door) -> Result<(), Error> {
    let chat = chat(args.whose, None, door.config.window.value);
    let (memory, ctx) = (door.memory()?, door.ctx()?);
    print(&chat.reload(&memory, &ctx, &args.uuid).await?, door)
}

async fn tail(args: TailArgs, door: &mut Door) -> Result<(), Error> {
    let chat = chat(args.whose, None, door.config.window.value);
    let (memory, ctx) = (door.memory()?, door.ctx()?);
    print(&chat.tail(&memory, &ctx, args.count).await?, door)
}

fn print(messages: &[Message], door: &mut Door) -> Result<(), Error> {
    return_json!(door, &json!({ "messages": messages }));
    for message in messages {
        door.out.line(text::clean(&line(message)))?;
    }
    Ok(())
}
