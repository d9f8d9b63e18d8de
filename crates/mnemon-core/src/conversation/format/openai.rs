//! The `messages` of an OpenAI chat completion.

use serde_json::{Map, Value, json};

use super::{Aside, Kept, Unseen, arrived, media_from_url, media_to_url, runs, set, text_of};
use crate::error::Invalid;
use crate::model::{Block, Media, Message, Role};

/// Messages in the format, and what is needed to get the originals back.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenAi {
    /// To be sent as `messages`.
    pub messages: Vec<Value>,
    pub aside: Aside,
    /// What the model does not see.
    pub unseen: Vec<Unseen>,
}

/// Which sort of foreign message a block goes to.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Entry {
    /// One with the message's own role.
    Own,
    Assistant,
    /// One for each result.
    Tool,
}

impl OpenAi {
    /// The messages in the format.
    pub fn of(messages: &[Message]) -> Self {
        let mut all = Self {
            messages: Vec::new(),
            aside: Aside::default(),
            unseen: Vec::new(),
        };
        for (at, message) in messages.iter().enumerate() {
            let entries = all.entries(at, message);
            let read = entries.iter().flat_map(|entry| {
                // What we have just written can be read; if not, the aside holds it.
                read(entry).map(|(_, blocks)| blocks).unwrap_or_default()
            });
            let kept = Kept::of(message, &read.collect::<Vec<_>>(), 0, entries.len());
            all.aside.messages.push(kept);
            all.messages.extend(entries);
        }
        all
    }

    fn entries(&mut self, at: usize, message: &Message) -> Vec<Value> {
        let own = match message.role {
            Role::Assistant => Entry::Assistant,
            Role::User | Role::System | Role::Tool => Entry::Own,
        };
        let runs = runs(&message.content, |block| match block {
            Block::ToolUse { .. } => Entry::Assistant,
            Block::ToolResult { .. } => Entry::Tool,
            _ => own,
        });
        let mut entries = Vec::new();
        for (entry, run) in runs {
            let mut unseen = |block: usize, what: &'static str| {
                self.unseen.push(Unseen {
                    message: at,
                    block,
                    what,
                });
            };
            match entry {
                Entry::Tool => entries.extend(
                    run.iter()
                        .filter_map(|(n, block)| tool_entry(block, &mut |what| unseen(*n, what))),
                ),
                Entry::Assistant => entries.extend(assistant_entry(&run, &mut unseen)),
                Entry::Own => entries.extend(own_entry(message.role, &run, &mut unseen)),
            }
        }
        if let Some(name) = message.name.as_deref().filter(|name| fits(name)) {
            for entry in entries.iter_mut().filter(|entry| entry["role"] != "tool") {
                set(entry, "name", json!(name));
            }
        }
        entries
    }

    /// The messages as they were. Entries that were added since come last, with ids from `fresh`.
    pub fn to_messages(&self, fresh: &mut dyn FnMut() -> String) -> Result<Vec<Message>, Invalid> {
        let mut rest = self.messages.as_slice();
        let mut messages = Vec::new();
        for kept in &self.aside.messages {
            let Some((own, after)) = rest.split_at_checked(kept.entries) else {
                let what = "has fewer entries than were made; was it cut?";
                return Err(Invalid::new("messages", what));
            };
            let mut blocks = Vec::new();
            for entry in own {
                blocks.extend(read(entry)?.1);
            }
            messages.push(kept.restore(blocks));
            rest = after;
        }
        messages.extend(Self::read(rest, fresh)?);
        Ok(messages)
    }

    /// Messages that somebody else wrote, with ids from `fresh`.
    pub fn read(
        messages: &[Value],
        fresh: &mut dyn FnMut() -> String,
    ) -> Result<Vec<Message>, Invalid> {
        let read = messages.iter().map(|entry| {
            let (role, blocks) = read(entry)?;
            let mut message = arrived(fresh(), role, blocks);
            message.name = entry.get("name").and_then(Value::as_str).map(str::to_owned);
            Ok(message)
        });
        read.collect()
    }
}

/// What the service takes as a name.
fn fits(name: &str) -> bool {
    let odd = |c: char| c.is_whitespace() || c.is_control() || "<|\\/>".contains(c);
    !name.is_empty() && name.chars().count() <= 64 && !name.contains(odd)
}

fn own_entry(
    role: Role,
    run: &[(usize, &Block)],
    unseen: &mut dyn FnMut(usize, &'static str),
) -> Option<Value> {
    let is_system = role == Role::System;
    let mut parts = Vec::new();
    for (at, block) in run {
        match part(block, !is_system) {
            Ok(part) => parts.push(part),
            Err(what) => unseen(*at, what),
        }
    }
    let role = if is_system { "system" } else { "user" };
    (!parts.is_empty()).then(|| json!({"role": role, "content": content(parts)}))
}

/// One text stands by itself; anything else is a list of parts.
fn content(mut parts: Vec<Value>) -> Value {
    match parts.as_mut_slice() {
        [one] if one["type"] == "text" => one["text"].take(),
        _ => Value::Array(parts),
    }
}

/// The block as a part of a message's content, or why it cannot be one.
fn part(block: &Block, with_media: bool) -> Result<Value, &'static str> {
    match block {
        Block::Text { text } if text.is_empty() => Err("an empty text"),
        Block::Text { text } => Ok(json!({"type": "text", "text": text})),
        Block::Image { source, .. } if with_media => {
            Ok(json!({"type": "image_url", "image_url": {"url": media_to_url(source)}}))
        }
        Block::Audio {
            source: Media::Base64 { media_type, data },
            ..
        } if with_media => match media_type.strip_prefix("audio/") {
            Some(form @ ("wav" | "mp3")) => {
                Ok(json!({"type": "input_audio", "input_audio": {"data": data, "format": form}}))
            }
            _ => Err("a sound that is neither wav nor mp3"),
        },
        Block::Image { .. } => Err("an image where only text may be"),
        Block::Audio { .. } => Err("a sound that is not in the message itself"),
        Block::Video { .. } => Err("a video"),
        Block::Thinking { .. } => Err("the reasoning of the model"),
        Block::ToolUse { .. } | Block::ToolResult { .. } => Err("a tool's part out of place"),
    }
}

