//! Which tools a client is shown: a model should not read thirty schemas.

use clap::ValueEnum;

/// A set of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    /// Remember, find, read, forget, and what a prompt needs to know
    Small,
    /// Everything about notes
    Notes,
    /// An agent's own memory: sessions, long-term memory, agents' and teams' files
    Agent,
    /// Every tool there is
    All,
}
