//! Making a window smaller: plan, summarise, replace, all in one batch.

use mnemon_core::window::{Change, CompressionEvent, Strategy, message_tokens, plan, tokens};
use mnemon_core::{Ctx, Expect, Id, Invalid, Kind, Message, Origin, Scope, StoreError, limits};
use serde_json::{Map, json};

use super::stored::{Entry, Offload, TAG};
use super::summarise::{Summary, extracted};
use super::{Read, Window};
use crate::conversation::pages::Page;
use crate::records::{Draft, Error};

/// A change that makes the window smaller, ready to be written.
pub(super) struct Made {
    pub(super) change: Change,
    pub(super) uuid: Id,
    pub(super) message: Message,
    pub(super) event: CompressionEvent,
    /// The page to be written, if the message is a link to one.
    pub(super) page: Option<Page>,
}

impl Window<'_> {
    /// Compresses the window if it is due: by the first strategy that makes it smaller, and by
    /// further ones while it has more than the model can read. Whether anything changed.
    pub async fn compress_if_needed(&self, ctx: &Ctx) -> Result<bool, Error> {
        Ok(!self.compress_due(ctx).await?.is_empty())
    }

    async fn compress_due(&self, ctx: &Ctx) -> Result<Vec<CompressionEvent>, Error> {
        let mut events = Vec::new();
        let mut silent = None;
        for _ in 0..limits::WINDOW_ROUNDS {
            let read = self.read(ctx).await?;
            let tokens = tokens(&read.messages, self.measure);
            let due = match events.is_empty() || self.project.is_some() {
                true => self.settings.is_triggered(read.messages.len(), tokens),
                false => tokens >= self.settings.max_token || read.more,
            };
            let done = match due {
                true => self.step(ctx, read, &mut silent).await?,
                false => Vec::new(),
            };
            if done.is_empty() {
                break;
            }
            events.extend(done);
        }
        Ok(events)
    }

    /// Compresses the window, due or not, by the first strategy that makes it smaller. What it
    /// did; nothing if there is nothing to be gained. In a project pages are written until the
    /// window is within its limit.
    pub async fn compress(&self, ctx: &Ctx) -> Result<Vec<CompressionEvent>, Error> {
        if self.project.is_some() {
            return self.compress_due(ctx).await;
        }
        let read = self.read(ctx).await?;
        self.step(ctx, read, &mut None).await
    }

    /// `silent` says why the model is not asked (any more).
    async fn step(
        &self,
        ctx: &Ctx,
        mut read: Read,
        silent: &mut Option<String>,
    ) -> Result<Vec<CompressionEvent>, Error> {
        for _ in 0..limits::CHANGE_TRIES {
            let made = self.smaller(ctx, &read.messages, silent).await;
            if made.is_empty() {
                return Ok(Vec::new());
            }
            match self.carry_out(ctx, &mut read, made).await {
                Err(Error::Store(StoreError::Conflict { .. })) => read = self.read(ctx).await?,
                done => return done,
            }
        }
        Err(self.contended())
    }

    /// What the first strategy would do that makes the window smaller.
    async fn smaller(
        &self,
        ctx: &Ctx,
        messages: &[Message],
        silent: &mut Option<String>,
    ) -> Vec<Made> {
        let usable = |strategy: &&Strategy| **strategy != Strategy::HistoryPage;
        let pages = self.project.iter().map(|_| &Strategy::HistoryPage);
        for strategy in pages.chain(Strategy::ALL.iter().filter(usable)) {
            let mut made = Vec::new();
            for change in plan(*strategy, messages, &self.settings, self.measure) {
                made.extend(self.make(ctx, change, messages, silent).await);
            }
            if !made.is_empty() {
                return made;
            }
        }
        Vec::new()
    }

    /// The change with its new message, unless that would not be smaller than what it replaces.
    async fn make(
        &self,
        ctx: &Ctx,
        change: Change,
        messages: &[Message],
        silent: &mut Option<String>,
    ) -> Option<Made> {
        if change.strategy == Strategy::HistoryPage {
            return self.make_page(ctx, change, messages, silent).await;
        }
        let before = tokens(change.replaced(messages), self.measure);
        let uuid = self.records.ids.next(ctx.now);
        let build = |text: &str| {
            let message = change.replacement(messages, text, &uuid, &self.settings);
            let after = message_tokens(&message, self.measure);
            (after < before).then_some((message, after))
        };
        if change.strategy.is_offload() {
            let (message, after) = build("")?;
            let event = self.event(ctx, &change, messages, &message, (before, after), None);
            return Some(Made {
                change,
                uuid,
                message,
                event,
                page: None,
            });
        }
        let mut refused = None;
        let mut found = None;
        match self.by_model(ctx, &change, messages, silent).await {
            Some(Ok(summary)) => match build(&summary.text) {
                Some(built) => found = Some((summary, built)),
                None => refused = Some("the summary was not smaller".to_owned()),
            },
            Some(Err(why)) => refused = Some(why),
            None => {}
        }
        let (summary, (message, after)) = match found {
            Some(found) => found,
            None => {
                if let Some(why) = &refused {
                    extracted(&ctx.notices, why);
                }
                let summary = self.by_extract(&change, messages, refused);
                let built = build(&summary.text)?;
                (summary, built)
            }
        };
        let sizes = (before, after);
        let event = self.event(ctx, &change, messages, &message, sizes, Some(&summary));
        Some(Made {
            change,
            uuid,
            message,
            event,
            page: None,
        })
    }

    pub(super) fn event(
        &self,
        ctx: &Ctx,
        change: &Change,
        messages: &[Message],
        message: &Message,
        (before, after): (usize, usize),
        summary: Option<&Summary>,
    ) -> CompressionEvent {
        let id = |at: Option<usize>| Some(messages.get(at?)?.id.clone());
        let mut metadata = Map::new();
        metadata.insert("tokenBefore".to_owned(), json!(before));
        metadata.insert("tokenAfter".to_owned(), json!(after));
        // In seconds: how long the model took, if one was asked.
        let took_ms = summary.map_or(0, |summary| summary.took_ms);
        metadata.insert("time".to_owned(), json!(took_ms as f64 / 1000.0));
        if let Some(summary) = summary {
            metadata.insert("inputToken".to_owned(), json!(summary.input_tokens));
            metadata.insert("outputToken".to_owned(), json!(summary.output_tokens));
            metadata.insert("summariser".to_owned(), json!(summary.by));
            if let Some(why) = &summary.refused {
                metadata.insert("refused".to_owned(), json!(why));
            }
        }
        CompressionEvent {
            event_type: change.strategy.to_string(),
            timestamp: ctx.now.millis(),
            compressed_message_count: change.replaced.len(),
            previous_message_id: id(change.replaced.start.checked_sub(1)),
            next_message_id: id(Some(change.replaced.end)),
            compressed_message_id: summary.map(|_| message.id.clone()),
            metadata,
        }
    }

    /// Writes what was replaced and the window without it.
    async fn carry_out(
        &self,
        ctx: &Ctx,
        read: &mut Read,
        made: Vec<Made>,
    ) -> Result<Vec<CompressionEvent>, Error> {
        let mut drafts = Vec::with_capacity(made.len() + 1);
        let mut events = Vec::with_capacity(made.len());
        let mut pages = Vec::new();
        // The last change comes first, so the places of the others stay right.
        for mut made in made {
            if let Some(page) = made.page.take() {
                pages.push(self.write_page(ctx, page, &mut made, &read.entries).await?);
            }
            let offloaded = read.entries.get(made.change.offloaded.clone());
            let offloaded = offloaded.unwrap_or_default().to_vec();
            let replaced = read.entries.get(made.change.replaced.clone());
            let entry = Entry::replacing(made.uuid.clone(), replaced.unwrap_or_default());
            drafts.push((self.offload(&made, offloaded)?, Expect::Absent));
            read.entries.splice(made.change.replaced.clone(), entry);
            events.push(made.event);
        }
        let written = self.write(ctx, read, drafts).await;
        self.settle_pages(ctx, pages, written.is_ok()).await;
        written?;
        events.reverse();
        Ok(events)
    }

    fn offload(&self, made: &Made, entries: Vec<Entry>) -> Result<Draft, Invalid> {
        let offload = Offload {
            entries,
            message: made.message.clone(),
            event: made.event.clone(),
        };
        self.offload_draft(made.uuid.clone(), &offload)
    }

    /// The record that keeps what was replaced.
    pub(super) fn offload_draft(&self, uuid: Id, offload: &Offload) -> Result<Draft, Invalid> {
        let entries = offload.entries.iter();
        Ok(Draft {
            id: Some(uuid),
            content: offload.message.text_content(),
            owner: self.session(),
            scope: Some(Scope::Dialog),
            kind: Some(Kind::Summary),
            body: Some(offload.to_json()?),
            tags: vec![TAG.to_owned()],
            origin: Some(Origin::Derived),
            derived_from: entries.map(|entry| entry.of.clone()).collect(),
            ..Draft::default()
        })
    }
}
