//! A conversation, and the window of it that a model is shown.

use std::sync::Arc;

use mnemon_core::budget::Family;
use mnemon_core::window::{CompressionEvent, Measure, Settings};
use mnemon_core::{Ctx, Invalid, Message, Receipt, limits};
use mnemon_engine::{LogLine, Memory, Project, Shown, Utterance, Window};
use serde::Serialize;

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
}

/// What is added to a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Append<'a> {
    pub message: Utterance,
    /// Makes a retry harmless.
    pub key: Option<&'a str>,
    /// Whether the window is left as it is, even if it is due.
    pub leave_window: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Appended {
    pub receipt: Receipt,
    /// Whether the window was compressed.
    pub compressed: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compressed {
    /// What was done now, oldest first; empty when there was nothing to be gained.
    pub events: Vec<CompressionEvent>,
    pub tokens_before: usize,
    pub tokens_after: usize,
    pub window: Shown,
}

impl Chat {
    /// The tokens of the model that was named; `None` if they are to be estimated.
    fn measure(&self) -> Option<Box<Measure>> {
        let counter = wiring::counter(Family::of(self.model.as_deref()?).family);
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

    /// Adds a message, and keeps the window small.
    pub async fn append(
        &self,
        memory: &Memory,
        ctx: &Ctx,
        append: Append<'_>,
    ) -> Result<Appended, Error> {
        let measure = self.measure();
        let window = self.window(memory, measure.as_deref())?;
        let messages = vec![append.message.into_message()];
        let receipt = window.add_messages(ctx, messages, append.key).await?;
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
        let measure = self.measure();
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
        let compressed = match leave_window {
            true => false,
            false => window
                .compress_if_needed(ctx)
                .await
                .unwrap_or_else(|error| {
                    let what = format!("The window was not compressed: {error}.");
                    ctx.notices.add(what);
                    false
                }),
        };
        Ok(Appended {
            receipt,
            compressed,
        })
    }

    /// The messages of the window with their tokens: hot, summarised or offloaded.
    pub async fn show(&self, memory: &Memory, ctx: &Ctx) -> Result<Shown, Error> {
        let measure = self.measure();
        let window = self.window(memory, measure.as_deref())?;
        window.catch_up(ctx).await?;
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

    /// Compresses the window, or only if it is due.
    pub async fn compress(
        &self,
        memory: &Memory,
        ctx: &Ctx,
        if_needed: bool,
    ) -> Result<Compressed, Error> {
        let measure = self.measure();
        let window = self.window(memory, measure.as_deref())?;
        window.catch_up(ctx).await?;
        let before = window.show(ctx).await?;
        let events = match before.due || !if_needed {
            true => window.compress(ctx).await?,
            false => Vec::new(),
        };
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
        let messages = self.window(memory, None)?.reload(ctx, uuid).await?;
        match messages {
            Some(messages) => Ok(messages),
            None => Err(Error::Missing(vec![uuid.trim().parse()?])),
        }
    }

    /// The last messages as they were said, oldest first.
    pub async fn tail(
        &self,
        memory: &Memory,
        ctx: &Ctx,
        count: usize,
    ) -> Result<Vec<Message>, Error> {
        let most = limits::PAGE;
        if count > most {
            let what = format!("is {count}, at most {most} are shown at once");
            return Err(Invalid::new("count", what).into());
        }
        Ok(self.window(memory, None)?.tail(ctx, count).await?)
    }
}
