//! Forget, history, undo.

use serde_json::Value;

use crate::sandbox::Sandbox;

fn count(sandbox: &Sandbox) -> u64 {
    let stats = sandbox.run(&["stats", "--json"]).json();
    stats["records"].as_u64().unwrap()
}

#[test]
fn what_was_forgotten_with_its_offspring_comes_back() {
    let sandbox = Sandbox::new();
    sandbox.note("source", "Ann prefers tea");
    let mut args = vec![
        "add",
        "buy tea",
        "--id",
        "child",
        "--derived-from",
        "source",
    ];
    args.extend(["--created", "2026-01-31T13:00:00Z"]);
    sandbox.run(&args).ok();
    let before = sandbox.run(&["list"]).ok();
    let forgotten = sandbox.run(&["forget", "source"]).ok();
    assert_eq!(count(&sandbox), 0);
    let undone = sandbox.run(&["undo"]).ok();
    assert_eq!(sandbox.run(&["list"]).ok(), before);
    let history = sandbox.run(&["history"]).ok();
    insta::assert_snapshot!(sandbox.redact(&format!("{forgotten}\n{undone}\n{history}")));
}

#[test]
fn an_undo_can_be_undone_and_named() {
    let sandbox = Sandbox::new();
    sandbox.note("a", "one");
    sandbox.note("b", "two");
    sandbox.run(&["undo", "--record", "a"]).ok();
    assert_eq!(sandbox.run(&["get", "a"]).code, 3);
    sandbox.run(&["undo"]).ok();
    assert_eq!(sandbox.run(&["get", "a"]).code, 0);
    let undone = sandbox.run(&["undo", "2", "--json"]).json();
    assert_eq!(
        (&undone["undone"], &undone["changes"][0]["id"]),
        (&2.into(), &"b".into())
    );
    assert_eq!(sandbox.run(&["get", "b"]).code, 3);
    let again = sandbox.run(&["undo", "2"]).ok();
    assert!(again.contains("already undone"), "{again}");
    sandbox.note("b", "three");
    let refused = sandbox.run(&["undo", "2"]);
    assert_eq!(refused.code, 4, "{}", refused.err);
}

#[test]
fn there_may_be_nothing_to_undo() {
    let sandbox = Sandbox::new();
    let (code, message) = sandbox.run(&["undo"]).failed();
    assert_eq!(code, 3);
    assert!(message.contains("there is nothing to undo"), "{message}");
    let (code, message) = sandbox.run(&["undo", "7"]).failed();
    assert_eq!(code, 3);
    assert!(message.contains("no commit 7"), "{message}");
    let (code, message) = sandbox.run(&["undo", "--record", "x"]).failed();
    assert_eq!(code, 3);
    assert!(message.contains("record x"), "{message}");
}

#[test]
fn history_shows_before_and_after() {
    let sandbox = Sandbox::new();
    sandbox.note("a", "Ann prefers tea");
    let changed = sandbox.run(&["export"]).ok().replace("tea", "coffee");
    let changed = changed.replace("\"content\"", "\"tags\":[\"drinks\"],\"content\"");
    let file = sandbox.file("changed.jsonl", changed);
    sandbox
        .run(&["import", &file, "--on-conflict", "replace"])
        .ok();
    insta::assert_snapshot!(sandbox.redact(&sandbox.run(&["history", "a"]).ok()));
    let json = sandbox
        .run(&["history", "a", "--commit", "2", "--json"])
        .json();
    let change = &json["changes"][0];
    assert_eq!(change["before"]["content"], "Ann prefers tea");
    assert_eq!(change["after"]["content"], "Ann prefers coffee");
    assert_eq!(change["actor"], "cli:ann");
    let page = sandbox.run(&["history", "--limit", "1", "--json"]).json();
    let next = page["next"].to_string();
    let page = sandbox
        .run(&["history", "--before", &next, "--json"])
        .json();
    assert_eq!(page["changes"][0]["commit"], 1);
    assert_eq!(page["next"], Value::Null);
}

#[test]
fn an_unknown_id_among_others_changes_nothing() {
    let sandbox = Sandbox::new();
    sandbox.note("a1", "one");
    sandbox.note("b1", "two");
    sandbox.run(&["forget", "b1"]).ok();
    let before = sandbox.state();
    for more in [&[][..], &["--purge", "--yes"], &["--json"]] {
        let args = [&["forget", "a1", "nosuch"][..], more].concat();
        let (code, said) = sandbox.run(&args).failed();
        assert_eq!(code, 3, "{said}");
        assert!(said.contains("nosuch") && !said.contains("a1"), "{said}");
        assert_eq!(sandbox.state(), before);
    }
    // A purge also means records that were forgotten earlier.
    sandbox
        .run(&["forget", "a1", "b1", "--purge", "--yes"])
        .ok();
    assert_eq!(sandbox.run(&["export"]).ok(), "");
}

