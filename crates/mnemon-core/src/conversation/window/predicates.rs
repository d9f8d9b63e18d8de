//! What sort of message it is.

use serde_json::Value;

use crate::model::{Block, Message, Role};

/// The key of the metadata that a replacement carries.
pub const COMPRESS_META: &str = "_compress_meta";
/// Set in it when a whole current round was replaced.
pub(super) const CURRENT_ROUND: &str = "compressed_current_round";

/// Whether it has to do with tools: its role is the tool's, or it holds a call or a result.
pub fn is_tool(message: &Message) -> bool {
    message.role == Role::Tool || has_use(message) || has_result(message)
}

/// Whether the model calls a tool in it.
pub fn is_tool_use(message: &Message) -> bool {
    message.role == Role::Assistant && has_use(message)
}

/// Whether a tool answers in it.
pub fn is_tool_result(message: &Message) -> bool {
    message.role == Role::Tool || has_result(message)
}

/// Whether the user speaks in it. Some formats hand tool results over in the user's name: those
/// are not meant.
pub fn is_user(message: &Message) -> bool {
    message.role == Role::User && !has_result(message)
}

/// Whether it ends a round: the model speaks to the user, calls nothing, and it is no replacement
/// of a round that still runs.
pub fn is_final_assistant(message: &Message) -> bool {
    message.role == Role::Assistant
        && !has_use(message)
        && !has_result(message)
        && !is_compressed_round(message)
}

/// Whether it stands for messages that were replaced.
pub fn is_compressed(message: &Message) -> bool {
    matches!(message.metadata.get(COMPRESS_META), Some(Value::Object(_)))
}

pub(super) fn is_compressed_round(message: &Message) -> bool {
    let meta = message.metadata.get(COMPRESS_META);
    let flag = meta.and_then(|meta| meta.get(CURRENT_ROUND));
    flag.and_then(Value::as_bool) == Some(true)
}

fn has_use(message: &Message) -> bool {
    let mut blocks = message.content.iter();
    blocks.any(|block| matches!(block, Block::ToolUse { .. }))
}

pub(super) fn has_result(message: &Message) -> bool {
    let mut blocks = message.content.iter();
    blocks.any(|block| matches!(block, Block::ToolResult { .. }))
}

/// The text of a tool's output.
pub(super) fn output_text(output: &[Block]) -> String {
    let texts = output.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// All that can be read in it: its texts, what it thought, calls and outputs.
pub fn chars(message: &Message) -> usize {
    message.content.iter().map(block_chars).sum()
}

fn block_chars(block: &Block) -> usize {
    match block {
        Block::Text { text } => text.chars().count(),
        Block::Thinking { thinking, .. } => thinking.chars().count(),
        Block::ToolUse { name, input, .. } => {
            name.chars().count() + super::tokens::flat_json(input).chars().count()
        }
        Block::ToolResult { output, .. } => output.iter().map(block_chars).sum(),
        Block::Image { .. } | Block::Audio { .. } | Block::Video { .. } => 0,
    }
}
