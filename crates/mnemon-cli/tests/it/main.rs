//! The program as users meet it, and the shape of the house.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on says where; clippy sees only #[test] functions as tests"
)]

mod agents;
mod architecture;
mod audience;
mod backup;
mod bad_input;
mod bad_stores;
mod chat;
mod clock;
mod commands;
mod config;
mod context;
mod conventions;
mod conversations;
mod docs;
mod editing;
mod editing_rules;
mod eval;
mod exit_codes;
mod external_index;
mod facade;
mod forgetting;
mod hostile;
mod ingest;
mod isolation;
mod json;
mod keys;
mod kills;
mod lance_script;
mod languages;
mod learning;
mod llm;
mod mcp;
mod migration;
mod milvus_script;
#[cfg(feature = "minilm")]
mod minilm;
mod missing_store;
mod modes;
mod moving;
mod notes;
mod notices;
mod pages;
mod planner;
mod projects;
mod purging;
mod questions;
mod ranking;
mod readability;
mod remotes;
mod sandbox;
mod search;
mod secrets;
mod server;
mod sessions;
mod stores;
mod streams;
mod tenants;
mod trust;
mod undo_groups;
