//! A conversation, and the window of it that a model is shown.

mod input;
mod listing;
mod long_term;
mod request_body;

use std::sync::Arc;

use mnemon_core::budget::Family;
use mnemon_core::window::{CompressionEvent, Measure, Settings};
use mnemon_core::{Ctx, Cursor, Invalid, Message, Receipt, Role, limits};
use mnemon_engine::{LogLine, Memory, Project, Shown, Window};
use serde::{Deserialize, Serialize};

pub use input::{message_of, messages_of};
pub use listing::{ListRequest, Listed, Page, Sort, list};
pub use long_term::{Prepared, Remembered};
pub use request_body::{Format, RequestBody};

use crate::{Error, wiring};

/// Messages of a tail when nobody says.
pub const TAIL: usize = 10;

/// A conversation of a memory, for one call, and how large its window may be.
pub struct Chat {
    pub memory: Arc<Memory>,
    pub ctx: Ctx,
    pub user: String,
    pub session: String,
    pub settings: Settings,
    /// Counts tokens; without it they are estimated.
    measure: Option<Box<Measure>>,
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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Appended {
    #[serde(flatten)]
    pub receipt: Receipt,
    /// Whether the window was compressed.
    pub compressed: bool,
    /// What the compression did, and who wrote the summaries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<CompressionEvent>,
    /// Whether the model is among the speakers.
    #[serde(skip)]
    pub has_reply: bool,
}

/// How a window is compressed by hand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Compression {
    /// Only if it is due.
    pub if_needed: bool,
    /// Whether to wait for the summaries of the language model.
    pub wait: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compressed {
    /// What was done now, oldest first; empty when there was nothing to be gained.
    pub events: Vec<CompressionEvent>,
    pub tokens_before: usize,
    pub tokens_after: usize,
    pub window: Shown,
}

/// Messages as they were said, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tail {
    pub messages: Vec<Message>,
    /// The cursor of the messages before these; absent when there are none.
    #[serde(rename = "next", skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

impl Chat {
    /// A conversation outside projects, with the usual window.
    pub fn new(memory: &Arc<Memory>, ctx: &Ctx, user: String, session: String) -> Self {
        Self {
            memory: memory.clone(),
            ctx: ctx.clone(),
            user,
            session,
            settings: Settings::default(),
            measure: None,
            project: None,
            names_other_users: false,
        }
    }

    /// Counts the tokens of this model instead of estimating them.
    #[must_use]
    pub fn count_tokens_of(mut self, model: Option<String>) -> Self {
        let Some(model) = model else {
            return self;
        };
        let family = Family::of(&model).family;
        if matches!(family, Family::Any | Family::Bytes) {
            let model = model.escape_debug();
            self.ctx.notices.add(format!(
                "The tokenizer of `{model}` is not known: token numbers are upper bounds, not counts."
            ));
        }
        let counter = wiring::counter(family);
        self.measure = Some(Box::new(move |text: &str| counter.count(text)));
        self
    }

    fn window(&self) -> Result<Window<'_>, Error> {
        let mut window = self.memory.window(&self.user, &self.session)?;
        if let Some(project) = &self.project {
            window = window.in_project(project)?;
        }
        let window = window.settings(self.settings)?;
        Ok(match &self.measure {
            Some(measure) => window.measure(measure.as_ref()),
            None => window,
        })
    }

