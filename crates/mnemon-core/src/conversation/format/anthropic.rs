//! The `system` and `messages` of an Anthropic request.

use serde_json::{Map, Value, json};

use super::{Aside, Kept, Unseen, arrived, runs, set, text_of};
use crate::error::Invalid;
use crate::model::{Block, Media, Message, Role};

/// Messages in the format, and what is needed to get the originals back.
#[derive(Debug, Clone, PartialEq)]
pub struct Anthropic {
    /// To be sent as `system`, if there is something.
    pub system: Vec<Value>,
    /// To be sent as `messages`.
    pub messages: Vec<Value>,
    pub aside: Aside,
    /// What the model does not see.
    pub unseen: Vec<Unseen>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Entry {
    System,
    User,
    Assistant,
}

/// Where the metadata of a thought keeps what proves it, and what is hidden.
const SIGNATURE: &str = "signature";
const REDACTED: &str = "redacted";
/// Where the metadata of a result says that the tool failed.
const IS_ERROR: &str = "is_error";

impl Anthropic {
    /// The messages in the format.
    pub fn of(messages: &[Message]) -> Self {
        let mut all = Self {
            system: Vec::new(),
            messages: Vec::new(),
            aside: Aside::default(),
            unseen: Vec::new(),
        };
        for (at, message) in messages.iter().enumerate() {
            let (system, entries) = all.entries(at, message);
            let shown = system.iter().map(read_block);
            let others = entries.iter().flat_map(read_entry);
            // What we have just written can be read; if not, the aside holds it.
            let read: Vec<Block> = shown.chain(others).filter_map(Result::ok).collect();
            let kept = Kept::of(message, &read, system.len(), entries.len());
            all.aside.messages.push(kept);
            all.system.extend(system);
            all.messages.extend(entries);
        }
        all
    }

    fn entries(&mut self, at: usize, message: &Message) -> (Vec<Value>, Vec<Value>) {
        let own = match message.role {
            Role::Assistant => Entry::Assistant,
            Role::System => Entry::System,
            Role::User | Role::Tool => Entry::User,
        };
        let runs = runs(&message.content, |block| match block {
            Block::ToolUse { .. } => Entry::Assistant,
            Block::ToolResult { .. } => Entry::User,
            _ => own,
        });
        let (mut system, mut entries) = (Vec::new(), Vec::new());
        for (entry, run) in runs {
            let mut parts = Vec::new();
            for (block_at, block) in run {
                let unseen = &mut self.unseen;
                let mut note = |what| {
                    unseen.push(Unseen {
                        message: at,
                        block: block_at,
                        what,
                    });
                };
                match part(block, entry, &mut note) {
                    Ok(part) => parts.push(part),
                    Err(what) => note(what),
                }
            }
            match entry {
                _ if parts.is_empty() => {}
                Entry::System => system.extend(parts),
                Entry::User => entries.push(json!({"role": "user", "content": parts})),
                Entry::Assistant => entries.push(json!({"role": "assistant", "content": parts})),
            }
        }
        (system, entries)
    }

    /// The messages as they were. Entries that were added since come last, with ids from `fresh`.
    pub fn to_messages(&self, fresh: &mut dyn FnMut() -> String) -> Result<Vec<Message>, Invalid> {
        let (mut system, mut rest) = (self.system.as_slice(), self.messages.as_slice());
        let mut messages = Vec::new();
        for kept in &self.aside.messages {
            let parts = (
                system.split_at_checked(kept.system),
                rest.split_at_checked(kept.entries),
            );
            let (Some((prompt, more_system)), Some((own, after))) = parts else {
                let what = "has fewer entries than were made; was it cut?";
                return Err(Invalid::new("messages", what));
            };
            let blocks = prompt.iter().map(read_block);
            let blocks = blocks.chain(own.iter().flat_map(read_entry));
            messages.push(kept.restore(blocks.collect::<Result<_, _>>()?));
            (system, rest) = (more_system, after);
        }
        messages.extend(Self::read(Some(&json!(system)), rest, fresh)?);
        Ok(messages)
    }

