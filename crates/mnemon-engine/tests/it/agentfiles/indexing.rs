use mnemon_core::{Filter, Kind};
use mnemon_engine::Query;

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
    let query = Query::new("graceful shutdown of a server");
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
    let texts = |memory: &mnemon_engine::Memory| -> Vec<(String, String)> {
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
    let done = wait(desk.agents.index(&ctx(), &memory)).unwrap();
    assert_eq!((done.written, done.notices.len()), (3, 1));
    assert!(done.notices[0].contains("UTF-8"), "{}", done.notices[0]);
    let filter = Filter {
        kinds: vec![Kind::Decision],
        ..Filter::default()
    };
    let found = wait(
        memory
            .records()
            .list(&ctx(), &mnemon_core::Scan::new(filter, 10)),
    )
    .unwrap();
    assert_eq!(found.records.len(), 2);
}
