//! What can be asked of a memory: one file per operation, each with a `Request`, a `Response` and
//! a `run`. Command line, HTTP and MCP decode into a request and encode the response; none of them
//! adds a field of its own.

pub mod add;
pub mod agent;
pub mod doctor;
pub mod eval;
pub mod export;
pub mod forget;
pub mod get;
pub mod history;
pub mod import;
pub mod list;
pub mod policy;
pub mod read;
pub mod reembed;
pub mod search;
pub mod session_forget;
pub mod stats;
pub mod team;
pub mod undo;
pub mod update;
pub mod upkeep;
pub mod write;
