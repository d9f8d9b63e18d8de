//! What a compression did.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// What became of some messages. An older form, with the tokens at the top, is read as well.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", from = "Written")]
pub struct CompressionEvent {
    pub event_type: String,
    /// Milliseconds since 1970.
    pub timestamp: i64,
    pub compressed_message_count: usize,
    /// The message right before the replaced ones.
    pub previous_message_id: Option<String>,
    /// The message right after them.
    pub next_message_id: Option<String>,
    /// The message that took their place; none when a large one was only shortened.
    pub compressed_message_id: Option<String>,
    /// Tokens before and after, what a model used, and who wrote the summary.
    pub metadata: Map<String, Value>,
}

impl CompressionEvent {
    /// Who wrote the summary: `extractive`, `extractive, model pending`, or the model's name.
    pub fn summariser(&self) -> Option<&str> {
        self.metadata.get("summariser").and_then(Value::as_str)
    }

    /// The page of a project's library that stands for the messages, if there is one.
    pub fn page(&self) -> Option<&str> {
        self.metadata.get("page").and_then(Value::as_str)
    }

    /// A number out of the metadata.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.metadata.get(name).and_then(Value::as_u64)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    event_type: String,
    #[serde(default)]
    timestamp: i64,
    #[serde(default)]
    compressed_message_count: usize,
    #[serde(default)]
    previous_message_id: Option<String>,
    #[serde(default)]
    next_message_id: Option<String>,
    #[serde(default)]
    compressed_message_id: Option<String>,
    #[serde(default)]
    metadata: Option<Map<String, Value>>,
    #[serde(default)]
    token_before: Option<u64>,
    #[serde(default)]
    token_after: Option<u64>,
}

impl From<Written> for CompressionEvent {
    fn from(written: Written) -> Self {
        let mut metadata = written.metadata.unwrap_or_default();
        let old = [
            ("tokenBefore", written.token_before),
            ("tokenAfter", written.token_after),
        ];
        for (name, value) in old {
            if let Some(value) = value {
                metadata.entry(name).or_insert(json!(value));
            }
        }
        Self {
            event_type: written.event_type,
            timestamp: written.timestamp,
            compressed_message_count: written.compressed_message_count,
            previous_message_id: written.previous_message_id,
            next_message_id: written.next_message_id,
            compressed_message_id: written.compressed_message_id,
            metadata,
        }
    }
}
