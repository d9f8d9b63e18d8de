//! The window as a person sees it.

use mnemon_core::window::{CompressionEvent, Strategy, message_tokens};
use mnemon_core::{Ctx, Invalid, Message, Time};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::stored::{Entry, Offload};
use super::{Window, told_as_text};
use crate::records::Error;

/// How near a message still is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeenAs {
    /// Word for word.
    Hot,
    /// A summary stands in its place.
    Summarised,
    /// Only its beginning is there.
    Offloaded,
}

/// What a message of the window stands for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Folded {
    /// When the first and the last of the messages were said.
    pub from: Time,
    pub to: Time,
    /// A few words for what they are about.
    pub topics: Vec<String>,
    /// Who wrote the summary: `extractive`, `extractive, model pending`, or the model's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summariser: Option<String>,
}

/// One message of the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    #[serde(rename = "as")]
    pub as_: SeenAs,
    pub tokens: usize,
    /// How many messages it stands for.
    pub covers: u64,
    /// What `reload` is asked for, if it stands for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// What it stands for, if it stands for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folded: Option<Folded>,
    pub message: Message,
}

/// The messages of one form in a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tier {
    pub messages: usize,
    /// How many messages they stand for.
    pub covers: u64,
    pub tokens: usize,
}

/// The numbers of the whole window, by the form of its messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tiers {
    pub hot: Tier,
    pub summarised: Tier,
    pub offloaded: Tier,
}

impl Tiers {
    fn of(messages: &[Seen]) -> Self {
        let mut tiers = Self::default();
        for seen in messages {
            let tier = match seen.as_ {
                SeenAs::Hot => &mut tiers.hot,
                SeenAs::Summarised => &mut tiers.summarised,
                SeenAs::Offloaded => &mut tiers.offloaded,
            };
            tier.messages += 1;
            tier.covers += seen.covers;
            tier.tokens += seen.tokens;
        }
        tiers
    }
}

/// The whole window, or a part of its messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shown {
    pub messages: Vec<Seen>,
    /// Messages of the window before these, if only a part was asked for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub earlier: usize,
    /// Messages of the window after these.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub later: usize,
    #[serde(default)]
    pub tiers: Tiers,
    pub tokens: usize,
    /// From so many tokens on it is compressed.
    pub token_limit: usize,
    /// What the model can read.
    pub max_token: usize,
    /// From so many messages on it is compressed, if a number was set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub msg_threshold: Option<usize>,
    /// Whether it is due to be compressed.
    pub due: bool,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Shown {
    /// The numbers of the messages that are seen like this.
    pub fn tier(&self, as_: SeenAs) -> Tier {
        match as_ {
            SeenAs::Hot => self.tiers.hot,
            SeenAs::Summarised => self.tiers.summarised,
            SeenAs::Offloaded => self.tiers.offloaded,
        }
    }

    /// Keeps at most `count` messages, the newest after `skip` of them; numbers stay those of the
    /// whole window.
    #[must_use]
    pub fn part(mut self, count: usize, skip: usize) -> Self {
        let end = self.messages.len().saturating_sub(skip);
        let start = end.saturating_sub(count);
        self.later += self.messages.len() - end;
        self.earlier += start;
        self.messages.truncate(end);
        self.messages.drain(..start);
        self
    }
}

impl Window<'_> {
    /// What is hot, summarised and offloaded, and the tokens of each.
    pub async fn show(&self, ctx: &Ctx) -> Result<Shown, Error> {
        let read = self.read(ctx).await?;
        let mut shown = Vec::with_capacity(read.entries.len());
        let messages = told_as_text(ctx, read.messages);
        for (entry, message) in read.entries.iter().zip(messages) {
            let event = match entry.replaced {
                true => self.offload_of(ctx, entry).await?.map(|o| o.event),
                false => None,
            };
            let strategy = event.as_ref().and_then(|e| e.event_type.parse().ok());
            let as_ = match (entry.replaced, entry.covers) {
                (false, _) => SeenAs::Hot,
                (true, 1) if strategy.is_none_or(Strategy::is_offload) => SeenAs::Offloaded,
                (true, _) => SeenAs::Summarised,
            };
            shown.push(Seen {
                as_,
                tokens: message_tokens(&message, self.measure),
                covers: entry.covers,
                uuid: entry.replaced.then(|| entry.of.to_string()),
                folded: event.map(|event| folded(entry, &event)).transpose()?,
                message,
            });
        }
        let tokens = shown.iter().map(|seen| seen.tokens).sum();
        Ok(Shown {
            due: self.settings.is_triggered(shown.len(), tokens),
            tiers: Tiers::of(&shown),
            messages: shown,
            earlier: 0,
            later: 0,
            tokens,
            token_limit: self.settings.token_limit(),
            max_token: self.settings.max_token,
            msg_threshold: self.settings.msg_threshold,
        })
    }

    /// What stands behind a replacement.
    pub(super) async fn offload_of(
        &self,
        ctx: &Ctx,
        entry: &Entry,
    ) -> Result<Option<Offload>, Error> {
        let found = self.records.find(ctx, &entry.of).await?;
        Ok(found.and_then(|record| Offload::of(&record)))
    }
}

fn folded(entry: &Entry, event: &CompressionEvent) -> Result<Folded, Invalid> {
    let topics = event.metadata.get("topics").and_then(Value::as_array);
    let topics = topics.into_iter().flatten().filter_map(Value::as_str);
    Ok(Folded {
        from: Time::from_millis(entry.first.created)?,
        to: Time::from_millis(entry.last.created)?,
        topics: topics.map(str::to_owned).collect(),
        summariser: event.summariser().map(str::to_owned),
    })
}
