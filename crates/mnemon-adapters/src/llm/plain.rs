//! A prompt in words that every endpoint takes.
//!
//! A prompt offers no tools, and services refuse calls and results of tools that were not offered;
//! many models also want the two sides to take turns. So calls and results are told in words, and
//! neighbours of one side become one.

use mnemon_core::llm::Prompt;
use mnemon_core::{Block, Message, Role};

use super::structured;

/// What one side says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    User(String),
    Model(String),
}

/// The system prompt, and the turns, which begin with the user's.
pub(super) fn turns(prompt: &Prompt) -> (Option<String>, Vec<Turn>) {
    let mut system: Vec<String> = prompt.system.iter().cloned().collect();
    let mut turns: Vec<Turn> = Vec::new();
    for message in &prompt.messages {
        let text = words(message);
        if text.trim().is_empty() {
            continue;
        }
        match (message.role, turns.last_mut()) {
            // Once the talk has begun, what the system says is part of it.
            (Role::System, None) => system.push(text),
            (Role::Assistant, Some(Turn::Model(said)))
            | (Role::User | Role::Tool | Role::System, Some(Turn::User(said))) => {
                said.push_str("\n\n");
                said.push_str(&text);
            }
            (Role::Assistant, None) => {
                turns.push(Turn::User("(The conversation began earlier.)".to_owned()));
                turns.push(Turn::Model(text));
            }
            (Role::Assistant, Some(Turn::User(_))) => turns.push(Turn::Model(text)),
            (Role::User | Role::Tool | Role::System, _) => turns.push(Turn::User(text)),
        }
    }
    if let Some(schema) = &prompt.schema {
        system.push(structured::instruction(schema));
    }
    ((!system.is_empty()).then(|| system.join("\n\n")), turns)
}

fn words(message: &Message) -> String {
    let parts: Vec<String> = message.content.iter().filter_map(part).collect();
    parts.join("\n")
}

fn part(block: &Block) -> Option<String> {
    Some(match block {
        Block::Text { text } => text.clone(),
        Block::Thinking { .. } => return None,
        Block::Image { .. } => "[an image]".to_owned(),
        Block::Audio { .. } => "[a sound]".to_owned(),
        Block::Video { .. } => "[a video]".to_owned(),
        Block::ToolUse { name, input, .. } => {
            let input = serde_json::to_string(input).unwrap_or_default();
            format!("[calls the tool {name} with {input}]")
        }
        Block::ToolResult { name, output, .. } => {
            let output: Vec<String> = output.iter().filter_map(part).collect();
            format!("[the tool {name} gave back: {}]", output.join("\n"))
        }
    })
}