    /// The window of a conversation that must be there already.
    pub async fn existing(&self) -> Result<Window<'_>, Error> {
        let window = self.window()?;
        window.catch_up(&self.ctx).await?;
        match window.is_empty(&self.ctx).await? {
            true => Err(self.unknown().await?),
            false => Ok(window),
        }
    }

    /// Reads what was added to the log of a project since it was last read.
    pub async fn catch_up(&self) -> Result<(), Error> {
        self.window()?.catch_up(&self.ctx).await?;
        Ok(())
    }

    /// Adds messages, and compresses the window if it is due.
    pub async fn append(&self, append: Append<'_>) -> Result<Appended, Error> {
        let is_reply = |message: &Message| message.role == Role::Assistant;
        let has_reply = append.messages.iter().any(is_reply);
        let window = self.window()?;
        let added = window.add_messages(&self.ctx, append.messages, append.key);
        let receipt = added.await?;
        let appended = self.appended(&window, receipt, append.leave_window).await;
        Ok(Appended {
            has_reply,
            ..appended
        })
    }

    /// Adds a line of the format of a project's log.
    pub async fn append_line(
        &self,
        line: &LogLine,
        key: Option<&str>,
        leave_window: bool,
    ) -> Result<Appended, Error> {
        let window = self.window()?;
        let receipt = window.append_line(&self.ctx, line, key).await?;
        Ok(self.appended(&window, receipt, leave_window).await)
    }

    /// What was appended is acknowledged whatever becomes of the window.
    async fn appended(&self, window: &Window<'_>, receipt: Receipt, leave: bool) -> Appended {
        let events = match leave {
            true => Ok(Vec::new()),
            false => window.compress_if_needed(&self.ctx).await,
        };
        let events = events.unwrap_or_else(|error| {
            let what = format!("The window was not compressed: {error}.");
            self.ctx.notices.add(what);
            Vec::new()
        });
        Appended {
            receipt,
            compressed: !events.is_empty(),
            events,
            has_reply: false,
        }
    }

    /// Compresses the window if it is due; what that did.
    pub async fn compress_if_due(&self) -> Result<Vec<CompressionEvent>, Error> {
        let window = self.window()?;
        Ok(window.compress_if_needed(&self.ctx).await?)
    }

    /// The messages of the window with their tokens: hot, summarised or offloaded.
    pub async fn show(&self) -> Result<Shown, Error> {
        let window = self.existing().await?;
        Ok(window.show(&self.ctx).await?)
    }

    /// Reads the older lines of a project's log that were left when it was shown, and tells after
    /// each piece how many bytes are left.
    pub async fn import_backlog(
        &self,
        progress: &mut (dyn FnMut(u64) + Send),
    ) -> Result<(), Error> {
        Ok(self.window()?.import_backlog(&self.ctx, progress).await?)
    }

    /// The messages of the window, as a model is sent them.
    pub async fn messages(&self) -> Result<Vec<Message>, Error> {
        let window = self.existing().await?;
        Ok(window.get_messages(&self.ctx).await?)
    }

    /// Compresses the window, or only if it is due.
    pub async fn compress(&self, how: Compression) -> Result<Compressed, Error> {
        let window = self.existing().await?;
        let before = window.show(&self.ctx).await?;
        let mut events = match before.due || !how.if_needed {
            true => window.compress(&self.ctx).await?,
            false => Vec::new(),
        };
        if how.wait {
            window.refine_pending(&self.ctx).await?;
            let all = window.events(&self.ctx).await?;
            let same = |event: &CompressionEvent| {
                let id = &event.compressed_message_id;
                let found = all
                    .iter()
                    .find(|one| id.is_some() && one.compressed_message_id == *id);
                found.unwrap_or(event).clone()
            };
            events = events.iter().map(same).collect();
        }
        let after = window.show(&self.ctx).await?;
        Ok(Compressed {
            events,
            tokens_before: before.tokens,
            tokens_after: after.tokens,
            window: after,
        })
    }

    /// The messages that a tag in the window stands for; one of them may itself stand for others.
    pub async fn reload(&self, uuid: &str) -> Result<Option<Vec<Message>>, Error> {
        let window = self.existing().await?;
        Ok(window.reload(&self.ctx, uuid).await?)
    }

    /// The last messages as they were said, or the last before a place.
    pub async fn tail(&self, count: usize, before: Option<&str>) -> Result<Tail, Error> {
        let most = limits::PAGE;
        if !(1..=most).contains(&count) {
            let what = format!("is {count}, from 1 to {most} messages are shown at once");
            return Err(Invalid::new("count", what).into());
        }
        let before = before.map(|place| {
            let cursor = place.parse::<Cursor>();
            cursor.map_err(|wrong| Invalid::new("before", wrong.what))
        });
        let before = before.transpose()?;
        let window = self.existing().await?;
        let (messages, next) = window.tail(&self.ctx, before, count).await?;
        Ok(Tail {
            messages,
            before: next.map(|next| next.to_string()),
        })
    }

    /// Shows the window again as it was when the snapshot was taken; how many messages it shows.
    pub async fn restore(&self, label: &str) -> Result<usize, Error> {
        let window = self.existing().await?;
        let shown = window.restore(&self.ctx, label).await?;
        shown.ok_or_else(|| self.no_snapshot(label))
    }

    pub async fn delete_snapshot(&self, label: &str) -> Result<(), Error> {
        let window = self.existing().await?;
        match window.delete_snapshot(&self.ctx, label).await? {
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
