//! Conversations: window, tiers, saved sessions, long-term memory.

pub mod longterm;
pub mod session;
pub mod tiers;
pub(crate) mod window;

pub use window::{Folded, InMemory, Preview, Refined, Seen, SeenAs, Shown, Window, WindowState};
