//! A window that only grows, and is gone with the process.

use mnemon_core::Message;

/// Messages in memory, without limit and without compression.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InMemory {
    messages: Vec<Message>,
}

impl InMemory {
    /// Adds a message at the end.
    pub fn add_message(&mut self, message: Message) {
        self.messages.push(message);
    }

    /// All of them, oldest first.
    pub fn get_messages(&self) -> Vec<Message> {
        self.messages.clone()
    }

    /// Takes one out. Out of range nothing happens. Whether there was such a message.
    pub fn delete_message(&mut self, index: i64) -> bool {
        match usize::try_from(index) {
            Ok(at) if at < self.messages.len() => {
                self.messages.remove(at);
                true
            }
            _ => false,
        }
    }

    pub(super) fn replace(&mut self, messages: Vec<Message>) {
        self.messages = messages;
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.messages.clear();
    }

    /// Nothing was ever offloaded from it, and it says so.
    pub fn context_reload(&self, uuid: Option<&str>) -> Vec<Message> {
        let uuid = uuid.unwrap_or_default();
        let text = match uuid.trim().is_empty() {
            true => "Error: UUID cannot be null or empty.".to_owned(),
            false => format!(
                "Error: Context offloader is not available. Cannot reload context with UUID: {uuid}"
            ),
        };
        super::said(text)
    }
}
