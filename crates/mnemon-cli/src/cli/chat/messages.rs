//! `mnemon chat reload|tail|events`

use mnemon_core::window::CompressionEvent;
use mnemon_core::{Block, Message, Time};
use serde_json::Value;

use super::super::door::Door;
use super::super::shared::Shown;
use super::super::text;
use mnemon_operations::Error;
use mnemon_operations::api::chat::Tail;
use mnemon_operations::operation::{Events, Messages, Passages};

impl Shown for Messages {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        print(&self.messages, door)
    }
}

impl Shown for Passages {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        if self.passages.is_empty() {
            return door.out.line("nothing found");
        }
        for passage in &self.passages {
            let source = text::one_line(&passage.source);
            let created = text::local(passage.created);
            say!(door, "{source}  {created}")?;
            for line in passage.text.lines() {
                say!(door, "  {}", text::clean(line))?;
            }
        }
        Ok(())
    }
}

impl Shown for Tail {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        print(&self.messages, door)?;
        door.out.next_page("--before", self.before.as_ref())
    }
}

impl Shown for Events {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        if self.events.is_empty() {
            return door.out.line("the window was never compressed");
        }
        for event in &self.events {
            let at = Time::from_millis(event.timestamp).map(text::local);
            let at = at.unwrap_or_default();
            say!(door, "{at}  {}", event_line(event))?;
        }
        Ok(())
    }
}

pub(super) fn event_line(event: &CompressionEvent) -> String {
    let before = event.number("tokenBefore").unwrap_or_default();
    let after = event.number("tokenAfter").unwrap_or_default();
    let count = text::count(event.compressed_message_count as u64, "message");
    let strategy = text::one_line(&event.event_type);
    let mut line = format!("{strategy}: {count}, {before} → {after} tokens");
    if let Some(page) = event.metadata.get("page").and_then(Value::as_str) {
        line.push_str(&format!("; page: {}", text::one_line(page)));
    }
    if let Some(by) = event.summariser() {
        line.push_str(&format!("; summary: {}", text::one_line(by)));
    }
    if let Some(why) = event.metadata.get("refused").and_then(Value::as_str) {
        line.push_str(&format!(
            " (the model's was not used: {})",
            text::one_line(why)
        ));
    }
    line
}

fn print(messages: &[Message], door: &mut Door) -> Result<(), Error> {
    for message in messages {
        door.out.line(text::clean(&line(message)))?;
    }
    Ok(())
}

/// A message in words: who, the text, calls and results.
pub(super) fn line(message: &Message) -> String {
    let mut who = message.role.word().to_owned();
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
