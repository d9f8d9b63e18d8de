//! One replacement: which messages go, and which message takes their place.

use std::ops::Range;

use serde_json::{Map, Value, json};

use super::predicates::{COMPRESS_META, CURRENT_ROUND, has_result, is_tool_result, output_text};
use super::{Settings, Strategy};
use crate::model::{Block, Id, Message, Role};

/// Messages that one message takes the place of.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub strategy: Strategy,
    /// What the new message replaces.
    pub replaced: Range<usize>,
    /// What is kept under the uuid: the replaced messages, and the question they answer.
    pub offloaded: Range<usize>,
    /// Characters of what is offloaded.
    pub original_chars: usize,
    /// Characters that a summary of it should have.
    pub summary_chars: usize,
    /// Characters that the window has room for.
    pub room_chars: usize,
    /// The part of the original characters that a summary may have.
    pub part: f64,
}

/// What tells the model where the rest is.
pub fn tag(uuid: &Id) -> String {
    format!("<!-- CONTEXT_OFFLOAD: uuid={uuid} -->")
}

impl Change {
    /// Sets the size of the summary for what it is really made from: where earlier summaries are
    /// folded again, that are the messages they stand for.
    pub fn size_for(&mut self, original_chars: usize) {
        self.original_chars = original_chars;
        let part = (original_chars as f64 * self.part).round() as usize;
        self.summary_chars = part.min(self.room_chars);
    }

    /// What goes.
    pub fn replaced<'a>(&self, messages: &'a [Message]) -> &'a [Message] {
        messages.get(self.replaced.clone()).unwrap_or_default()
    }

    /// The message that takes the place of the replaced ones. A strategy that only offloads needs
    /// no summary.
    pub fn replacement(
        &self,
        messages: &[Message],
        summary: &str,
        uuid: &Id,
        settings: &Settings,
    ) -> Message {
        let one = messages.get(self.replaced.start);
        match (self.strategy, one) {
            (Strategy::LargeProtected | Strategy::Large, Some(one)) => {
                shortened(one, uuid, settings)
            }
            (Strategy::CurrentLarge, Some(one)) => summarised(one, summary, uuid),
            (Strategy::HistoryPage, _) => whole(summary, uuid, false),
            (Strategy::CurrentRound, _) => whole(&format!("{summary}{}", tag(uuid)), uuid, true),
            _ => whole(&format!("{summary}\n{}", tag(uuid)), uuid, false),
        }
    }
}

fn compress_meta(uuid: &Id, current_round: bool) -> Value {
    let mut meta = Map::new();
    meta.insert("offloaduuid".to_owned(), json!(uuid));
    if current_round {
        meta.insert(CURRENT_ROUND.to_owned(), json!(true));
    }
    Value::Object(meta)
}

fn whole(text: &str, uuid: &Id, current_round: bool) -> Message {
    let mut message = Message::text(uuid.as_str(), Role::Assistant, text);
    message.name = Some("assistant".to_owned());
    let meta = compress_meta(uuid, current_round);
    message.metadata.insert(COMPRESS_META.to_owned(), meta);
    message
}

/// The beginning of a large message.
fn shortened(message: &Message, uuid: &Id, settings: &Settings) -> Message {
    let preview = |text: &str| {
        let head: String = text.chars().take(settings.offload_single_preview).collect();
        format!("{head}...\n{}", tag(uuid))
    };
    let content = match is_tool_result(message) && has_result(message) {
        false => vec![text(preview(&message.text_content()))],
        true => map_results(message, |output| {
            let said = output_text(output);
            match said.chars().count() > settings.large_payload_threshold {
                true => vec![text(preview(&said))],
                false => output.to_vec(),
            }
        }),
    };
    let mut metadata = Map::new();
    metadata.insert(COMPRESS_META.to_owned(), compress_meta(uuid, false));
    Message {
        content,
        metadata,
        ..message.clone()
    }
}

/// A large message with a summary in place of what it says. Calls and the ids of results stay.
fn summarised(message: &Message, summary: &str, uuid: &Id) -> Message {
    let mut said = Some(text(format!("{summary}{}", tag(uuid))));
    let mut content = Vec::new();
    if has_result(message) {
        content = map_results(message, |_| said.take().into_iter().collect());
        content.retain(|block| matches!(block, Block::ToolUse { .. } | Block::ToolResult { .. }));
    } else {
        let calls = message.content.iter();
        let calls = calls.filter(|block| matches!(block, Block::ToolUse { .. }));
        content.extend(said);
        content.extend(calls.cloned());
    }
    let mut metadata = message.metadata.clone();
    metadata.insert(COMPRESS_META.to_owned(), compress_meta(uuid, false));
    Message {
        content,
        metadata,
        ..message.clone()
    }
}

/// The blocks, with what the tools gave back replaced.
fn map_results(message: &Message, mut replace: impl FnMut(&[Block]) -> Vec<Block>) -> Vec<Block> {
    let blocks = message.content.iter().map(|block| match block {
        Block::ToolResult {
            id,
            name,
            output,
            metadata,
        } => Block::ToolResult {
            id: id.clone(),
            name: name.clone(),
            output: replace(output),
            metadata: metadata.clone(),
        },
        other => other.clone(),
    });
    blocks.collect()
}

fn text(text: String) -> Block {
    Block::Text { text }
}
