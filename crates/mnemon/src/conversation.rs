//! A conversation, and the part of it that a model should see.

use mnemon_engine::Window;

use crate::{Error, Message, Mnemon, Receipt, Role};

/// A user's conversation. Every message is kept; a long conversation is compressed for the window,
/// and the originals stay readable.
#[derive(Clone)]
pub struct Conversation {
    memory: Mnemon,
    user: String,
    session: String,
}

impl Conversation {
    pub(crate) fn new(memory: Mnemon, user: String, session: String) -> Self {
        Self {
            memory,
            user,
            session,
        }
    }

    /// Appends a message.
    pub async fn append(&self, role: Role, text: impl Into<String>) -> Result<Receipt, Error> {
        self.append_message(Message::text("", role, text)).await
    }

    /// Appends a message with tool calls, images or metadata.
    pub async fn append_message(&self, message: Message) -> Result<Receipt, Error> {
        let receipt = self
            .open()?
            .add_message(&self.memory.ctx(), message)
            .await?;
        Ok(receipt.into())
    }

    /// The messages that a model should see: summaries of the older part, then the recent messages,
    /// within the token limit of the window (128,000 unless set otherwise).
    pub async fn window(&self) -> Result<Vec<Message>, Error> {
        Ok(self.open()?.get_messages(&self.memory.ctx()).await?)
    }

    /// The newest messages as they were appended, oldest first.
    pub async fn tail(&self, count: usize) -> Result<Vec<Message>, Error> {
        let ctx = self.memory.ctx();
        Ok(self.open()?.tail(&ctx, None, count).await?.0)
    }

    /// The original messages that a summary stands for, by the `uuid` in the summary.
    pub async fn reload(&self, uuid: &str) -> Result<Option<Vec<Message>>, Error> {
        Ok(self.open()?.reload(&self.memory.ctx(), uuid).await?)
    }

    /// Deletes the conversation, and the records that are known only from it. With `purge` it is
    /// erased from the store and cannot be undone. Returns how many records were deleted.
    pub async fn delete(&self, purge: bool) -> Result<u64, Error> {
        let (memory, ctx) = (self.memory.engine(), self.memory.ctx());
        let deleted = memory.delete_session(&ctx, &self.user, &self.session, purge);
        Ok(deleted.await?.records)
    }

    fn open(&self) -> Result<Window<'_>, Error> {
        Ok(self.memory.engine().window(&self.user, &self.session)?)
    }
}
