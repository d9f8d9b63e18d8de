use std::sync::Arc;

use mnemon_core::ram::Ram;
use mnemon_core::rank::Recipe;
use mnemon_core::{Filter, Ids, Kind};
use mnemon_engine::{Draft, Memory, Query};

use super::super::{all, memory};
use super::*;

#[test]
fn entries_are_found_by_search_with_file_and_heading() {
    let (desk, memory) = (Desk::with_samples(), memory());
    desk.put(
        ".microai/teams/core/team-memory/handoffs.md",
        "# H\n\n## 2025-12-31 10:00: a → b\n\n**Task**: Paint the shed\n",
    );
    let done = wait(desk.agents.index(&ctx(), &memory)).unwrap();
    assert_eq!((done.files, done.written, done.removed), (4, 7, 0));
    let query = Query::new("graceful shutdown of a server", Filter::all_of_tenant());
    let hits = wait(memory.records().search(&ctx(), &query)).unwrap();
    let record = &hits[0].record;
    assert_eq!(record.kind, Kind::Learning);
    assert_eq!(record.owner.agent.as_deref(), Some("coder"));
    assert_eq!(
        record.source.as_deref(),
        Some(".microai/agents/coder/memory/learnings.md#2025-12-31: Graceful HTTP Server Shutdown")
    );
    assert_eq!(record.created.to_string(), "2025-12-31T00:00:00.000Z");
    // Nothing has changed: nothing is read.
    assert_eq!(
        wait(desk.agents.index(&ctx(), &memory)).unwrap(),
        Default::default()
    );
}

#[test]
fn an_archived_session_has_its_own_date() {
    let (desk, memory) = (Desk::with_samples(), memory());
    let page = "# Session\n\nWe fed the walrus.\n";
    desk.put(&format!("{MEMORY}/sessions/2020-05-05.md"), page);
    wait(desk.agents.index(&ctx(), &memory)).unwrap();
    let query = Query::new("walrus", Filter::all_of_tenant());
    let hits = wait(memory.search(&ctx(), &query)).unwrap();
    let record = &hits[0].record;
    assert_eq!(record.created.to_string(), "2020-05-05T00:00:00.000Z");
    let place = format!("{MEMORY}/sessions/2020-05-05.md › Session");
    assert_eq!(record.location(), Some(place));
    assert_eq!(record.own_tags().count(), 0, "{:?}", record.tags);
    let since = Filter {
        since: Some(ctx().now.plus_days(-30)),
        ..Filter::all_of_tenant()
    };
    let hits = wait(memory.search(&ctx(), &Query::new("walrus", since))).unwrap();
    assert_eq!(hits.len(), 0);
}

#[test]
fn a_title_of_stop_words_is_found() {
    let (desk, memory) = (Desk::with_samples(), memory());
    let page = "# Decisions\n\n## 2025-12-30: Same\n\n**Decision**: Keep the driver.\n";
    desk.put(&format!("{MEMORY}/decisions.md"), page);
    wait(desk.agents.index(&ctx(), &memory)).unwrap();
    let found = |text: &str| {
        let query = Query::new(text, Filter::all_of_tenant());
        wait(memory.search(&ctx(), &query)).unwrap().len()
    };
    assert_eq!(
        (found("Same"), found("the"), found("what is it")),
        (1, 0, 0)
    );
}

#[test]
fn an_edit_reads_one_file_and_writes_what_changed() {
    let (desk, memory) = (Desk::with_samples(), memory());
    wait(desk.agents.index(&ctx(), &memory)).unwrap();
    let path = format!("{MEMORY}/decisions.md");
    desk.put(&path, &DECISIONS.replace("pgx driver", "another driver"));
    let done = wait(desk.agents.index(&ctx(), &memory)).unwrap();
    assert_eq!((done.files, done.written, done.removed), (1, 1, 0));
    desk.put(&path, "# Nothing left\n");
    let done = wait(desk.agents.index(&ctx(), &memory)).unwrap();
    assert_eq!((done.files, done.written, done.removed), (1, 0, 2));
    desk.remove(&format!("{MEMORY}/learnings.md"));
    let done = wait(desk.agents.index(&ctx(), &memory)).unwrap();
    assert_eq!((done.files, done.written, done.removed), (0, 0, 3));
    desk.put(&path, DECISIONS);
    assert_eq!(wait(desk.agents.index(&ctx(), &memory)).unwrap().written, 2);
}

#[test]
fn a_lost_index_is_made_again() {
    let (desk, first) = (Desk::with_samples(), memory());
    wait(desk.agents.index(&ctx(), &first)).unwrap();
    let second = memory();
    wait(desk.agents.index(&ctx(), &second)).unwrap();
    let texts = |memory: &Memory| -> Vec<(String, String)> {
        let mut texts: Vec<_> = all(memory)
            .into_iter()
            .map(|record| (record.id.to_string(), record.content))
            .collect();
        texts.sort();
        texts
    };
    assert_eq!(texts(&first), texts(&second));
    assert_eq!(texts(&first).len(), 7);
}

