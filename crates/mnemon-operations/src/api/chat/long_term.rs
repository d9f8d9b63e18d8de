//! The static mode of long-term memory: what is known is added before a call of the model, and
//! the conversation is recorded after its reply. In agent mode the model gets tools instead.

use mnemon_core::{Message, Owner};
use mnemon_engine::longterm::{self, Mode, Recorded, Remembering, Tool};
use serde::{Deserialize, Serialize};

use super::Chat;
use crate::Error;

/// The input of the next call of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prepared {
    /// The window, and at its end what is known about the last user message.
    pub messages: Vec<Message>,
    /// Tools of the agent mode.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
}

/// The result of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remembered {
    /// Messages of the window that were looked at; those that are known already stay as they are.
    pub messages: usize,
    /// Whether the mode records conversations at all.
    pub recorded: bool,
}

impl Chat {
    fn remembering(&self, mode: Mode) -> Remembering {
        let owner = Owner::of(Some(&self.user), None);
        Remembering::new(longterm::of(&self.memory), owner, mode)
    }

    /// The messages for the next call of the model, with long-term memory as the mode wants it.
    pub async fn prepare(&self, mode: Mode) -> Result<Prepared, Error> {
        let remembering = self.remembering(mode);
        let input = self.messages().await?;
        let prepared = remembering.before_call(&self.ctx, input).await;
        if let Some(failure) = prepared.failure {
            let what = format!("Long-term memory was not searched: {failure}.");
            self.ctx.notices.add(what);
        }
        Ok(Prepared {
            messages: prepared.messages,
            tools: remembering.tools(),
        })
    }

    /// Records the conversation to long-term memory, after the model has replied.
    pub async fn record(&self, mode: Mode) -> Result<Remembered, Error> {
        let messages = self.messages().await?;
        let count = messages.len();
        let remembering = self.remembering(mode);
        match remembering.after_reply(self.ctx.clone(), messages).await {
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
