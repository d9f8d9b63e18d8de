//! The verbs, over the reference store.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: a failure should panic"
)]

mod access;
mod agentfiles;
mod audience;
mod bad_vectors;
mod context;
mod conversations;
mod deletion;
mod documents;
mod duplicates;
mod editing;
mod external;
mod facade;
mod feed;
mod import;
mod learn;
mod longterm;
mod notes;
mod notices;
mod outbox;
mod project;
mod rerank;
mod retries;
mod search_index;
mod secrets;
mod session;
mod simulator;

mod undo;
mod undo_groups;
mod webhooks;
mod window;

use std::sync::Arc;

use mnemon_core::ram::Ram;
use mnemon_core::{Ctx, Filter, Id, Ids, Limits, Policy, Record, Scan, Tenant, Time};
use mnemon_engine::{Draft, Memory};

fn memory() -> Memory {
    Memory::builder(Arc::new(Ram::new()), Ids::new(7)).build()
}

/// The same under other limits.
fn memory_under(limits: &'static Limits) -> Memory {
    let policy = Policy {
        limits,
        ..Policy::default()
    };
    let store = Arc::new(Ram::new());
    Memory::builder(store, Ids::new(7)).policy(policy).build()
}

fn ctx() -> Ctx {
    let now = Time::from_millis(1_700_000_000_000).unwrap();
    Ctx::new(Tenant::default(), "test", now)
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    futures::executor::block_on(future)
}

/// A note under an id of our choice.
fn named(id: &str, content: &str) -> Draft {
    Draft {
        id: Some(id.parse().unwrap()),
        ..Draft::note(content)
    }
}

fn id(text: &str) -> Id {
    text.parse().unwrap()
}

/// All records, newest first.
fn all(memory: &Memory) -> Vec<Record> {
    let scan = Scan::new(Filter::all_of_tenant(), 1000);
    wait(memory.records().list(&ctx(), &scan)).unwrap().records
}

fn contents(memory: &Memory) -> Vec<String> {
    all(memory).into_iter().map(|r| r.content).collect()
}
