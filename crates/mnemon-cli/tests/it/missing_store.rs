//! A command that only reads creates no store: one that was named by mistake is reported, and the
//! usual one is empty until the first write.

use crate::sandbox::Sandbox;

const READING: &[&[&str]] = &[
    &["search", "tea"],
    &["context", "--query", "tea"],
    &["get", "a1"],
    &["list"],
    &["history"],
    &["stats"],
    &["export"],
    &["read", "--user", "ann", "--session", "s1"],
    &["note", "search", "tea"],
    &["note", "get", "a1"],
    &["note", "list"],
    &["note", "stats"],
    &["chat", "list"],
    &["chat", "show", "s1"],
    &["chat", "tail", "s1"],
    &["chat", "events", "s1"],
    &["chat", "query", "tea"],
    &[
        "chat",
        "reload",
        "s1",
        "01890a5d-ac96-774b-bcce-b302099a8057",
    ],
    &["session", "list"],
    &["session", "load", "s1"],
    &["skill", "list"],
    &["skill", "show", "a1"],
    &["skill", "search", "tea"],
    &["skill", "export", "skills"],
    &["experience", "failures"],
    &["experience", "traces"],
    &["learn", "status"],
    &["learn", "dry-run"],
    &["backup", "copy.db"],
];

#[test]
fn reading_from_a_store_that_does_not_exist_is_an_error() {
    let sandbox = Sandbox::new();
    for store in ["sqlite:typo.db", "jsonl:typo"] {
        for command in READING {
            let args = [command, &["--store", store][..]].concat();
            let (code, error) = sandbox.run(&args).failed();
            assert_eq!(code, 3, "{args:?}: {error}");
            assert!(error.contains("there is no store at "), "{args:?}: {error}");
            let left = std::fs::read_dir(sandbox.folder()).unwrap();
            assert_eq!(left.count(), 0, "{args:?} created a file");
        }
    }
    let named = Sandbox::new().with("MNEMON_STORE", "sqlite:typo.db");
    let (code, error) = named.run(&["list"]).failed();
    assert_eq!(code, 3, "{error}");
    assert!(error.contains("hint: "), "{error}");
    named.note("a1", "Ann prefers tea");
    assert!(named.run(&["list"]).ok().contains("a1"));
}

#[test]
fn the_usual_store_is_empty_until_the_first_write() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.run(&["list"]).ok(), "nothing\n");
    sandbox.run(&["search", "tea"]).ok();
    sandbox.run(&["stats"]).ok();
    assert_eq!(std::fs::read_dir(sandbox.folder()).unwrap().count(), 0);
    sandbox.note("a1", "Ann prefers tea");
    assert!(sandbox.run(&["list"]).ok().contains("a1"));
}

#[test]
fn a_backup_that_does_not_exist_is_a_missing_file() {
    let sandbox = Sandbox::new();
    sandbox.note("a1", "Ann prefers tea");
    for args in [
        &["restore", "gone.db", "--check"][..],
        &["restore", "gone.db", "--yes"],
    ] {
        let (code, error) = sandbox.run(args).failed();
        assert_eq!(code, 3, "{error}");
    }
}