    /// A request that somebody else wrote, with ids from `fresh`: the system prompt comes first.
    pub fn read(
        system: Option<&Value>,
        messages: &[Value],
        fresh: &mut dyn FnMut() -> String,
    ) -> Result<Vec<Message>, Invalid> {
        let mut read = Vec::new();
        let prompt = read_content(system.unwrap_or(&Value::Null));
        let prompt = prompt.into_iter().collect::<Result<Vec<_>, _>>()?;
        if !prompt.is_empty() {
            read.push(arrived(fresh(), Role::System, prompt));
        }
        for entry in messages {
            let blocks = read_entry(entry)
                .into_iter()
                .collect::<Result<Vec<_>, _>>()?;
            let is_result = |block: &Block| matches!(block, Block::ToolResult { .. });
            let role = match text_of(entry, "role")? {
                "assistant" => Role::Assistant,
                "user" if !blocks.is_empty() && blocks.iter().all(is_result) => Role::Tool,
                "user" => Role::User,
                "system" => Role::System,
                other => {
                    let what = format!("`{}` is not known", other.escape_debug());
                    return Err(Invalid::new("role", what));
                }
            };
            read.push(arrived(fresh(), role, blocks));
        }
        Ok(read)
    }
}

/// The block as a part of a message's content, or why it cannot be one.
fn part(
    block: &Block,
    entry: Entry,
    unseen: &mut dyn FnMut(&'static str),
) -> Result<Value, &'static str> {
    match block {
        // The service refuses texts without a word.
        Block::Text { text } if text.trim().is_empty() => Err("an empty text"),
        Block::Text { text } => Ok(json!({"type": "text", "text": text})),
        Block::Thinking { thinking, metadata } if entry == Entry::Assistant => {
            match (metadata.get(SIGNATURE), metadata.get(REDACTED)) {
                (Some(Value::String(proof)), _) => {
                    Ok(json!({"type": "thinking", "thinking": thinking, "signature": proof}))
                }
                (_, Some(Value::String(data))) => {
                    Ok(json!({"type": "redacted_thinking", "data": data}))
                }
                _ => Err("a thought without a signature"),
            }
        }
        Block::Thinking { .. } => Err("a thought that is not the assistant's"),
        Block::Image { source, .. } if entry == Entry::User => Ok(image(source)),
        Block::Image { .. } => Err("an image where only text may be"),
        Block::Audio { .. } => Err("a sound"),
        Block::Video { .. } => Err("a video"),
        Block::ToolUse {
            id, name, input, ..
        } => Ok(json!({"type": "tool_use", "id": id, "name": name, "input": input})),
        Block::ToolResult {
            id,
            output,
            metadata,
            ..
        } => Ok(tool_result(id, output, metadata, unseen)),
    }
}

fn image(source: &Media) -> Value {
    json!({"type": "image", "source": source})
}

fn tool_result(
    id: &str,
    output: &[Block],
    metadata: &Map<String, Value>,
    unseen: &mut dyn FnMut(&'static str),
) -> Value {
    let mut parts = Vec::new();
    for inner in output {
        match inner {
            Block::Text { .. } | Block::Image { .. } => match part(inner, Entry::User, unseen) {
                Ok(part) => parts.push(part),
                Err(what) => unseen(what),
            },
            _ => unseen("a part of a tool's result that is neither text nor image"),
        }
    }
    let mut result = json!({"type": "tool_result", "tool_use_id": id, "content": parts});
    if let Some(Value::Bool(is_error)) = metadata.get(IS_ERROR) {
        set(&mut result, IS_ERROR, json!(is_error));
    }
    result
}

fn read_entry(entry: &Value) -> Vec<Result<Block, Invalid>> {
    read_content(entry.get("content").unwrap_or(&Value::Null))
}

fn read_content(content: &Value) -> Vec<Result<Block, Invalid>> {
    match content {
        Value::Null => Vec::new(),
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::String(text) => vec![Ok(Block::Text { text: text.clone() })],
        Value::Array(parts) => parts.iter().map(read_block).collect(),
        _ => vec![Err(Invalid::new(
            "content",
            "is neither a text nor a list of blocks",
        ))],
    }
}

fn read_block(part: &Value) -> Result<Block, Invalid> {
    let text = |field: &str| text_of(part, field).map(str::to_owned);
    let noted = |name: &str, value: Value| Map::from_iter([(name.to_owned(), value)]);
    match text_of(part, "type")? {
        "text" => Ok(Block::Text {
            text: text("text")?,
        }),
        "thinking" => Ok(Block::Thinking {
            thinking: text("thinking")?,
            metadata: match part.get(SIGNATURE) {
                Some(proof) => noted(SIGNATURE, proof.clone()),
                None => Map::new(),
            },
        }),
        "redacted_thinking" => Ok(Block::Thinking {
            thinking: String::new(),
            metadata: noted(REDACTED, json!(text("data")?)),
        }),
        "image" => Ok(Block::Image {
            source: read_source(part)?,
            extra: Map::new(),
        }),
        "tool_use" => Ok(Block::ToolUse {
            id: text("id")?,
            name: text("name")?,
            input: match part.get("input") {
                Some(Value::Object(input)) => input.clone(),
                _ => Map::new(),
            },
            content: None,
            metadata: Map::new(),
        }),
        "tool_result" => {
            let output = read_content(part.get("content").unwrap_or(&Value::Null));
            Ok(Block::ToolResult {
                id: text("tool_use_id")?,
                name: String::new(),
                output: output.into_iter().collect::<Result<_, _>>()?,
                metadata: match part.get(IS_ERROR) {
                    Some(is_error) => noted(IS_ERROR, is_error.clone()),
                    None => Map::new(),
                },
            })
        }
        other => {
            let what = format!("a block of type `{}` is not known", other.escape_debug());
            Err(Invalid::new("content", what))
        }
    }
}

fn read_source(part: &Value) -> Result<Media, Invalid> {
    let source = part.get("source").cloned().unwrap_or_default();
    serde_json::from_value(source).map_err(|error| Invalid::new("source", error.to_string()))
}
