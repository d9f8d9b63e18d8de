//! Conversations: window, tiers, saved sessions, long-term memory.

pub mod longterm;
pub mod session;
pub mod tiers;
pub(crate) mod window;

pub use window::{InMemory, Seen, SeenAs, Shown, Window, WindowState};
