//! The window of a conversation: what a model still sees word for word, and how it is made smaller.
//!
//! Everything here is planning. [`plan`] says which messages a [`Strategy`] would replace,
//! [`Change::summary_prompt`] what a model would be asked, [`extract`] what is said without one,
//! and [`Change::replacement`] which message takes their place. Whoever carries it out keeps the
//! messages that were replaced under the uuid that the replacement names.
//!
//! ```
//! use mnemon_core::window::{Settings, Strategy, estimate, plan};
//! use mnemon_core::{Message, Role};
//!
//! let settings = Settings { last_keep: Some(1), large_payload_threshold: 100, ..Settings::default() };
//! let long = Message::text("m1", Role::User, "tea ".repeat(100));
//! let talk = [long, Message::text("m2", Role::Assistant, "yes"), Message::text("m3", Role::User, "so?")];
//! let changes = plan(Strategy::LargeProtected, &talk, &settings, &estimate);
//! let short = changes[0].replacement(&talk, "", &"u1".parse()?, &settings);
//! assert!(short.text_content().ends_with("<!-- CONTEXT_OFFLOAD: uuid=u1 -->"));
//! # Ok::<(), mnemon_core::Invalid>(())
//! ```

mod calls;
mod change;
mod event;
mod extract;
mod predicates;
mod prompts;
mod settings;
mod strategy;
mod tokens;

pub use calls::{is_paired, paired, truncated};
pub use change::{Change, tag};
pub use event::CompressionEvent;
pub use extract::{Extract, Reading, Readings, extract};
pub use predicates::{
    COMPRESS_META, chars, is_compressed, is_final_assistant, is_tool, is_tool_result, is_tool_use,
    is_user,
};
pub use prompts::{Ask, INSTRUCTIONS, PLAN_TOOLS, Plan, Prompts, without_plan_tools};
pub use settings::{Settings, between, fraction};
pub use strategy::{Strategy, plan};
pub use tokens::{Measure, estimate, message_tokens, tokens};

#[cfg(test)]
mod tests;
