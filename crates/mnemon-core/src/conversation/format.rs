//! Messages as the requests of chat models want them, and back.
//!
//! A foreign format has no place for some things: a message's id, a video, what a model thought.
//! They cannot travel in a field of our own, as the services refuse fields that they do not know.
//! So each conversion has three parts: the messages to be sent; an [`Aside`] with what is not in
//! them, from which the original comes back exactly; and a list of what the model does not see.

mod anthropic;
mod openai;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::Invalid;
use crate::model::{Block, Media, Message, Role};

pub use anthropic::Anthropic;
pub use openai::OpenAi;

/// What the foreign form of messages does not hold, one entry for each message.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Aside {
    messages: Vec<Kept>,
}

/// What has to be put to the foreign entries of one message to get it back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Kept {
    id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    role: Role,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    metadata: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timestamp: Option<String>,
    /// How many blocks of the separate system prompt are this message's.
    #[serde(default, skip_serializing_if = "is_zero")]
    system: usize,
    /// How many foreign messages are this message's.
    entries: usize,
    /// Blocks that read differently from the foreign form, by their place.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    blocks: BTreeMap<usize, Block>,
    /// How many blocks there are.
    count: usize,
    /// How many blocks the foreign form shows; if there are others, somebody changed it.
    shown: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// A block that the model does not see, as the format has no place for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unseen {
    /// The message, by its place.
    pub message: usize,
    /// The block within the message.
    pub block: usize,
    /// What it is and why it is not seen.
    pub what: &'static str,
}

/// Blocks of one message go to entries of different roles: runs of neighbours with one role.
fn runs<R: PartialEq + Copy>(
    blocks: &[Block],
    role: impl Fn(&Block) -> R,
) -> Vec<(R, Vec<(usize, &Block)>)> {
    let mut runs: Vec<(R, Vec<(usize, &Block)>)> = Vec::new();
    for (at, block) in blocks.iter().enumerate() {
        let own = role(block);
        match runs.last_mut() {
            Some((last, run)) if *last == own => run.push((at, block)),
            _ => runs.push((own, vec![(at, block)])),
        }
    }
    runs
}

impl Kept {
    /// What `read`, the message as the foreign form alone gives it, lacks of `message`.
    fn of(message: &Message, read: &[Block], system: usize, entries: usize) -> Self {
        let pairs = message.content.iter().enumerate();
        let other = pairs.filter(|(at, block)| read.get(*at) != Some(*block));
        Self {
            id: message.id.clone(),
            name: message.name.clone(),
            role: message.role,
            metadata: message.metadata.clone(),
            timestamp: message.timestamp.clone(),
            system,
            entries,
            blocks: other.map(|(at, block)| (at, block.clone())).collect(),
            count: message.content.len(),
            shown: read.len(),
        }
    }

    /// The message again, from what the foreign form gives.
    fn restore(&self, read: Vec<Block>) -> Message {
        let content = if read.len() == self.shown {
            let mut read: Vec<Option<Block>> = read.into_iter().map(Some).collect();
            let places = 0..self.count;
            let taken = places.filter_map(|at| match self.blocks.get(&at) {
                Some(block) => Some(block.clone()),
                None => read.get_mut(at).and_then(Option::take),
            });
            taken.collect()
        } else {
            // Somebody changed what was to be sent: then that counts.
            read
        };
        Message {
            id: self.id.clone(),
            name: self.name.clone(),
            role: self.role,
            content,
            metadata: self.metadata.clone(),
            timestamp: self.timestamp.clone(),
        }
    }
}

/// A message that came from outside: it has no id of its own yet.
fn arrived(id: String, role: Role, content: Vec<Block>) -> Message {
    Message {
        id,
        name: None,
        role,
        content,
        metadata: Map::new(),
        timestamp: None,
    }
}

/// `data:` URLs hold the bytes themselves.
fn media_to_url(media: &Media) -> String {
    match media {
        Media::Url { url } => url.clone(),
        Media::Base64 { media_type, data } => format!("data:{media_type};base64,{data}"),
    }
}

fn media_from_url(url: &str) -> Media {
    let inline = url.strip_prefix("data:");
    match inline.and_then(|rest| rest.split_once(";base64,")) {
        Some((media_type, data)) => Media::Base64 {
            media_type: media_type.to_owned(),
            data: data.to_owned(),
        },
        None => Media::Url {
            url: url.to_owned(),
        },
    }
}

/// Puts a member into an object.
fn set(object: &mut Value, name: &str, value: Value) {
    if let Some(members) = object.as_object_mut() {
        members.insert(name.to_owned(), value);
    }
}

fn text_of<'a>(part: &'a Value, field: &str) -> Result<&'a str, Invalid> {
    let text = part.get(field).and_then(Value::as_str);
    text.ok_or_else(|| Invalid::new(field, "is missing or not a text"))
}

#[cfg(test)]
mod tests;
