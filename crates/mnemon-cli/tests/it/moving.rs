//! Export, import, and many drafts at once.

use crate::sandbox::Sandbox;

#[test]
fn an_export_can_be_imported_elsewhere() {
    let sandbox = Sandbox::new();
    sandbox.note("a", "Ann prefers tea");
    sandbox.note("b", "記憶");
    let exported = sandbox.run(&["export"]).ok();
    let wrote = sandbox.run(&["export", "all.jsonl"]).ok();
    assert_eq!(wrote, "wrote 2 records to all.jsonl\n");
    assert_eq!(
        std::fs::read_to_string(sandbox.path("all.jsonl")).unwrap(),
        exported
    );

    let other = Sandbox::new();
    let read = other.pipe(exported.as_bytes(), &["import", "-"]).ok();
    assert_eq!(read, "read 2 records: 2 stored\nundo with: mnemon undo 1\n");
    assert_eq!(other.run(&["export"]).ok(), exported);
    let again = other.pipe(exported.as_bytes(), &["import", "-"]).ok();
    assert_eq!(again, "read 2 records: 0 stored; 2 already there\n");
}

#[test]
fn an_export_does_not_write_over_a_file_unless_told() {
    let sandbox = Sandbox::new();
    sandbox.note("a", "one");
    sandbox.file("out.jsonl", "precious");
    let (code, message) = sandbox.run(&["export", "out.jsonl"]).failed();
    assert_eq!(code, 2);
    assert!(message.contains("--force"), "{message}");
    assert_eq!(
        std::fs::read_to_string(sandbox.path("out.jsonl")).unwrap(),
        "precious"
    );
    sandbox.run(&["export", "out.jsonl", "--force"]).ok();
    let (code, message) = sandbox.run(&["export", "nowhere/out.jsonl"]).failed();
    assert_eq!(code, 3, "{message}");
}

#[test]
fn a_taken_id_is_a_matter_of_choice() {
    let sandbox = Sandbox::new();
    sandbox.note("a", "old");
    let mut lines = sandbox.run(&["export"]).ok().replace("old", "new");
    lines.push_str(&lines.replace("\"a\"", "\"b\""));
    let file = sandbox.file("in.jsonl", lines);
    let before = sandbox.state();
    let (code, message) = sandbox.run(&["import", &file]).failed();
    assert_eq!(code, 4);
    assert!(
        message.contains("line 1 (nothing was written)"),
        "{message}"
    );
    assert_eq!(sandbox.state(), before);

    let skipped = sandbox
        .run(&["import", &file, "--on-conflict", "skip", "--json"])
        .json();
    assert_eq!(
        (&skipped["skipped"], &skipped["stored"]),
        (&1.into(), &1.into())
    );
    assert!(sandbox.run(&["get", "a"]).ok().contains("old"));
    let replaced = sandbox
        .run(&["import", &file, "--on-conflict", "replace", "--json"])
        .json();
    assert_eq!(
        (&replaced["replaced"], &replaced["duplicate"]),
        (&1.into(), &1.into())
    );
    assert!(sandbox.run(&["get", "a"]).ok().contains("new"));
}

#[test]
fn an_id_may_come_twice_in_one_file() {
    let sandbox = Sandbox::new();
    sandbox.note("a", "first");
    let line = sandbox.run(&["export"]).ok();
    let both = format!("{line}{}", line.replace("first", "second"));
    let other = Sandbox::new();
    let args = ["import", "-", "--on-conflict", "replace", "--json"];
    let done = other.pipe(both.as_bytes(), &args).json();
    assert_eq!((&done["stored"], &done["replaced"]), (&1.into(), &1.into()));
    assert!(other.run(&["get", "a"]).ok().contains("second"));
}

#[test]
fn a_mistake_on_the_last_line_leaves_the_store_as_it_was() {
    let sandbox = Sandbox::new();
    sandbox.note("a", "one");
    let good = sandbox.run(&["export"]).ok();
    let mut lines: String = (0..2500)
        .map(|n| good.replace("\"a\"", &format!("\"n{n}\"")))
        .collect();
    lines.push_str("\n{\"content\":\"no id\"}\n");
    let before = sandbox.state();
    let (code, message) = sandbox.pipe(lines.as_bytes(), &["import", "-"]).failed();
    assert_eq!(code, 2);
    assert!(
        message.contains("stdin, line 2502 (nothing was written)"),
        "{message}"
    );
    assert_eq!(sandbox.state(), before);
}

#[test]
fn many_drafts_come_in_batches_with_receipts() {
    let sandbox = Sandbox::new();
    let drafts: String = (0..2500)
        .map(|n| format!("{{\"content\":\"note {n}\"}}\n"))
        .collect();
    let add = || {
        let args = ["add", "--jsonl", "--json", "--key", "load"];
        sandbox.pipe(drafts.as_bytes(), &args).ok()
    };
    let receipts = add();
    let sizes: Vec<usize> = receipts
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|receipt| receipt["items"].as_array().unwrap().len())
        .collect();
    assert_eq!(sizes, [1000, 1000, 500]);
    assert_eq!(add(), receipts, "a retry under the same key");
    assert_eq!(sandbox.run(&["stats", "--json"]).json()["records"], 2500);
}

#[test]
fn drafts_with_a_taken_id_are_refused_by_line() {
    let sandbox = Sandbox::new();
    sandbox.note("a", "one");
    let before = sandbox.state();
    let drafts = b"{\"content\":\"x\"}\n{\"content\":\"y\",\"id\":\"a\"}\n";
    let (code, message) = sandbox.pipe(drafts, &["add", "--jsonl"]).failed();
    assert_eq!(code, 4);
    assert!(
        message.contains("line 2 (nothing was written)"),
        "{message}"
    );
    assert_eq!(sandbox.state(), before);
}
