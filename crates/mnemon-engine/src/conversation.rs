//! Conversations: window, tiers, saved sessions, long-term memory.

mod listing;
pub mod longterm;
mod query;
pub mod session;
pub mod tiers;
pub(crate) mod window;

pub use listing::Conversation;
pub use query::{Passage, PassageQuery};
pub use window::{
    Folded, InMemory, Preview, Refined, Seen, SeenAs, Shown, Snapshot, Window, WindowState,
};
