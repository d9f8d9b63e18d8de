//! The static mode of long-term memory: what is known is added before a call of the model, and
//! the conversation is recorded after its reply. In agent mode the model gets tools instead.

use std::sync::Arc;

use mnemon_core::{Ctx, Message, Owner};
use mnemon_engine::Memory;
use mnemon_engine::longterm::{Mode, OwnLongTerm, Recorded, Remembering, Tool};
use serde::Serialize;

use super::Chat;
use crate::Error;

/// The input of the next call of a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prepared {
    /// The window, and at its end what is known about the last user message.
    pub messages: Vec<Message>,
    /// Tools of the agent mode.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
}

/// The result of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Remembered {
    /// Messages of the window that were looked at; those that are known already stay as they are.
    pub messages: usize,
    /// Whether the mode records conversations at all.
    pub recorded: bool,
}

impl Chat {
    fn remembering(&self, memory: &Arc<Memory>, mode: Mode) -> Remembering {
        let owner = Owner::of(Some(&self.user), None);
        Remembering::new(Arc::new(OwnLongTerm::new(memory.clone())), owner, mode)
    }

    /// The messages for the next call of the model, with long-term memory as the mode wants it.
    pub async fn prepare(
        &self,
        memory: &Arc<Memory>,
        ctx: &Ctx,
        mode: Mode,
    ) -> Result<Prepared, Error> {
        let remembering = self.remembering(memory, mode);
        let input = self.messages(memory, ctx).await?;
        let prepared = remembering.before_call(ctx, input).await;
        if let Some(failure) = prepared.failure {
            let what = format!("Long-term memory was not searched: {failure}.");
            ctx.notices.add(what);
        }
        Ok(Prepared {
            messages: prepared.messages,
            tools: remembering.tools(),
        })
    }

    /// Records the conversation to long-term memory, after the model has replied.
    pub async fn record(
        &self,
        memory: &Arc<Memory>,
        ctx: &Ctx,
        mode: Mode,
    ) -> Result<Remembered, Error> {
        let messages = self.messages(memory, ctx).await?;
        let count = messages.len();
        let remembering = self.remembering(memory, mode);
        match remembering.after_reply(ctx.clone(), messages).await {
            Recorded::Failed(why) => {
                let what = format!("the conversation was not recorded: {why}");
                Err(Error::LongTerm(what))
            }
            done => Ok(Remembered {
                messages: count,
                recorded: done == Recorded::Done,
            }),
        }
    }
}
