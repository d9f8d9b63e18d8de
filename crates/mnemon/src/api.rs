//! What can be asked of a memory: one file per operation, each with a `Request`, a `Response` and
//! a `run`. Command line, HTTP and MCP decode into a request and encode the response; none of them
//! adds a field of its own.

pub mod add;
pub mod agent;
pub mod chat;
pub mod chat_append;
pub mod chat_compress;
pub mod chat_reload;
pub mod chat_show;
pub mod chat_tail;
pub mod context;
pub mod doctor;
pub mod eval;
pub mod export;
pub mod forget;
pub mod get;
pub mod history;
pub mod import;
pub mod ingest;
pub mod list;
pub mod llm_check;
pub mod llm_usage;
pub mod policy;
pub mod read;
pub mod reembed;
pub mod search;
pub mod session_copy;
pub mod session_delete;
pub mod session_forget;
pub mod session_fork;
pub mod session_list;
pub mod session_load;
pub mod session_restore;
pub mod session_save;
pub mod session_snapshot;
pub mod stats;
pub mod team;
pub mod tiers_append;
pub mod tiers_boot;
pub mod tiers_compress;
pub mod tiers_query;
pub mod undo;
pub mod update;
pub mod upkeep;
pub mod write;
