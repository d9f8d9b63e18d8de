//! Notes over the reference store.

mod bad_input;
mod echo;
mod finding;
mod keeping;
mod safety;

use std::sync::Arc;

use mnemon_core::ram::Ram;
use mnemon_core::{Ctx, Ids, Namespace, Tenant, Time};
use mnemon_engine::notes::{Added, NewNote, NoteQuery, Notes, NotesConfig};
use mnemon_engine::{Memory, Safety};

use super::wait;

/// Day zero of these tests, some hours later.
fn after_hours(hours: i64) -> Ctx {
    let start = Time::from_millis(1_700_000_000_000).unwrap();
    let now = start.plus_millis(hours * 3_600_000);
    Ctx::new(Tenant::default(), "test", now)
}

fn after_days(days: i64) -> Ctx {
    after_hours(days * 24)
}

fn now() -> Ctx {
    after_hours(0)
}

fn memory_with(config: NotesConfig, safety: Safety) -> Memory {
    Memory::builder(Arc::new(Ram::new()), Ids::new(7))
        .notes(config)
        .safety(safety)
        .build()
}

fn notes_with(change: impl FnOnce(&mut NotesConfig)) -> Notes {
    let mut config = NotesConfig::default();
    change(&mut config);
    config.check().unwrap();
    memory_with(config, Safety::default()).notes()
}

fn notes() -> Notes {
    notes_with(|_| {})
}

fn add(notes: &Notes, content: &str) -> Added {
    add_at(notes, &now(), NewNote::new(content))
}

fn add_at(notes: &Notes, ctx: &Ctx, note: NewNote) -> Added {
    wait(notes.add(ctx, note, None)).unwrap()
}

fn tagged(content: &str, tags: &[&str]) -> NewNote {
    NewNote {
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        ..NewNote::new(content)
    }
}

fn long_term(content: &str) -> NewNote {
    NewNote {
        namespace: Some(Namespace::LongTerm),
        ..NewNote::new(content)
    }
}

/// The summaries that a search finds, the best first.
fn found(notes: &Notes, query: &NoteQuery) -> Vec<String> {
    let found = wait(notes.search(&now(), query)).unwrap();
    found.results.into_iter().map(|note| note.summary).collect()
}
