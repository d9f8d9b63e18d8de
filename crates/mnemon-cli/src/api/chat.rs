//! A conversation, and the window of it that a model is shown.

mod input;
mod listing;
mod long_term;
mod request_body;

use std::sync::Arc;

use mnemon_core::budget::Family;
use mnemon_core::window::{CompressionEvent, Measure, Settings};
use mnemon_core::{Ctx, Cursor, Invalid, Message, Receipt, limits};
use mnemon_engine::{LogLine, Memory, Preview, Project, Shown, Window};
use serde::Serialize;

pub use input::{message_of, messages_of};
pub use listing::{ListRequest, Listed, Page, list};
pub use long_term::{Prepared, Remembered};
pub use request_body::{Format, RequestBody};

use crate::{Error, wiring};

/// Messages of a tail when nobody says.
pub const TAIL: usize = 10;

/// A conversation, and how large its window may be.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Chat {
    pub user: String,
    pub session: String,
    pub settings: Settings,
    /// The model whose tokens are counted; without one they are estimated.
    pub model: Option<String>,
    /// The project in whose files the conversation lies.
    pub project: Option<Arc<Project>>,
    /// Whether an error may name conversations of other users.
    pub names_other_users: bool,
}

/// What is added to a conversation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Append<'a> {
    /// All of them are added, or none.
    pub messages: Vec<Message>,
    /// Makes a retry harmless.
    pub key: Option<&'a str>,
    /// Whether the window is left as it is, even if it is due.
    pub leave_window: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Appended {
    #[serde(flatten)]
    pub receipt: Receipt,
    /// Whether the window was compressed.
    pub compressed: bool,
    /// What the compression did, and who wrote the summaries.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<CompressionEvent>,
}

/// How a window is compressed by hand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Compression {
    /// Only if it is due.
    pub if_needed: bool,
    /// Whether to wait for the summaries of the language model.
    pub wait: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compressed {
    /// What was done now, oldest first; empty when there was nothing to be gained.
    pub events: Vec<CompressionEvent>,
    pub tokens_before: usize,
    pub tokens_after: usize,
    pub window: Shown,
}

/// Messages as they were said, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tail {
    pub messages: Vec<Message>,
    /// The cursor of the messages before these; absent when there are none.
    #[serde(rename = "next", skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

impl Chat {
    /// The tokens of the model that was named; `None` if they are to be estimated.
    fn measure(&self, ctx: &Ctx) -> Option<Box<Measure>> {
        let model = self.model.as_deref()?;
        let family = Family::of(model).family;
        if matches!(family, Family::Any | Family::Bytes) {
            let model = model.escape_debug();
            ctx.notices.add(format!(
                "The tokenizer of `{model}` is not known: token numbers are upper bounds, not counts."
            ));
        }
        let counter = wiring::counter(family);
        Some(Box::new(move |text: &str| counter.count(text)))
    }

