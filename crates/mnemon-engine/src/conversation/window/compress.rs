//! Making a window smaller: plan, summarise, replace, all in one batch.

use mnemon_core::window::{
    Change, CompressionEvent, Extract, Strategy, message_tokens, paired, plan, tokens,
};
use mnemon_core::{Ctx, Expect, Id, Invalid, Kind, Message, Origin, Scope, StoreError, limits};
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};

use super::stored::{Entry, Offload, PENDING, TAG};
use super::summarise::{EXTRACTIVE, MODEL_PENDING, headed};
use super::{Read, Window};
use crate::conversation::pages::Page;
use crate::records::{Draft, Error};

/// A summary that is not smaller than what it replaces is tried again with half the room.
const HALVINGS: usize = 4;

/// A change that makes the window smaller, ready to be written.
pub(super) struct Made {
    pub(super) change: Change,
    pub(super) uuid: Id,
    pub(super) message: Message,
    pub(super) event: CompressionEvent,
    /// The page to be written, if the message is a link to one.
    pub(super) page: Option<Page>,
}

/// What a compression would do to some messages of the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Preview {
    pub strategy: String,
    /// The first message that would be replaced, and the first one after them that would not.
    pub from: usize,
    pub to: usize,
    pub tokens_before: u64,
    pub tokens_after: u64,
    /// What would stand in their place.
    pub text: String,
}