#[test]
fn a_filter_that_means_only_entries_of_files_says_so() {
    let sandbox = Sandbox::new();
    sandbox.run(&["init"]).ok();
    let new = ["agent", "new", "coder", "--description", "Writes the code"];
    sandbox.run(&new).ok();
    let decide = ["agent", "decide", "coder", "Use Redis", "--decision", "d"];
    sandbox.run(&decide).ok();
    sandbox.run(&["agent", "index"]).ok();
    let told = sandbox.run(&["forget", "--kind", "decision"]);
    assert_eq!((told.code, told.out.as_str()), (0, "nothing to forget\n"));
    let said = "not forgotten: 1 entry of agents' files; remove them with `mnemon agent remove`";
    assert!(told.err.contains(said), "{}", told.err);
}

#[test]
fn a_source_must_be_there() {
    let sandbox = Sandbox::new();
    let args = ["add", "buy tea", "--derived-from", "nosuch"];
    let (code, said) = sandbox.run(&args).failed();
    assert_eq!(code, 2, "{said}");
    let expected = "--derived-from: there is no record nosuch";
    assert!(said.contains(expected), "{said}");
    assert_eq!(count(&sandbox), 0);
}

#[test]
fn only_what_cannot_be_undone_is_confirmed() {
    let sandbox = Sandbox::new();
    for (id, session) in [("a", "s1"), ("b", "s1"), ("c", "s2")] {
        sandbox
            .run(&["add", id, "--id", id, "--session", session])
            .ok();
    }
    let shown = sandbox
        .run(&["forget", "--session", "s1", "--dry-run"])
        .ok();
    assert!(shown.starts_with("This would forget 2 records"), "{shown}");
    for purge in [&["--session", "s1"][..], &["a", "b"]] {
        let purge = [&["forget", "--purge"], purge].concat();
        let (code, message) = sandbox.run(&purge).failed();
        assert_eq!(code, 2);
        assert!(
            message.contains("erases 2 records; it cannot be undone. Add --yes"),
            "{message}"
        );
    }
    assert_eq!(count(&sandbox), 3);
    sandbox.run(&["forget", "--session", "s1"]).ok();
    assert_eq!(count(&sandbox), 1);
    sandbox.run(&["undo"]).ok();
    assert_eq!(count(&sandbox), 3);
    let none = sandbox.run(&["forget", "--session", "s9", "--yes"]).ok();
    assert_eq!(none, "nothing to forget\n");
}

#[test]
fn forgetting_everything_by_leaving_something_out_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.note("a", "one");
    for args in [
        vec!["forget"],
        vec!["forget", "--yes"],
        vec!["forget", "a", "--user", "ann"],
    ] {
        let (code, message) = sandbox.run(&args).failed();
        assert_eq!(code, 2, "{message}");
    }
    assert_eq!(count(&sandbox), 1);
}

#[test]
fn more_than_a_page_goes_in_one_commit() {
    let sandbox = Sandbox::new();
    let drafts: String = (0..2300)
        .map(|n| format!("{{\"content\":\"note {n}\",\"owner\":{{\"session\":\"s\"}}}}\n"))
        .collect();
    sandbox.pipe(drafts.as_bytes(), &["add", "--jsonl"]).ok();
    let purge = ["forget", "--session", "s", "--purge"];
    let (_, message) = sandbox.run(&purge).failed();
    assert!(message.contains("more than 1000 records"), "{message}");
    let gone = sandbox.run(&["forget", "--session", "s", "--yes"]).ok();
    assert!(gone.contains("and 2280 more"), "{gone}");
    assert_eq!(count(&sandbox), 0);
    sandbox.run(&["undo"]).ok();
    assert_eq!(count(&sandbox), 2300);
}

#[test]
fn a_purge_leaves_nothing() {
    let sandbox = Sandbox::new().with("MNEMON_STORE", "sqlite:m.db");
    sandbox.note("a", "zanzibar-secret");
    sandbox.run(&["forget", "a"]).ok();
    let purged = sandbox.run(&["forget", "a", "--purge", "--yes"]);
    assert_eq!((purged.code, purged.out.as_str()), (0, "purged a\n"));
    assert_eq!(sandbox.run(&["history"]).ok(), "nothing\n");
    for entry in std::fs::read_dir(sandbox.folder()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("zanzibar"));
    }
}