fn assistant_entry(
    run: &[(usize, &Block)],
    unseen: &mut dyn FnMut(usize, &'static str),
) -> Option<Value> {
    let (mut parts, mut calls) = (Vec::new(), Vec::new());
    for (at, block) in run {
        if let Block::ToolUse {
            id, name, input, ..
        } = block
        {
            let arguments = arguments(block, input);
            let function = json!({"name": name, "arguments": arguments});
            calls.push(json!({"id": id, "type": "function", "function": function}));
            continue;
        }
        match part(block, false) {
            Ok(part) => parts.push(part),
            Err(what) => unseen(*at, what),
        }
    }
    if parts.is_empty() && calls.is_empty() {
        return None;
    }
    let said = if parts.is_empty() {
        Value::Null
    } else {
        content(parts)
    };
    let mut entry = json!({"role": "assistant", "content": said});
    if !calls.is_empty() {
        set(&mut entry, "tool_calls", Value::Array(calls));
    }
    Some(entry)
}

/// The arguments as the model wrote them, if that is what was understood.
fn arguments(block: &Block, input: &Map<String, Value>) -> String {
    let plain = || Value::Object(input.clone()).to_string();
    let Block::ToolUse {
        content: Some(raw), ..
    } = block
    else {
        return plain();
    };
    let same = serde_json::from_str::<Value>(raw).is_ok_and(|read| read.as_object() == Some(input));
    if same { raw.clone() } else { plain() }
}

fn tool_entry(block: &Block, unseen: &mut dyn FnMut(&'static str)) -> Option<Value> {
    let Block::ToolResult { id, output, .. } = block else {
        return None;
    };
    let mut parts = Vec::new();
    for inner in output {
        match part(inner, false) {
            Ok(part) => parts.push(part),
            Err(what) => unseen(what),
        }
    }
    // A call must have an answer, even an empty one.
    let said = if parts.is_empty() {
        json!("")
    } else {
        content(parts)
    };
    Some(json!({"role": "tool", "tool_call_id": id, "content": said}))
}

/// Who says it, and what.
fn read(entry: &Value) -> Result<(Role, Vec<Block>), Invalid> {
    let role = match text_of(entry, "role")? {
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        other => {
            let what = format!("`{}` is not known", other.escape_debug());
            return Err(Invalid::new("role", what));
        }
    };
    let mut blocks = read_content(entry.get("content"))?;
    if role == Role::Tool {
        let result = Block::ToolResult {
            id: text_of(entry, "tool_call_id")?.to_owned(),
            name: String::new(),
            output: blocks,
            metadata: Map::new(),
        };
        return Ok((role, vec![result]));
    }
    for call in entry
        .get("tool_calls")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        blocks.push(read_call(call)?);
    }
    Ok((role, blocks))
}

fn read_content(content: Option<&Value>) -> Result<Vec<Block>, Invalid> {
    match content {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(text)) if text.is_empty() => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![Block::Text { text: text.clone() }]),
        Some(Value::Array(parts)) => parts.iter().map(read_part).collect(),
        Some(_) => Err(Invalid::new(
            "content",
            "is neither a text nor a list of parts",
        )),
    }
}

fn read_part(part: &Value) -> Result<Block, Invalid> {
    let field = |name: &str| part.get(name).unwrap_or(&Value::Null);
    match text_of(part, "type")? {
        "text" => Ok(Block::Text {
            text: text_of(part, "text")?.to_owned(),
        }),
        "refusal" => Ok(Block::Text {
            text: text_of(part, "refusal")?.to_owned(),
        }),
        "image_url" => Ok(Block::Image {
            source: media_from_url(text_of(field("image_url"), "url")?),
            extra: Map::new(),
        }),
        "input_audio" => {
            let audio = field("input_audio");
            Ok(Block::Audio {
                source: Media::Base64 {
                    media_type: format!("audio/{}", text_of(audio, "format")?),
                    data: text_of(audio, "data")?.to_owned(),
                },
                extra: Map::new(),
            })
        }
        other => {
            let what = format!("a part of type `{}` is not known", other.escape_debug());
            Err(Invalid::new("content", what))
        }
    }
}

fn read_call(call: &Value) -> Result<Block, Invalid> {
    let function = call.get("function").unwrap_or(&Value::Null);
    let raw = text_of(function, "arguments")?;
    // What is not an object is kept as the model wrote it.
    let (input, content) = match serde_json::from_str(raw) {
        Ok(Value::Object(input)) => (input, None),
        _ => (Map::new(), Some(raw.to_owned())),
    };
    Ok(Block::ToolUse {
        id: text_of(call, "id")?.to_owned(),
        name: text_of(function, "name")?.to_owned(),
        input,
        content,
        metadata: Map::new(),
    })
}