#[test]
fn a_file_that_cannot_be_read_is_named_and_the_others_are_indexed() {
    let (desk, memory) = (Desk::with_samples(), memory());
    let path = format!("{MEMORY}/learnings.md");
    let stamp = wait(desk.files.read(&path)).unwrap().unwrap().stamp;
    wait(desk.files.write(&path, b"\xff\xfe", Some(&stamp))).unwrap();
    let call = ctx();
    let done = wait(desk.agents.index(&call, &memory)).unwrap();
    let notices = call.notices.take();
    assert_eq!((done.written, notices.len()), (3, 1));
    assert!(notices[0].contains("UTF-8"), "{}", notices[0]);
    let filter = Filter {
        kinds: vec![Kind::Decision],
        ..Filter::all_of_tenant()
    };
    let found = wait(
        memory
            .records()
            .list(&ctx(), &mnemon_core::Scan::new(filter, 10)),
    )
    .unwrap();
    assert_eq!(found.records.len(), 2);
}

fn found(memory: &Memory, text: &str) -> Vec<String> {
    let hits = wait(
        memory
            .records()
            .search(&ctx(), &Query::new(text, Filter::all_of_tenant())),
    )
    .unwrap();
    hits.into_iter().map(|hit| hit.record.content).collect()
}

/// One decision of the agent `coder`.
fn decided(desk: &Desk, text: &str) {
    let text = format!("# D\n\n## 2025-12-31: Sessions\n\n{text}\n");
    desk.put(&format!("{MEMORY}/decisions.md"), &text);
}

#[test]
fn two_projects_on_one_store_do_not_meet() {
    let store = Arc::new(Ram::new());
    let memory = |project: &str| {
        let builder = Memory::builder(store.clone(), Ids::new(7));
        builder.project(project).build()
    };
    // Same agent, same title, same size, same time.
    let projects = [("/a", "kept in Redis"), ("/b", "kept in MySQL")];
    let desks = projects.map(|(project, text)| {
        let desk = Desk::empty();
        decided(&desk, text);
        let agents = desk.agents.clone().project(project);
        (agents, memory(project), text)
    });
    for round in 0..3 {
        for (agents, memory, text) in &desks {
            let behind = wait(agents.is_index_behind(&ctx(), memory)).unwrap();
            assert_eq!(behind, round == 0);
            let done = wait(agents.index(&ctx(), memory)).unwrap();
            let expected = if round == 0 { (1, 0) } else { (0, 0) };
            assert_eq!((done.written, done.removed), expected);
            let found = found(memory, "sessions kept");
            assert!(found.len() == 1 && found[0].contains(text), "{found:?}");
        }
    }
    assert!(found(&memory("/c"), "sessions kept").is_empty());
    let everywhere = Memory::builder(store.clone(), Ids::new(7)).build();
    assert_eq!(found(&everywhere, "sessions kept").len(), 2);
}

#[test]
fn many_entries_of_another_project_hide_nothing() {
    let store = Arc::new(Ram::new());
    let memory = |project: &str| {
        let builder = Memory::builder(store.clone(), Ids::new(7));
        builder.project(project).build()
    };
    let desk = Desk::empty();
    let entries = (0..400).map(|n| format!("## 2025-12-31: Tea {n}\n\ntea tea tea {n}\n\n"));
    let text = format!("# D\n\n{}", entries.collect::<String>());
    desk.put(&format!("{MEMORY}/decisions.md"), &text);
    wait(
        desk.agents
            .clone()
            .project("/a")
            .index(&ctx(), &memory("/a")),
    )
    .unwrap();
    let own = memory("/b");
    let note = Draft::note("where the tea of ours is, among many other things that we have");
    wait(own.records().add(&ctx(), vec![note], None)).unwrap();
    for recipe in [
        Recipe::Hybrid,
        Recipe::Words,
        Recipe::Recent,
        Recipe::Formula,
    ] {
        let query = Query {
            recipe,
            limit: 3,
            ..Query::new("tea", Filter::all_of_tenant())
        };
        let hits = wait(own.records().search(&ctx(), &query)).unwrap();
        assert_eq!(hits.len(), 1, "{recipe:?}");
    }
}

#[test]
fn the_books_of_the_index_are_no_hit_and_no_change_of_a_user() {
    let (desk, memory) = (Desk::with_samples(), memory());
    let note = Draft::note("which files below .microai are mine");
    let receipt = wait(memory.records().add(&ctx(), vec![note], None)).unwrap();
    wait(desk.agents.index(&ctx(), &memory)).unwrap();
    let hits = found(&memory, "which files below .microai are indexed");
    assert!(hits.iter().all(|text| !text.is_empty()), "{hits:?}");
    let last = wait(memory.records().last_commit(&ctx(), None)).unwrap();
    assert_eq!(last, receipt.commit);
    let entry = all(&memory)
        .into_iter()
        .find(|record| record.kind == Kind::Decision)
        .unwrap();
    assert_eq!(entry.origin, mnemon_core::Origin::File);
    let touched = wait(memory.records().last_commit(&ctx(), Some(&entry.id))).unwrap();
    assert!(touched > receipt.commit, "a record that was named is meant");
    let untouched = super::super::memory();
    wait(desk.agents.index(&ctx(), &untouched)).unwrap();
    let none = wait(untouched.records().last_commit(&ctx(), None)).unwrap();
    assert_eq!(none, None);
}
