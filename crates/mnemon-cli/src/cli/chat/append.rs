//! `mnemon chat append`

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use mnemon_core::window::CompressionEvent;
use mnemon_core::{Ctx, Fate, Invalid, Message, Role};
use mnemon_engine::LogLine;
use serde_json::{Value, json};

use super::super::door::Door;
use super::super::lines::{Lines, blame};
use super::super::shared::text_value;
use super::super::{input, text};
use super::messages::event_line;
use super::{ConversationArgs, WindowArgs, chat};
use crate::Error;
use crate::api::chat::{Append, Appended, message_of, messages_of};

#[derive(Debug, clap::Args)]
pub(super) struct AppendArgs {
    #[command(flatten)]
    conversation: ConversationArgs,
    /// Text of the message; without it, or with -, it is read from stdin
    #[arg(
        value_name = "TEXT",
        conflicts_with_all = ["message", "jsonl"],
        allow_hyphen_values = true,
        value_parser = text_value
    )]
    text: Option<String>,
    #[arg(hide = true)]
    more_words: Vec<String>,
    #[arg(hide = true, last = true)]
    after_dashes: Vec<String>,
    /// Role of the speaker
    #[arg(long, value_parser = role(), default_value = "user", conflicts_with_all = ["message", "jsonl"])]
    role: Role,
    /// Name of the speaker
    #[arg(long, value_name = "NAME", conflicts_with_all = ["message", "jsonl"])]
    name: Option<String>,
    /// The message in JSON, with role and content, or a list of messages that are added together;
    /// - reads it from stdin, @PATH from a file
    #[arg(long, value_name = "JSON|-|@PATH", conflicts_with = "jsonl")]
    message: Option<String>,
    /// Add many messages: a file, or - for stdin, with one JSON message per line
    ///
    /// Every line is checked before the first message is added. Up to 1000 lines are added together,
    /// all or none; an error names the line. With --key an interrupted import is completed when it
    /// is repeated with the same file.
    #[arg(long, value_name = "FILE|-")]
    jsonl: Option<PathBuf>,
    /// Idempotency key: messages that were added under this key are not added again
    #[arg(long)]
    key: Option<String>,
    /// Do not compress the window
    #[arg(long)]
    leave_window: bool,
    /// A line of the format of a project's log: user, thought, action or observation
    #[arg(long, value_name = "JSON|-|@PATH", requires = "files", conflicts_with_all = ["message", "text", "jsonl"])]
    line: Option<String>,
    #[command(flatten)]
    window: WindowArgs,
}

fn role() -> impl TypedValueParser<Value = Role> {
    let roles = [Role::User, Role::Assistant, Role::System, Role::Tool];
    PossibleValuesParser::new(roles.map(Role::word)).map(move |word| {
        let role = roles.into_iter().find(|role| role.word() == word);
        role.unwrap_or_default()
    })
}

pub(super) async fn append(mut args: AppendArgs, door: &mut Door) -> Result<(), Error> {
    if let Some(path) = args.jsonl.take() {
        return append_lines(args, &path, door).await;
    }
    if let Some(line) = args.line.take() {
        return append_line(args, &input::given_or_file(&line)?, door).await;
    }
    let ctx = door.ctx()?;
    let messages = match args.message.as_deref() {
        Some(json) => messages_of(&ctx, parse(json)?)?,
        None => vec![spoken(&ctx, &args)?],
    };
    let append = Append {
        messages,
        key: args.key.as_deref(),
        leave_window: args.leave_window,
    };
    let chat = chat(args.conversation, Some(args.window), door).await?;
    let done = chat.append(&door.memory()?, &ctx, append).await?;
    report(&done, door)
}

async fn append_line(args: AppendArgs, line: &str, door: &mut Door) -> Result<(), Error> {
    let line: LogLine = serde_json::from_str(line)
        .map_err(|error| Invalid::new("line", format!("is not a line of a log: {error}")))?;
    let chat = chat(args.conversation, Some(args.window), door).await?;
    let (memory, ctx, key) = (door.memory()?, door.ctx()?, args.key.as_deref());
    let done = chat.append_line(&memory, &ctx, &line, key, args.leave_window);
    let done = done.await?;
    report(&done, door)
}

