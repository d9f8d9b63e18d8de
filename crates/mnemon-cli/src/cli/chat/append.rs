//! `mnemon chat append`

use std::path::Path;

use mnemon_core::window::CompressionEvent;
use mnemon_core::{Fate, Message};
use serde_json::{Value, json};

use super::super::door::Door;
use super::super::lines::{Lines, blame};
use super::super::shared::{Shared, call, open};
use super::super::text;
use super::messages::event_line;
use mnemon_operations::Error;
use mnemon_operations::api::chat::{Append, Appended, Chat, message_of, messages_of};
use mnemon_operations::operation::{Arguments, ChatAppend, ConversationWindow};

pub(super) async fn append(args: Shared<ChatAppend>, door: &mut Door) -> Result<(), Error> {
    let mut arguments = args.arguments()?;
    match arguments.take_text("jsonl") {
        Some(path) => append_lines(arguments, Path::new(&path), door).await,
        None => report(&call::<ChatAppend>(arguments, door).await?, door),
    }
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

fn say_compressed(events: &[CompressionEvent], door: &mut Door) -> Result<(), Error> {
    for event in events {
        let line = format!("the window was compressed: {}", event_line(event));
        door.out.line(line)?;
    }
    Ok(())
}

/// Where the messages go.
enum Talk {
    Here(Box<Chat>),
    /// To a server, with these arguments.
    There(Arguments),
}

impl Talk {
    async fn append(
        &self,
        messages: Vec<Message>,
        key: Option<String>,
        leave_window: bool,
        door: &Door,
    ) -> Result<Appended, Error> {
        let mut given = match self {
            Self::There(given) => given.clone(),
            Self::Here(chat) => {
                let append = Append {
                    messages,
                    key: key.as_deref(),
                    leave_window: true,
                };
                return chat.append(append).await;
            }
        };
        let messages = serde_json::to_value(messages).map_err(Error::no_json)?;
        given.set("message", messages);
        key.into_iter().for_each(|key| given.set("key", key));
        given.set("leave_window", leave_window);
        call::<ChatAppend>(given, door).await
    }
}

async fn append_lines(given: Arguments, path: &Path, door: &mut Door) -> Result<(), Error> {
    let ctx = door.ctx()?;
    let mut lines = Lines::open(Some(path))?;
    lines.check(|json: &Value| message_of(&ctx, json.clone()).map(drop))?;
    let (key, leave_window) = (given.text("key"), given.flag("leave_window"));
    let leave_window = leave_window == Some(true);
    let talk = match door.remote {
        Some(_) => Talk::There(given),
        None => Talk::Here(Box::new(open::<ConversationWindow>(given, door).await?)),
    };
    let place = lines.place.clone();
    let (mut messages, mut known, mut commit) = (0, 0, None);
    let mut events = Vec::new();
    let mut batches = lines.batches::<Value>(|_| None)?.peekable();
    while let Some(batch) = batches.next() {
        let batch = batch?;
        let numbers: Vec<_> = batch.iter().map(|item| (item.line, None)).collect();
        let first = numbers.first().map_or(1, |(line, _)| *line);
        // The batches of a file are always the same, and so are their keys.
        let key = key.as_deref().map(|key| format!("{key}:{first}"));
        let items = batch.into_iter().map(|item| item.value).collect();
        let said = messages_of(&ctx, Value::Array(items))?;
        let leave = leave_window || batches.peek().is_some();
        let done = talk.append(said, key, leave, door).await;
        let done = done.map_err(|error| blame(&place, &numbers, error))?;
        let receipt = done.receipt;
        events.extend(done.events);
        let is_known = |fate: &Fate| matches!(fate, Fate::Duplicate { .. });
        let there = receipt.items.iter().filter(|item| is_known(&item.fate));
        let there = there.count() as u64;
        known += there;
        messages += receipt.items.len() as u64 - there;
        commit = receipt.commit.or(commit);
    }
    if let (Talk::Here(chat), false) = (&talk, leave_window || messages == 0) {
        events = chat.compress_if_due().await?;
    }
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
    say!(door, "appended {count}{commit}{known}")?;
    say_compressed(&events, door)
}