impl Window<'_> {
    /// Compresses the window if it is due: by the first strategy that makes it smaller, and by
    /// further ones while it has more than the model can read. What it did; nothing if it was not
    /// due. A model is not waited for: its summaries come with [`Window::refine_pending`].
    pub async fn compress_if_needed(&self, ctx: &Ctx) -> Result<Vec<CompressionEvent>, Error> {
        let mut events = Vec::new();
        for _ in 0..limits::WINDOW_ROUNDS {
            let read = self.read(ctx).await?;
            let due = match events.is_empty() || self.project.is_some() {
                true => self.is_due(&read),
                false => {
                    tokens(&read.messages, self.measure) >= self.settings.max_token || read.more
                }
            };
            if !due {
                break;
            }
            let done = self.step(ctx, read).await?;
            if done.is_empty() {
                break;
            }
            events.extend(done);
        }
        Ok(events)
    }

    /// Compresses the window, due or not, by the first strategy that makes it smaller. Below its
    /// limits only strategies are used that leave the last messages alone. What it did; nothing if
    /// there is nothing to be gained. In a project pages are written until the window is within its
    /// limits.
    pub async fn compress(&self, ctx: &Ctx) -> Result<Vec<CompressionEvent>, Error> {
        if self.project.is_some() {
            return self.compress_if_needed(ctx).await;
        }
        let read = self.read(ctx).await?;
        self.step(ctx, read).await
    }

    /// What [`Window::compress`] would do. Nothing is written.
    pub async fn preview(&self, ctx: &Ctx) -> Result<Vec<Preview>, Error> {
        let read = self.read(ctx).await?;
        let mut made = self.smaller(ctx, &read).await?;
        made.reverse();
        let previews = made.into_iter().map(|made| Preview {
            strategy: made.event.event_type.clone(),
            from: made.change.replaced.start,
            to: made.change.replaced.end,
            tokens_before: made.event.number("tokenBefore").unwrap_or_default(),
            tokens_after: made.event.number("tokenAfter").unwrap_or_default(),
            text: made.message.text_content(),
        });
        Ok(previews.collect())
    }

    fn is_due(&self, read: &Read) -> bool {
        let tokens = tokens(&read.messages, self.measure);
        read.more || self.settings.is_triggered(read.messages.len(), tokens)
    }

    async fn step(&self, ctx: &Ctx, mut read: Read) -> Result<Vec<CompressionEvent>, Error> {
        for _ in 0..limits::CHANGE_TRIES {
            let made = self.smaller(ctx, &read).await?;
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
    async fn smaller(&self, ctx: &Ctx, read: &Read) -> Result<Vec<Made>, Error> {
        let due = self.is_due(read);
        let usable = |strategy: &&Strategy| match self.project {
            Some(_) => due,
            None => **strategy != Strategy::HistoryPage && (due || strategy.is_gentle()),
        };
        for strategy in Strategy::ALL.iter().filter(usable) {
            let mut made = Vec::new();
            for change in plan(*strategy, &read.messages, &self.settings, self.measure) {
                made.extend(self.make(ctx, change, read).await?);
            }
            if !made.is_empty() {
                return Ok(made);
            }
        }
        Ok(Vec::new())
    }

    /// The change with its new message, unless that would not be smaller than what it replaces.
    async fn make(
        &self,
        ctx: &Ctx,
        mut change: Change,
        read: &Read,
    ) -> Result<Option<Made>, Error> {
        if change.strategy == Strategy::HistoryPage {
            return self.make_page(ctx, change, read).await;
        }
        let messages = &read.messages;
        // As a model is shown them, which may be smaller: a lone call is a short text there.
        let (shown, _) = paired(messages.clone());
        let before = tokens(change.replaced(&shown), self.measure);
        let uuid = self.records.ids.next(ctx.now);
        let entries = read.entries.get(change.offloaded.clone());
        let entries = entries.unwrap_or_default();
        let (extract, chars) = match change.strategy.is_offload() {
            true => (Extract::of(&[], &[]), 0),
            false => {
                let made = self.extract_originals(ctx, &change, entries, messages);
                made.await?
            }
        };
        change.size_for(chars);
        for _ in 0..HALVINGS {
            let text = match change.strategy.is_offload() {
                true => String::new(),
                false => {
                    // A record holds no NUL.
                    let summary = extract.text(change.summary_chars).replace('\0', "");
                    headed(&change, entries, &uuid, &summary)
                }
            };
            let message = change.replacement(messages, &text, &uuid, &self.settings);
            let after = message_tokens(&message, self.measure);
            if after < before {
                let sizes = (before, after);
                let event = self.event(ctx, &change, messages, &message, sizes, &extract);
                return Ok(Some(Made {
                    change,
                    uuid,
                    message,
                    event,
                    page: None,
                }));
            }
            if change.strategy.is_offload() {
                break;
            }
            change.summary_chars /= 2;
        }
        Ok(None)
    }

    pub(super) fn event(
        &self,
        ctx: &Ctx,
        change: &Change,
        messages: &[Message],
        message: &Message,
        (before, after): (usize, usize),
        extract: &Extract,
    ) -> CompressionEvent {
        let id = |at: Option<usize>| Some(messages.get(at?)?.id.clone());
        let is_summary = !change.strategy.is_offload();
        let mut metadata = Map::new();
        metadata.insert("tokenBefore".to_owned(), json!(before));
        metadata.insert("tokenAfter".to_owned(), json!(after));
        metadata.insert("time".to_owned(), json!(0.0));
        if is_summary {
            let by = match self.llm {
                Some(_) => MODEL_PENDING,
                None => EXTRACTIVE,
            };
            metadata.insert("inputToken".to_owned(), json!(0));
            metadata.insert("outputToken".to_owned(), json!(0));
            metadata.insert("summariser".to_owned(), json!(by));
            metadata.insert("topics".to_owned(), json!(extract.topics()));
        }
        CompressionEvent {
            event_type: change.strategy.to_string(),
            timestamp: ctx.now.millis(),
            compressed_message_count: change.replaced.len(),
            previous_message_id: id(change.replaced.start.checked_sub(1)),
            next_message_id: id(Some(change.replaced.end)),
            compressed_message_id: is_summary.then(|| message.id.clone()),
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
        let mut tags = vec![TAG.to_owned()];
        if offload.event.summariser() == Some(MODEL_PENDING) {
            tags.push(PENDING.to_owned());
        }
        Ok(Draft {
            id: Some(uuid),
            content: offload.message.text_content(),
            owner: self.session(),
            scope: Some(Scope::Dialog),
            kind: Some(Kind::Summary),
            body: Some(offload.to_json()?),
            tags,
            origin: Some(Origin::Derived),
            derived_from: entries.map(|entry| entry.of.clone()).collect(),
            ..Draft::default()
        })
    }
}