fn report(done: &Appended, door: &mut Door) -> Result<(), Error> {
    return_json!(door, done);
    let commit = done.receipt.commit;
    let commit = commit.map_or(String::new(), |commit| format!(" (commit {commit})"));
    for item in &done.receipt.items {
        let line = match item.fate {
            Fate::Duplicate { .. } => format!("already there: {}", item.id),
            _ => format!("appended {}{commit}", item.id),
        };
        door.out.line(line)?;
    }
    say_compressed(&done.events, door)
}

fn spoken(ctx: &Ctx, args: &AppendArgs) -> Result<Message, Error> {
    let words = args.text.iter();
    let words = words.chain(&args.more_words).chain(&args.after_dashes);
    let said = input::words(&words.cloned().collect::<Vec<_>>())?;
    if said.trim().is_empty() {
        return Err(Invalid::new("text", "is empty").into());
    }
    let json = json!({"role": args.role, "name": args.name, "content": said});
    Ok(message_of(ctx, json)?)
}

fn parse(json: &str) -> Result<Value, Error> {
    serde_json::from_str(&input::given_or_file(json)?)
        .map_err(|error| Invalid::new("message", format!("is not JSON: {error}")).into())
}

fn say_compressed(events: &[CompressionEvent], door: &mut Door) -> Result<(), Error> {
    for event in events {
        let line = format!("the window was compressed: {}", event_line(event));
        door.out.line(line)?;
    }
    Ok(())
}

async fn append_lines(args: AppendArgs, path: &Path, door: &mut Door) -> Result<(), Error> {
    let ctx = door.ctx()?;
    let mut lines = Lines::open(Some(path))?;
    lines.check(|json: &Value| message_of(&ctx, json.clone()).map(drop))?;
    let (memory, key) = (door.memory()?, args.key);
    let chat = chat(args.conversation, Some(args.window), door).await?;
    let place = lines.place.clone();
    let (mut messages, mut known, mut commit) = (0, 0, None);
    for batch in lines.batches::<Value>(|_| None)? {
        let batch = batch?;
        let numbers: Vec<_> = batch.iter().map(|item| (item.line, None)).collect();
        let first = numbers.first().map_or(1, |(line, _)| *line);
        // The batches of a file are always the same, and so are their keys.
        let key = key.as_deref().map(|key| format!("{key}:{first}"));
        let items = batch.into_iter().map(|item| item.value).collect();
        let append = Append {
            messages: messages_of(&ctx, Value::Array(items))?,
            key: key.as_deref(),
            leave_window: true,
        };
        let done = chat.append(&memory, &ctx, append).await;
        let receipt = done
            .map_err(|error| blame(&place, &numbers, error))?
            .receipt;
        let is_known = |fate: &Fate| matches!(fate, Fate::Duplicate { .. });
        let there = receipt.items.iter().filter(|item| is_known(&item.fate));
        let there = there.count() as u64;
        known += there;
        messages += receipt.items.len() as u64 - there;
        commit = receipt.commit.or(commit);
    }
    let events = match args.leave_window || messages == 0 {
        true => Vec::new(),
        false => chat.compress_if_due(&memory, &ctx).await?,
    };
    let compressed = !events.is_empty();
    return_json!(
        door,
        &json!({ "messages": messages, "already_there": known, "commit": commit,
            "compressed": compressed, "events": events })
    );
    let count = text::count(messages, "message");
    let commit = commit.filter(|_| messages > 0);
    let commit = commit.map_or(String::new(), |commit| format!(" (commit {commit})"));
    let known = match known {
        0 => String::new(),
        known => format!("; {} already there", text::count(known, "message")),
    };
    door.out.line(format!("appended {count}{commit}{known}"))?;
    say_compressed(&events, door)
}
