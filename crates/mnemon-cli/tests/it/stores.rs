//! The command line over every store that keeps something: the list is the adapters' own, so a new
//! store is tried as soon as it is known.

use mnemon_cli::wiring::SCHEMES;

use crate::sandbox::Sandbox;

/// A URL of each known form, in the sandbox's folder.
fn urls() -> Vec<String> {
    let forms = SCHEMES.iter().map(|(form, _)| *form);
    forms
        .filter(|form| form.ends_with("PATH") || form.ends_with("DIR"))
        .map(|form| form.replace("PATH", "store").replace("DIR", "store"))
        .collect()
}

#[test]
fn a_memory_lives_its_life() {
    assert!(!urls().is_empty());
    for url in urls() {
        let sandbox = Sandbox::new().with("MNEMON_STORE", &url);
        sandbox.note("a", "Ann prefers tea");
        let child = ["add", "buy tea", "--id", "b", "--derived-from", "a"];
        sandbox.run(&child).ok();
        let exported = sandbox.run(&["export"]).ok();
        assert_eq!(exported.lines().count(), 2, "{url}");

        sandbox.run(&["forget", "a"]).ok();
        assert_eq!(sandbox.run(&["list"]).ok(), "nothing\n", "{url}");
        sandbox.run(&["undo"]).ok();
        let listed = sandbox.run(&["list", "--json"]).json();
        assert_eq!(listed["records"].as_array().unwrap().len(), 2, "{url}");

        let purged = sandbox.run(&["forget", "a", "--purge", "--yes", "--json"]);
        assert_eq!(purged.code, 0, "{url}: {}", purged.err);
        assert_eq!(sandbox.run(&["history"]).ok(), "nothing\n", "{url}");
        sandbox.pipe(exported.as_bytes(), &["import", "-"]).ok();
        let stats = sandbox.run(&["stats", "--json"]).json();
        assert_eq!(stats["records"], 2, "{url}");
        sandbox.run(&["upkeep"]).ok();
        sandbox.run(&["doctor"]).ok();
    }
}

#[test]
fn what_one_store_exports_another_imports_alike() {
    let first = Sandbox::new();
    first.note("a", "記憶");
    first.note("b", "trí nhớ");
    let lines = first.run(&["export"]).ok();
    for url in urls() {
        let sandbox = Sandbox::new().with("MNEMON_STORE", &url);
        sandbox.pipe(lines.as_bytes(), &["import", "-"]).ok();
        assert_eq!(sandbox.run(&["export"]).ok(), lines, "{url}");
    }
}
