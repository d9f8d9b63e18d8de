//! Conversations: an append-only log of messages, and views of it. The window is what a model sees,
//! pages are summaries in a project's files, and messages and pages are found by search as they are.

pub(crate) mod library;
mod listing;
mod log;
pub mod longterm;
mod pages;
mod project;
mod query;
pub mod session;
pub(crate) mod window;

pub use listing::Conversation;
pub use log::{CaughtUp, Said as LogLine};
pub(crate) use log::{is_log_line, log_folder, log_path};
pub(crate) use pages::{is_page_of, library_folder};
pub(crate) use project::session_in;
pub use project::{Project, ProjectConfig};
pub use query::{Passage, PassageQuery};
pub use window::{
    Folded, InMemory, Preview, Refined, Seen, SeenAs, Shown, Snapshot, Tier, Tiers, Window,
    WindowState,
};
