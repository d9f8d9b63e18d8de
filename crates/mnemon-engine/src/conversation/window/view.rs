//! The window as a person sees it.

use mnemon_core::window::{Strategy, message_tokens};
use mnemon_core::{Ctx, Message};
use serde::Serialize;

use super::Window;
use crate::records::Error;

/// How near a message still is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SeenAs {
    /// Word for word.
    Hot,
    /// A summary stands in its place.
    Summarised,
    /// Only its beginning is there.
    Offloaded,
}

/// One message of the window.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Seen {
    #[serde(rename = "as")]
    pub as_: SeenAs,
    pub tokens: usize,
    /// How many messages it stands for.
    pub covers: u64,
    /// What `reload` is asked for, if it stands for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    pub message: Message,
}

/// The whole window.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shown {
    pub messages: Vec<Seen>,
    pub tokens: usize,
    /// From so many tokens on it is compressed.
    pub token_limit: usize,
    /// From so many messages on it is compressed.
    pub msg_threshold: usize,
    /// Whether it is due to be compressed.
    pub due: bool,
}

impl Shown {
    /// Messages, the messages they stand for, and tokens of those that are seen like this.
    #[must_use]
    pub fn part(&self, as_: SeenAs) -> (usize, u64, usize) {
        let seen = self.messages.iter().filter(|seen| seen.as_ == as_);
        seen.fold((0, 0, 0), |(count, covers, tokens), seen| {
            (count + 1, covers + seen.covers, tokens + seen.tokens)
        })
    }
}

impl Window<'_> {
    /// What is hot, summarised and offloaded, and the tokens of each.
    pub async fn show(&self, ctx: &Ctx) -> Result<Shown, Error> {
        let read = self.read(ctx).await?;
        let mut shown = Vec::with_capacity(read.entries.len());
        for (entry, message) in read.entries.iter().zip(read.messages) {
            let as_ = match (entry.replaced, entry.covers) {
                (false, _) => SeenAs::Hot,
                (true, 1) if !self.is_summary(ctx, entry).await? => SeenAs::Offloaded,
                (true, _) => SeenAs::Summarised,
            };
            shown.push(Seen {
                as_,
                tokens: message_tokens(&message, self.measure),
                covers: entry.covers,
                uuid: entry.replaced.then(|| entry.of.to_string()),
                message,
            });
        }
        let tokens = shown.iter().map(|seen| seen.tokens).sum();
        Ok(Shown {
            due: self.settings.is_triggered(shown.len(), tokens),
            messages: shown,
            tokens,
            token_limit: self.settings.token_limit(),
            msg_threshold: self.settings.msg_threshold,
        })
    }

    /// Whether a summary stands in the place of one message, and not only its beginning.
    async fn is_summary(&self, ctx: &Ctx, entry: &super::Entry) -> Result<bool, Error> {
        let found = self
            .records
            .get(ctx, std::slice::from_ref(&entry.of))
            .await?;
        let record = found.into_iter().flatten().next();
        let offload = record.as_ref().and_then(super::Offload::of);
        let strategy = offload.and_then(|o| o.event.event_type.parse::<Strategy>().ok());
        Ok(strategy.is_some_and(|strategy| !strategy.is_offload()))
    }
}
