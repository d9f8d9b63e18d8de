//! `mnemon chat reload|tail`

use mnemon_core::{Block, Message, Role};
use serde_json::json;

use super::super::door::Door;
use super::super::text;
use super::{ConversationArgs, chat};
use crate::{Error, api};

#[derive(Debug, clap::Args)]
pub(super) struct ReloadArgs {
    #[command(flatten)]
    conversation: ConversationArgs,
    /// What the tag says
    #[arg(value_name = "UUID")]
    uuid: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct TailArgs {
    #[command(flatten)]
    conversation: ConversationArgs,
    /// How many, up to 1000
    #[arg(short = 'n', long, value_name = "N", default_value_t = api::chat::TAIL)]
    count: usize,
}

pub(super) async fn reload(args: ReloadArgs, door: &mut Door) -> Result<(), Error> {
    let chat = chat(args.conversation, None, door).await?;
    let (memory, ctx) = (door.memory()?, door.ctx()?);
    print(&chat.reload(&memory, &ctx, &args.uuid).await?, door)
}

pub(super) async fn tail(args: TailArgs, door: &mut Door) -> Result<(), Error> {
    let chat = chat(args.conversation, None, door).await?;
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

/// A message in words: who, the text, calls and results.
pub(super) fn line(message: &Message) -> String {
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

fn word(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::System => "system",
        Role::Tool => "tool",
    }
}
