//! How many tokens a message is, by estimate or by count.

use serde_json::{Map, Value};

use crate::model::{Block, Message, Role};

/// Says how many tokens a text is: [`estimate`], or the counter of a family of models.
pub type Measure = dyn Fn(&str) -> usize + Send + Sync;

/// The estimate that needs no vocabulary: two tokens for five UTF-16 units, rounded up.
pub fn estimate(text: &str) -> usize {
    (utf16(text) * 2).div_ceil(5)
}

/// The tokens of these messages together.
pub fn tokens(messages: &[Message], measure: &Measure) -> usize {
    messages.iter().map(|m| message_tokens(m, measure)).sum()
}

/// The tokens of a message: what it says, who says it, and what the format around it takes.
pub fn message_tokens(message: &Message, measure: &Measure) -> usize {
    let name = message.name.as_deref().map_or(0, measure);
    let role = measure(role_name(message.role));
    5 + role + name + blocks(&message.content, measure)
}

fn blocks(content: &[Block], measure: &Measure) -> usize {
    content.iter().map(|part| block(part, measure)).sum()
}

fn block(block: &Block, measure: &Measure) -> usize {
    match block {
        Block::Text { text } => measure(text),
        Block::ToolUse {
            id,
            name,
            input,
            content,
            ..
        } => {
            let input = match input.is_empty() {
                true => 0,
                false => measure(&flat_json(input)),
            };
            let raw = content.as_deref().map_or(0, measure);
            10 + measure(name) + measure(id) + input + raw
        }
        Block::ToolResult {
            id, name, output, ..
        } => 8 + measure(name) + measure(id) + blocks(output, measure),
        Block::Thinking { .. }
        | Block::Image { .. }
        | Block::Audio { .. }
        | Block::Video { .. } => 5,
    }
}

pub(super) fn role_name(role: Role) -> &'static str {
    match role {
        Role::User => "USER",
        Role::Assistant => "ASSISTANT",
        Role::System => "SYSTEM",
        Role::Tool => "TOOL",
    }
}

pub(super) fn utf16(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// The input as the estimate sees it: JSON without escapes, and what is nested in a plain form.
pub(super) fn flat_json(input: &Map<String, Value>) -> String {
    let fields: Vec<String> = input
        .iter()
        .map(|(name, value)| match value {
            Value::String(text) => format!("\"{name}\":\"{text}\""),
            other => format!("\"{name}\":{}", plain(other)),
        })
        .collect();
    format!("{{{}}}", fields.join(","))
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(map) => {
            let fields = map.iter().map(|(name, v)| format!("{name}={}", plain(v)));
            let fields: Vec<String> = fields.collect();
            format!("{{{}}}", fields.join(", "))
        }
        other => other.to_string(),
    }
}
