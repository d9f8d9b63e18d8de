//! The operations that take more than one call of the engine, or check more than it does, so that
//! every door does them alike. Where one call of the engine does it, the doors call the engine.

pub mod agent;
pub mod chat;
pub mod context;
pub mod doctor;
pub mod eval;
pub mod experience;
pub mod forget;
pub mod get;
pub mod history;
pub mod import;
pub mod ingest;
pub mod init;
pub mod install;
pub mod learn;
pub mod lines;
pub mod list;
pub mod llm;
pub mod migrate;
pub mod policy;
pub mod reembed;
pub mod restore;
pub mod session;
pub mod session_forget;
pub mod skill;
pub mod stats;
pub mod undo;
pub mod upkeep;
