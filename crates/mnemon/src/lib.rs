//! Memory for AI agents.
