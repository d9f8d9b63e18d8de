//! A message of a conversation, with everything a model may put into one.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::Invalid;
use crate::model::Record;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Role {
    #[default]
    #[serde(alias = "user")]
    User,
    #[serde(alias = "assistant")]
    Assistant,
    #[serde(alias = "system")]
    System,
    #[serde(alias = "tool")]
    Tool,
}

impl Role {
    /// In small letters.
    pub fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::System => "system",
            Self::Tool => "tool",
        }
    }
}

/// Where an image, a sound or a video is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Media {
    Url { url: String },
    Base64 { media_type: String, data: String },
}

/// A part of a message. Fields that we do not know travel along in `extra`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    Text {
        #[serde(default, deserialize_with = "null_is_default")]
        text: String,
    },
    Thinking {
        #[serde(default, deserialize_with = "null_is_default")]
        thinking: String,
        #[serde(
            default,
            deserialize_with = "without_nulls",
            skip_serializing_if = "Map::is_empty"
        )]
        metadata: Map<String, Value>,
    },
    Image {
        source: Media,
        #[serde(flatten)]
        extra: Map<String, Value>,
    },
    Audio {
        source: Media,
        #[serde(flatten)]
        extra: Map<String, Value>,
    },
    Video {
        source: Media,
        #[serde(flatten)]
        extra: Map<String, Value>,
    },
    ToolUse {
        id: String,
        name: String,
        #[serde(default, deserialize_with = "null_is_default")]
        input: Map<String, Value>,
        /// The raw text of the input, when the model streamed it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<String>,
        #[serde(
            default,
            deserialize_with = "without_nulls",
            skip_serializing_if = "Map::is_empty"
        )]
        metadata: Map<String, Value>,
    },
    ToolResult {
        /// The id of the tool use that it answers.
        #[serde(alias = "toolUseId", alias = "tool_use_id")]
        id: String,
        #[serde(default, deserialize_with = "null_is_default")]
        name: String,
        #[serde(default, deserialize_with = "null_is_default")]
        output: Vec<Block>,
        #[serde(
            default,
            deserialize_with = "without_nulls",
            skip_serializing_if = "Map::is_empty"
        )]
        metadata: Map<String, Value>,
    },
}

/// One message. Unknown fields are ignored when it is read, as the format it follows does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    pub id: String,
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub role: Role,
    #[serde(default, deserialize_with = "without_null_blocks")]
    pub content: Vec<Block>,
    #[serde(default, deserialize_with = "without_nulls")]
    pub metadata: Map<String, Value>,
    /// As it was written; the form differs between the systems that write it.
    #[serde(default)]
    pub timestamp: Option<String>,
}

impl Message {
    /// A message of one text block.
    pub fn text(id: impl Into<String>, role: Role, text: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            name: None,
            role,
            content: vec![Block::Text { text: text.into() }],
            metadata: Map::new(),
            timestamp: None,
        }
    }

    /// The top-level text blocks, a line break between them; empty when there are none.
    pub fn text_content(&self) -> String {
        let texts: Vec<&str> = self
            .content
            .iter()
            .filter_map(|block| match block {
                Block::Text { text } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        texts.join("\n")
    }

    /// What a search finds it by: its texts, and what it thought, called and was given back.
    pub fn searchable_text(&self) -> String {
        let texts: Vec<String> = self.content.iter().filter_map(block_text).collect();
        texts.join("\n")
    }

    /// The message that a record keeps.
    pub fn from_record(record: &Record) -> Result<Self, Invalid> {
        let body = record.body.as_ref().ok_or_else(|| {
            Invalid::new("body", format!("record {} is not a message", record.id))
        })?;
        Self::deserialize(body).map_err(|error| Invalid::new("body", error.to_string()))
    }
}

fn block_text(block: &Block) -> Option<String> {
    match block {
        Block::Text { text } => Some(text.clone()),
        Block::Thinking { thinking, .. } => Some(thinking.clone()),
        Block::ToolUse { name, input, .. } => {
            let input = Value::Object(input.clone());
            Some(format!("{name} {input}"))
        }
        Block::ToolResult { name, output, .. } => {
            let output: Vec<String> = output.iter().filter_map(block_text).collect();
            Some(format!("{name}: {}", output.join("\n")))
        }
        Block::Image { .. } | Block::Audio { .. } | Block::Video { .. } => None,
    }
}

fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

fn without_nulls<'de, D>(deserializer: D) -> Result<Map<String, Value>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    let mut map: Map<String, Value> = null_is_default(deserializer)?;
    map.retain(|_, value| !value.is_null());
    Ok(map)
}

fn without_null_blocks<'de, D>(deserializer: D) -> Result<Vec<Block>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    let blocks: Vec<Option<Block>> = null_is_default(deserializer)?;
    Ok(blocks.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn every_block() -> Value {
        json!({
            "id": "m1", "name": "planner", "role": "ASSISTANT",
            "content": [
                {"type": "text", "text": "one"},
                {"type": "thinking", "thinking": "hm", "metadata": {"signature": "s"}},
                {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}, "max_pixels": 9},
                {"type": "audio", "source": {"type": "base64", "media_type": "audio/wav", "data": "AA=="}},
                {"type": "video", "source": {"type": "url", "url": "https://x/y.mp4"}, "fps": 2.0},
                {"type": "tool_use", "id": "t1", "name": "grep", "input": {"q": "x"}, "content": "{\"q\":\"x\"}"},
                {"type": "tool_result", "id": "t1", "name": "grep",
                 "output": [{"type": "text", "text": "found"}], "metadata": {"ok": true}},
                {"type": "text", "text": "two"},
            ],
            "metadata": {"_compress_meta": {"offloaduuid": "u"}},
            "timestamp": "2026-01-31T12:00:00.000Z",
        })
    }

    #[test]
    fn every_block_survives_a_round_trip() {
        let message: Message = serde_json::from_value(every_block()).unwrap();
        assert_eq!(serde_json::to_value(&message).unwrap(), every_block());
        assert_eq!(message.text_content(), "one\ntwo");
    }

    #[test]
    fn reading_is_lenient_where_the_format_is() {
        let message: Message = serde_json::from_value(json!({
            "id": "m", "role": "user", "unknown": 1, "metadata": {"a": null, "b": 1},
            "content": [null, {"type": "text", "text": null},
                {"type": "tool_result", "toolUseId": "t", "output": null}],
        }))
        .unwrap();
        assert_eq!(message.content.len(), 2);
        assert_eq!(message.metadata.len(), 1);
        assert!(matches!(&message.content[1], Block::ToolResult { id, .. } if id == "t"));
        let empty: Message = serde_json::from_value(json!({"id": "m"})).unwrap();
        assert_eq!(empty.role, Role::User);
        assert_eq!(empty.text_content(), "");
    }
}