    fn window<'a>(
        &'a self,
        memory: &'a Memory,
        measure: Option<&'a Measure>,
    ) -> Result<Window<'a>, Error> {
        let mut window = memory.window(&self.user, &self.session)?;
        if let Some(project) = &self.project {
            window = window.in_project(project)?;
        }
        let window = window.settings(self.settings)?;
        Ok(match measure {
            Some(measure) => window.measure(measure),
            None => window,
        })
    }

    /// The window of a conversation that must be there already.
    async fn existing<'a>(
        &'a self,
        memory: &'a Memory,
        ctx: &Ctx,
        measure: Option<&'a Measure>,
    ) -> Result<Window<'a>, Error> {
        let window = self.window(memory, measure)?;
        window.catch_up(ctx).await?;
        match window.is_empty(ctx).await? {
            true => Err(self.unknown(memory, ctx).await?),
            false => Ok(window),
        }
    }

    /// Reads what was added to the log of a project since it was last read.
    pub async fn catch_up(&self, memory: &Memory, ctx: &Ctx) -> Result<(), Error> {
        self.window(memory, None)?.catch_up(ctx).await?;
        Ok(())
    }

    /// Adds messages, and compresses the window if it is due.
    pub async fn append(
        &self,
        memory: &Memory,
        ctx: &Ctx,
        append: Append<'_>,
    ) -> Result<Appended, Error> {
        let measure = self.measure(ctx);
        let window = self.window(memory, measure.as_deref())?;
        let added = window.add_messages(ctx, append.messages, append.key);
        let receipt = added.await?;
        self.appended(&window, ctx, receipt, append.leave_window)
            .await
    }

    /// Adds a line of the format of a project's log.
    pub async fn append_line(
        &self,
        memory: &Memory,
        ctx: &Ctx,
        line: &LogLine,
        key: Option<&str>,
        leave_window: bool,
    ) -> Result<Appended, Error> {
        let measure = self.measure(ctx);
        let window = self.window(memory, measure.as_deref())?;
        let receipt = window.append_line(ctx, line, key).await?;
        self.appended(&window, ctx, receipt, leave_window).await
    }

    /// What was appended is acknowledged whatever becomes of the window.
    async fn appended(
        &self,
        window: &Window<'_>,
        ctx: &Ctx,
        receipt: Receipt,
        leave_window: bool,
    ) -> Result<Appended, Error> {
        let events = match leave_window {
            true => Vec::new(),
            false => window
                .compress_if_needed(ctx)
                .await
                .unwrap_or_else(|error| {
                    let what = format!("The window was not compressed: {error}.");
                    ctx.notices.add(what);
                    Vec::new()
                }),
        };
        Ok(Appended {
            receipt,
            compressed: !events.is_empty(),
            events,
        })
    }

    /// Compresses the window if it is due; what that did.
    pub async fn compress_if_due(
        &self,
        memory: &Memory,
        ctx: &Ctx,
    ) -> Result<Vec<CompressionEvent>, Error> {
        let measure = self.measure(ctx);
        let window = self.window(memory, measure.as_deref())?;
        Ok(window.compress_if_needed(ctx).await?)
    }

    /// The messages of the window with their tokens: hot, summarised or offloaded.
    pub async fn show(&self, memory: &Memory, ctx: &Ctx) -> Result<Shown, Error> {
        let measure = self.measure(ctx);
        let window = self.existing(memory, ctx, measure.as_deref()).await?;
        Ok(window.show(ctx).await?)
    }

    /// Reads the older lines of a project's log that were left when it was shown, and tells after
    /// each piece how many bytes are left.
    pub async fn import_backlog(
        &self,
        memory: &Memory,
        ctx: &Ctx,
        progress: &mut (dyn FnMut(u64) + Send),
    ) -> Result<(), Error> {
        Ok(self
            .window(memory, None)?
            .import_backlog(ctx, progress)
            .await?)
    }

    /// The messages of the window, as a model is sent them.
    pub async fn messages(&self, memory: &Memory, ctx: &Ctx) -> Result<Vec<Message>, Error> {
        let window = self.existing(memory, ctx, None).await?;
        Ok(window.get_messages(ctx).await?)
    }

    /// What compressing the window would do. Nothing is written.
    pub async fn preview(&self, memory: &Memory, ctx: &Ctx) -> Result<Vec<Preview>, Error> {
        let measure = self.measure(ctx);
        let window = self.existing(memory, ctx, measure.as_deref()).await?;
        Ok(window.preview(ctx).await?)
    }

    /// Compresses the window, or only if it is due.
    pub async fn compress(
        &self,
        memory: &Memory,
        ctx: &Ctx,
        how: Compression,
    ) -> Result<Compressed, Error> {
        let measure = self.measure(ctx);
        let window = self.existing(memory, ctx, measure.as_deref()).await?;
        let before = window.show(ctx).await?;
        let mut events = match before.due || !how.if_needed {
            true => window.compress(ctx).await?,
            false => Vec::new(),
        };
        if how.wait {
            window.refine_pending(ctx).await?;
            let all = window.events(ctx).await?;
            let same = |event: &CompressionEvent| {
                let id = &event.compressed_message_id;
                let found = all
                    .iter()
                    .find(|one| id.is_some() && one.compressed_message_id == *id);
                found.unwrap_or(event).clone()
            };
            events = events.iter().map(same).collect();
        }
        let after = window.show(ctx).await?;
        Ok(Compressed {
            events,
            tokens_before: before.tokens,
            tokens_after: after.tokens,
            window: after,
        })
    }

    /// The messages that a tag in the window stands for; one of them may itself stand for others.
    pub async fn reload(
        &self,
        memory: &Memory,
        ctx: &Ctx,
        uuid: &str,
    ) -> Result<Vec<Message>, Error> {
        let window = self.existing(memory, ctx, None).await?;
        let messages = window.reload(ctx, uuid).await?;
        messages.ok_or(Error::NotReplaced)
    }

    /// The last messages as they were said, or the last before a place.
    pub async fn tail(
        &self,
        memory: &Memory,
        ctx: &Ctx,
        count: usize,
        before: Option<&str>,
    ) -> Result<Tail, Error> {
        let most = limits::PAGE;
        if !(1..=most).contains(&count) {
            let what = format!("is {count}, from 1 to {most} messages are shown at once");
            return Err(Invalid::new("count", what).into());
        }
        let before: Option<Cursor> = before.map(str::parse).transpose()?;
        let window = self.existing(memory, ctx, None).await?;
        let (messages, next) = window.tail(ctx, before, count).await?;
        Ok(Tail {
            messages,
            before: next.map(|next| next.to_string()),
        })
    }

    /// What compressions did, oldest first.
    pub async fn events(&self, memory: &Memory, ctx: &Ctx) -> Result<Vec<CompressionEvent>, Error> {
        let window = self.existing(memory, ctx, None).await?;
        Ok(window.events(ctx).await?)
    }

    /// Empties the window; every message stays in the conversation.
    pub async fn clear(&self, memory: &Memory, ctx: &Ctx) -> Result<(), Error> {
        let window = self.existing(memory, ctx, None).await?;
        Ok(window.clear(ctx).await?)
    }

    /// Copies the conversation to another name; how many messages it has.
    pub async fn fork(&self, memory: &Memory, ctx: &Ctx, to: &str) -> Result<usize, Error> {
        let window = self.existing(memory, ctx, None).await?;
        Ok(window.fork(ctx, to).await?)
    }

    /// Saves the window under a label; how many messages it shows.
    pub async fn snapshot(&self, memory: &Memory, ctx: &Ctx, label: &str) -> Result<usize, Error> {
        let window = self.existing(memory, ctx, None).await?;
        Ok(window.snapshot(ctx, label).await?)
    }

    /// Shows the window again as it was when the snapshot was taken; how many messages it shows.
    pub async fn restore(&self, memory: &Memory, ctx: &Ctx, label: &str) -> Result<usize, Error> {
        let window = self.existing(memory, ctx, None).await?;
        let shown = window.restore(ctx, label).await?;
        shown.ok_or_else(|| self.no_snapshot(label))
    }

    pub async fn delete_snapshot(
        &self,
        memory: &Memory,
        ctx: &Ctx,
        label: &str,
    ) -> Result<(), Error> {
        let window = self.existing(memory, ctx, None).await?;
        match window.delete_snapshot(ctx, label).await? {
            true => Ok(()),
            false => Err(self.no_snapshot(label)),
        }
    }

    fn no_snapshot(&self, label: &str) -> Error {
        mnemon_engine::Error::NoSnapshot {
            session: self.session.clone(),
            label: label.to_owned(),
        }
        .into()
    }
}
