//! Conversations: what a window keeps, and the formats of providers.

pub mod format;
pub mod window;
