//! `mnemon chat append`

use std::path::Path;

use mnemon_core::Fate;
use mnemon_core::window::CompressionEvent;
use serde_json::{Value, json};

use super::super::door::Door;
use super::super::lines::{Lines, blame};
use super::super::shared::{Shared, call, open};
use super::super::text;
use super::messages::event_line;
use crate::Error;
use crate::api::chat::{Append, Appended, message_of, messages_of};
use crate::operation::{Arguments, ChatAppend, ConversationWindow};

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

async fn append_lines(given: Arguments, path: &Path, door: &mut Door) -> Result<(), Error> {
    let ctx = door.ctx()?;
    let mut lines = Lines::open(Some(path))?;
    lines.check(|json: &Value| message_of(&ctx, json.clone()).map(drop))?;
    let (key, leave_window) = (given.text("key"), given.flag("leave_window"));
    let chat = open::<ConversationWindow>(given, door).await?;
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
        let done = chat.append(append).await;
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
    let events = match leave_window == Some(true) || messages == 0 {
        true => Vec::new(),
        false => chat.compress_if_due().await?,
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
    say!(door, "appended {count}{commit}{known}")?;
    say_compressed(&events, door)
}
