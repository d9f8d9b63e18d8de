//! Notes on every store, from files, and from the command line.

mod commands;
mod finding;
mod from_files;
mod original;
mod remote_copies;
mod stores;

use std::path::Path;

use mnemon_core::{Ctx, Tenant, Time};
use mnemon_engine::Memory;
use mnemon_engine::notes::{Added, FoundNotes, NewNote, NoteFilter, NoteQuery};
use mnemon_operations::config::{Config, Sourced};
use mnemon_operations::wiring;

fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(future)
}

/// Day zero of these tests, some days later.
fn after_days(days: i64) -> Ctx {
    let start = Time::from_millis(1_700_000_000_000).unwrap();
    Ctx::new(Tenant::default(), "test", start.plus_days(days))
}

fn now() -> Ctx {
    after_days(0)
}

/// A configuration for a store, with no model: these tests are not about meaning.
fn config(url: &str) -> Config {
    let mut config = Config::for_store(url);
    config.embedder = Sourced::default(mnemon_operations::config::EmbedderChoice::None);
    config
}

fn open(config: &Config) -> Memory {
    wiring::open(config).unwrap().memory
}

/// A store of each kind in a folder; the first one is gone when it is closed.
fn urls(folder: &Path) -> [String; 3] {
    [
        "ram:".to_owned(),
        format!("jsonl:{}", folder.join("log").display()),
        format!("sqlite:{}", folder.join("m.db").display()),
    ]
}

fn add(memory: &Memory, ctx: &Ctx, note: NewNote) -> Added {
    wait(memory.notes().add(ctx, note, None)).unwrap()
}

fn search(memory: &Memory, ctx: &Ctx, query: &str) -> FoundNotes {
    let query = NoteQuery::new(query, NoteFilter::all_of_tenant());
    wait(memory.notes().search(ctx, &query)).unwrap()
}
