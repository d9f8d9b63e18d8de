//! Backup, restore and repair, as users meet them.

use std::fs;

use crate::sandbox::Sandbox;

#[test]
fn a_backup_is_made_checked_and_restored() {
    for (url, file) in [("sqlite:m.db", "m.db"), ("jsonl:log", "log")] {
        let sandbox = Sandbox::new().with("MNEMON_STORE", url);
        let (code, message) = sandbox.run(&["backup", "copy"]).failed();
        assert_eq!(code, 3);
        assert!(message.contains("no store"), "{message}");
        sandbox.note("a", "Ann prefers tea");
        let made = sandbox.run(&["backup", "copy"]).ok();
        assert_eq!(
            made,
            "wrote 1 record, 0 past versions and 1 tenant to copy\n"
        );
        let (code, message) = sandbox.run(&["backup", "copy"]).failed();
        assert_eq!(code, 2);
        assert!(message.contains("--force"), "{message}");
        sandbox.note("b", "Ann moved to Huế");
        sandbox.run(&["backup", "copy", "--force"]).ok();
        assert_eq!(sandbox.run(&["forget", "a", "--purge", "--yes"]).code, 0);
        let now = sandbox.state();

        let checked = sandbox.run(&["restore", "copy", "--check"]).ok();
        assert_eq!(
            checked,
            "copy is intact: 2 records, 0 past versions and 1 tenant\n"
        );
        let (code, message) = sandbox.run(&["restore", "copy"]).failed();
        assert_eq!(code, 2);
        assert!(message.contains("--yes"), "{message}");
        assert_eq!(sandbox.state(), now);

        let restored = sandbox.run(&["restore", "copy", "--yes", "--json"]).json();
        assert_eq!(restored["restored"], true);
        assert_eq!(restored["records"], 2);
        let kept = restored["kept"].as_str().unwrap();
        assert_eq!(kept, format!("{file}.before-restore"));
        assert_eq!(sandbox.run(&["export"]).ok().lines().count(), 2, "{url}");
        sandbox.run(&["doctor"]).ok();
        let scheme = url.split(':').next().unwrap();
        let kept = format!("{scheme}:{kept}");
        let there = sandbox.run(&["export", "--store", &kept]).ok();
        assert_eq!(there.lines().count(), 1, "{url}");
    }
    let ram = Sandbox::new().with("MNEMON_STORE", "ram:");
    assert_eq!(ram.run(&["backup", "copy"]).code, 12);
}

#[test]
fn a_repair_never_advises_what_was_just_done() {
    let sandbox = Sandbox::new().with("MNEMON_STORE", "sqlite:m.db");
    for number in 0..40 {
        sandbox.note(&format!("n{number}"), &"some text ".repeat(60));
    }
    let whole = fs::read(sandbox.path("m.db")).unwrap();
    // The page of the first records' text: structure and content are both damaged.
    let mut damaged = whole.clone();
    let text = b"some text some text";
    let at = whole.windows(text.len()).position(|w| w == text).unwrap();
    let page = at / 4096 * 4096;
    damaged[page..page + 64].fill(0xff);
    fs::write(sandbox.path("m.db"), &damaged).unwrap();
    let (code, message) = sandbox.run(&["doctor"]).failed();
    assert_eq!(code, 9);
    assert!(message.contains("mnemon doctor --repair"), "{message}");
    let repaired = sandbox.run(&["doctor", "--repair", "--yes"]);
    assert_eq!(repaired.code, 0, "{}{}", repaired.out, repaired.err);
    assert!(repaired.out.contains("m.db.bad"), "{}", repaired.out);
    assert!(sandbox.run(&["doctor"]).ok().contains("m.db.bad"));
    assert!(sandbox.run(&["export"]).ok().lines().count() > 10);

    // Nothing at all can be read here.
    let mut lost = whole;
    lost[4096..].fill(0);
    fs::write(sandbox.path("m.db"), &lost).unwrap();
    let (code, message) = sandbox.run(&["doctor", "--repair", "--yes"]).failed();
    assert_eq!(code, 9);
    assert!(message.contains("mnemon restore"), "{message}");
    assert!(!message.contains("--repair"), "{message}");
    assert_eq!(fs::read(sandbox.path("m.db")).unwrap(), lost);
}

#[test]
fn a_read_only_store_can_be_searched_and_exported() {
    let sandbox = Sandbox::new().with("MNEMON_STORE", "sqlite:m.db");
    sandbox.note("a", "Ann prefers tea");
    let path = sandbox.path("m.db");
    let mut permissions = fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).unwrap();
    for args in [vec!["export"], vec!["search", "tea"], vec!["list"]] {
        let shown = sandbox.run(&args).ok();
        assert!(shown.contains("Ann prefers tea"), "{args:?}: {shown}");
    }
    assert!(sandbox.run(&["get", "a"]).ok().contains("Ann prefers tea"));
    assert!(
        sandbox
            .run(&["doctor"])
            .ok()
            .contains("the file is read-only")
    );
    assert_eq!(sandbox.run(&["add", "x"]).code, 5);
}

#[test]
fn a_missing_folder_is_named_with_what_to_do() {
    let sandbox = Sandbox::new();
    sandbox.note("a", "one");
    let (code, said) = sandbox.run(&["backup", "nowhere/copy.db"]).failed();
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("nowhere does not exist; create this folder first"),
        "{said}"
    );
}
