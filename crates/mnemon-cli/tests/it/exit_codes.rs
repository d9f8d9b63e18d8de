//! One exit code for each cause, whichever command meets it, and no advice that does not help.

use crate::sandbox::Sandbox;

const INVALID: i32 = 2;
const NOT_FOUND: i32 = 3;
const TOO_LARGE: i32 = 6;

#[test]
fn a_cause_has_one_exit_code() {
    let sandbox = Sandbox::new();
    sandbox.file("large.txt", "a".repeat(11_000_000));
    std::fs::create_dir(sandbox.path("folder")).unwrap();
    sandbox.file("folder/in.txt", "text");
    for (code, command) in [
        (NOT_FOUND, &["add", "--file", "missing"][..]),
        (NOT_FOUND, &["note", "add", "--file", "missing"]),
        (NOT_FOUND, &["--config", "missing", "list"]),
        (NOT_FOUND, &["ingest", "missing"]),
        (NOT_FOUND, &["restore", "missing", "--check"]),
        (NOT_FOUND, &["model", "pull", "minilm", "--from", "missing"]),
        (TOO_LARGE, &["add", "--file", "large.txt"]),
        (TOO_LARGE, &["note", "add", "--file", "large.txt"]),
        (TOO_LARGE, &["ingest", "large.txt"]),
        (INVALID, &["add", "--file", "folder"]),
        (INVALID, &["note", "add", "--file", "folder"]),
    ] {
        let (found, said) = sandbox.run(command).failed();
        assert_eq!(found, code, "{command:?}: {said}");
    }
}

#[test]
fn a_hint_is_given_only_where_it_helps() {
    let sandbox = Sandbox::new();
    for command in [
        &["skill", "show", "missing"][..],
        &["llm", "check"],
        &["model", "pull", "minilm", "--from", "missing"],
        &["add", "--importance", "7", "x"],
    ] {
        let (_, said) = sandbox.run(command).failed();
        assert!(!said.contains("hint:"), "{command:?}: {said}");
    }
    for (command, hint) in [
        (&["get", "missing"][..], "mnemon list"),
        (&["add", "--file", "missing"], "check the path"),
        (&["--config", "missing", "list"], "check the path"),
    ] {
        let (_, said) = sandbox.run(command).failed();
        assert!(said.contains(hint), "{command:?}: {said}");
    }
}

#[test]
fn a_store_that_is_not_there_yet_is_well() {
    let sandbox = Sandbox::new();
    let said = sandbox.run(&["doctor", "--store", "sqlite:notes.db"]).ok();
    assert!(said.contains("MiB free"), "{said}");
}
