//! What may be changed, and what a part of an id may mean.

use crate::sandbox::Sandbox;

#[test]
fn an_id_that_a_user_chose_is_never_the_beginning_of_another() {
    let sandbox = Sandbox::new();
    sandbox.note("task-1", "first task");
    sandbox.note("task-10", "tenth task");
    sandbox.note("abcd1", "a name of digits");
    sandbox.note("abcd12", "another name of digits");
    for id in ["task-1", "abcd1"] {
        let forget = ["forget", id, "--purge", "--yes"];
        sandbox.run(&forget).ok();
        for command in [
            &forget[..],
            &["update", id, "meant for another"],
            &["get", id],
        ] {
            let (code, said) = sandbox.run(command).failed();
            assert_eq!(code, 3, "{command:?}: {said}");
        }
    }
    let left = sandbox.run(&["list"]).ok();
    assert!(
        left.contains("tenth task") && left.contains("another name"),
        "{left}"
    );
}

#[test]
fn a_retry_under_a_key_means_the_same_id() {
    let sandbox = Sandbox::new();
    let added = sandbox.run(&["note", "add", "green tea", "--json"]).json();
    let id = added["id"].as_str().unwrap().to_owned();
    for _ in 0..2 {
        sandbox.run(&["forget", &id, "--key", "k"]).ok();
    }
    let (_, said) = sandbox.run(&["forget", &id[..6], "--key", "k2"]).failed();
    assert!(said.contains(&id[..6]), "{said}");
}

#[test]
fn a_note_keeps_the_limits_of_a_new_one() {
    let sandbox = Sandbox::new();
    let added = sandbox.run(&["note", "add", "green tea", "--json"]).json();
    let id = added["id"].as_str().unwrap();
    let long = "x".repeat(200_001);
    let metadata = format!("m={}", "x".repeat(12_000));
    let large = sandbox.pipe(long.as_bytes(), &["note", "edit", id, "-"]);
    let (code, said) = large.failed();
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("200001") && said.contains("200000"), "{said}");
    for (args, words) in [
        (&["--tag", "has space"][..], "not a valid tag"),
        (&["--metadata", &metadata], "10000"),
    ] {
        let edit = [&["note", "edit", id], args].concat();
        let (code, said) = sandbox.run(&edit).failed();
        assert!(code == 2 && said.contains(words), "{said}");
    }
    let shown = sandbox.run(&["note", "get", id, "--content"]).ok();
    assert!(shown.contains("green tea"), "{shown}");
}

#[test]
fn messages_and_entries_of_files_are_changed_where_they_are_made() {
    let sandbox = Sandbox::new();
    sandbox.run(&["init"]).ok();
    sandbox
        .run(&["chat", "append", "s1", "--user", "ann", "two cups"])
        .ok();
    sandbox
        .run(&["agent", "new", "coder", "--description", "Writes code"])
        .ok();
    let decide = [
        "agent",
        "decide",
        "coder",
        "Use channels",
        "--decision",
        "no mutexes",
    ];
    sandbox.run(&decide).ok();
    for (query, remedy) in [
        ("two cups", "of a conversation"),
        ("channels", "agent edit"),
    ] {
        let found = sandbox.run(&["search", query, "--json"]).json();
        let id = found["hits"][0]["record"]["id"].as_str().unwrap();
        let (code, said) = sandbox.run(&["update", id, "--ttl", "1h"]).failed();
        assert!(code == 2 && said.contains(remedy), "{query}: {said}");
        let (code, said) = sandbox.run(&["note", "delete", id]).failed();
        assert_eq!(code, 2, "{query}: {said}");
    }
}

#[test]
fn a_fact_that_a_search_names_can_be_deleted() {
    let sandbox = Sandbox::new();
    let add = [
        "add",
        "--kind",
        "fact",
        "The office is in Hanoi",
        "--id",
        "office",
    ];
    sandbox.run(&add).ok();
    sandbox.run(&["note", "delete", "office"]).ok();
    assert_eq!(sandbox.run(&["get", "office"]).failed().0, 3);
    sandbox.run(&["undo"]).ok();
    sandbox
        .run(&["chat", "append", "s1", "--user", "ann", "two cups"])
        .ok();
    let found = sandbox.run(&["search", "two cups", "--json"]).json();
    let message = found["hits"][0]["record"]["id"].as_str().unwrap();
    let (code, said) = sandbox.run(&["note", "delete", message]).failed();
    assert!(code == 2 && said.contains("conversation"), "{said}");
}

#[test]
fn an_entry_is_removed_by_its_whole_title() {
    let sandbox = Sandbox::new();
    let new = ["agent", "new", "dev", "--description", "Writes code"];
    sandbox.run(&new).ok();
    for title in ["Use Postgres", "Use Postgres 16 for analytics"] {
        let decide = ["agent", "decide", "dev", title, "--decision", "yes"];
        sandbox.run(&decide).ok();
    }
    let remove = ["agent", "remove", "dev", "Use Postgres"];
    sandbox.run(&remove).ok();
    let (code, said) = sandbox.run(&remove).failed();
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("Use Postgres 16 for analytics"), "{said}");
    let shown = sandbox.run(&["agent", "activate", "dev"]).out;
    assert!(shown.contains("Use Postgres 16 for analytics"), "{shown}");
}
