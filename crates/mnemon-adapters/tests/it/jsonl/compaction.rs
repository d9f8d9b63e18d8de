//! Rewriting the log: nothing is lost that should stay, nothing stays that should go.

use super::*;

/// Everything that can be asked about the default tenant's memory.
fn all(store: &Jsonl) -> (Vec<Record>, Vec<mnemon_core::Change>, mnemon_core::Tally) {
    let scan = Scan::new(Filter::all_of_tenant(), 1000);
    let records = wait(store.scan(&grant(), &scan)).unwrap().records;
    let tally = wait(store.tally(&grant())).unwrap();
    (records, history(store, None), tally)
}

/// A memory with replaced versions, deletions, receipts, links and a hole in its numbers.
fn lively(store: &Jsonl) {
    for round in 0..5 {
        for name in ["a", "b", "c"] {
            put(store, name, &format!("{name} {round}"));
        }
    }
    let mut derived = note("d", "from a and b");
    derived.derived_from = vec![id("a"), id("b")];
    let ops = vec![Op::put(derived), Op::put(note("e", "x"))];
    wait(store.apply(&grant(), Batch::from(ops).with_key(Some(keyed("k1"))))).unwrap();
    apply(store, vec![Op::delete(id("b"))]);
    put(store, "last", "purged again");
    apply(store, vec![Op::Purge { id: id("last") }]);
}

fn history_file(dir: &Path) -> PathBuf {
    let name = files(dir)
        .into_iter()
        .find(|name| name.starts_with("history."));
    dir.join(name.unwrap())
}

#[test]
fn keeps_records_history_receipts_and_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    lively(&store);
    let before = all(&store);
    for round in 0..3 {
        store.compact(&Tenant::default()).unwrap();
        assert_eq!(all(&store), before, "round {round}");
        assert_eq!(all(&open(dir.path())), before, "round {round}");
        let ops = lines(dir.path());
        assert_eq!(
            ops.len(),
            1 + before.0.len(),
            "a header and one line a record"
        );
    }
    // A retry is still known as one.
    let retry = Batch::of(Op::put(note("e", "x"))).with_key(Some(keyed("k1")));
    let receipt = wait(open(dir.path()).apply(&grant(), retry)).unwrap();
    assert_eq!(receipt.items.len(), 2, "the first one's receipt");
    // Links of deleted records are still known: purging the source takes them along.
    let receipt = apply(&open(dir.path()), vec![Op::Purge { id: id("b") }]);
    assert_eq!(receipt.cascaded, [id("d")]);
    assert!(history(&open(dir.path()), Some("d")).is_empty());
    // Numbers count on, also those of the two purges.
    let seq = put(&store, "new", "x").commit.unwrap();
    assert_eq!(seq, before.2.seq + 3);
}

#[test]
fn happens_by_itself_when_most_lines_are_dead() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    put(&store, "stays", "x");
    let many = |content: &str| {
        let names = (0..500).map(|n| format!("n{n}"));
        names.map(|name| Op::put(note(&name, content))).collect()
    };
    apply(&store, many("one"));
    apply(&store, many("two"));
    assert_eq!(lines(dir.path()).len(), 1001, "half is not more than half");
    let size = fs::metadata(log(dir.path())).unwrap().len();
    apply(&store, many("three"));
    assert_eq!(lines(dir.path()).len(), 1 + 501, "a header and the records");
    assert!(fs::metadata(log(dir.path())).unwrap().len() < size);
    assert_eq!(content(&open(dir.path()), "n7").unwrap(), "three");
    assert_eq!(history(&open(dir.path()), Some("n7")).len(), 3);
    assert_eq!(store.notices(), Default::default());
}

#[test]
fn a_crash_before_the_rename_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    // The first time there is no header yet, the second time the history is appended to.
    for round in 0..2 {
        lively(&store);
        // Lines of the original have no numbers: they must get the same ones again.
        let foreign = format!(
            r#"{{"op":"add","entry":{{"id":"f","namespace":"short-term","content":"{round}","summary":"","tags":[],"createdAt":1,"updatedAt":1}},"timestamp":1}}"#
        );
        let mut bytes = fs::read(log(dir.path())).unwrap();
        bytes.extend(foreign.as_bytes());
        bytes.push(b'\n');
        fs::write(log(dir.path()), &bytes).unwrap();
        put(&store, "f", "ours");
        let before = all(&store);
        let old = fs::read(log(dir.path())).unwrap();
        store.compact(&Tenant::default()).unwrap();
        let new = fs::read(log(dir.path())).unwrap();
        // As if the power had gone after the history and the next log were written.
        fs::write(log(dir.path()), &old).unwrap();
        fs::write(dir.path().join("memory.jsonl.tmp"), &new).unwrap();
        // It had got further than the next one will.
        let mut history = fs::read(history_file(dir.path())).unwrap();
        history.extend(b"{\"op\":\"add\",\"entry\":{\"id\":\"half");
        fs::write(history_file(dir.path()), history).unwrap();

        let again = open(dir.path());
        assert_eq!(all(&again), before, "round {round}");
        assert!(!files(dir.path()).contains(&"memory.jsonl.tmp".to_owned()));
        again.compact(&Tenant::default()).unwrap();
        assert_eq!(all(&again), before, "round {round}");
        let reopened = open(dir.path());
        assert_eq!(all(&reopened), before, "round {round}");
        assert_eq!(reopened.notices(), Default::default(), "round {round}");
    }
}

#[test]
fn a_purge_leaves_no_byte() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let secret = "the launch code is 0000";
    put(&store, "keep", "harmless");
    put(&store, "s", secret);
    let mut derived = note("s2", &format!("derived: {secret}"));
    derived.derived_from = vec![id("s")];
    apply(&store, vec![Op::put(derived)]);
    apply(&store, vec![Op::delete(id("s2"))]);
    store.compact(&Tenant::default()).unwrap();
    put(&store, "s", &format!("{secret}, really"));
    put(&store, "s", "something else");
    // A copy in a damaged line, one of which has already been moved aside.
    for _ in 0..2 {
        let line = format!(r#"{{"op":"add","entry":{{"id":"s","content":"{secret}" oops}}}}"#);
        let mut bytes = fs::read(log(dir.path())).unwrap();
        bytes.extend(line.as_bytes());
        bytes.extend(b"\nanother bad line\n");
        fs::write(log(dir.path()), bytes).unwrap();
        put(&store, "keep", "harmless");
        store.compact(&Tenant::default()).unwrap();
    }
    assert!(holds(dir.path(), secret));

    let receipt = apply(&store, vec![Op::Purge { id: id("s") }]);
    assert_eq!(receipt.cascaded, [id("s2")]);
    assert!(!holds(dir.path(), secret));
    assert!(
        holds(dir.path(), "another bad line"),
        "that was somebody else's"
    );
    let again = open(dir.path());
    assert_eq!(names(&again), ["keep"]);
    assert!(history(&again, Some("s")).is_empty());
    assert_eq!(history(&again, Some("keep")).len(), 3);
    assert_eq!(all(&again), all(&store));
}

fn holds(dir: &Path, text: &str) -> bool {
    files(dir).iter().any(|name| {
        let bytes = fs::read(dir.join(name)).unwrap();
        bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    })
}

#[test]
fn a_history_that_a_purge_left_behind_is_swept() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    put(&store, "s", "secret");
    put(&store, "s", "other");
    store.compact(&Tenant::default()).unwrap();
    let path = history_file(dir.path());
    let old = fs::read(&path).unwrap();
    apply(&store, vec![Op::Purge { id: id("s") }]);
    assert!(!path.exists());
    // As if the power had gone between the rename and the removal.
    fs::write(&path, old).unwrap();
    drop(store);
    let store = open(dir.path());
    assert!(!path.exists());
    assert!(history(&store, None).is_empty());
}

#[test]
fn what_expired_does_not_come_back_through_the_history() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let mut brief = note("brief", "one");
    brief.expires = Some(now().plus_days(1));
    apply(&store, vec![Op::put(brief.clone())]);
    brief.content = "two".into();
    apply(&store, vec![Op::put(brief)]);
    put(&store, "long", "x");
    store.compact(&Tenant::default()).unwrap();
    assert!(holds(dir.path(), "\"one\""), "it can still be undone");

    let later = Ctx::new(Tenant::default(), "test", now().plus_days(2));
    let later = Policy::default().check(&later, Right::Write).unwrap();
    let done = wait(store.upkeep(&later, 100)).unwrap();
    assert_eq!((done.expired, done.compacted), (1, false));
    for store in [&store, &open(dir.path())] {
        assert_eq!(names(store), ["long"]);
        assert!(history(store, Some("brief")).is_empty());
    }
    store.compact(&Tenant::default()).unwrap();
    assert!(!holds(dir.path(), "brief"));
    assert_eq!(names(&open(dir.path())), ["long"]);
}

#[test]
fn what_expired_in_the_history_goes_for_good() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    for name in ["gone", "again"] {
        let mut brief = note(name, "a secret");
        brief.expires = Some(now().plus_days(1));
        apply(&store, vec![Op::put(brief)]);
        apply(&store, vec![Op::delete(id(name))]);
    }
    put(&store, "again", "x");
    store.compact(&Tenant::default()).unwrap();
    assert!(holds(dir.path(), "a secret"), "it can still be undone");

    let later = Ctx::new(Tenant::default(), "test", now().plus_days(2));
    let later = Policy::default().check(&later, Right::Write).unwrap();
    // The deletion knows when it expires, even where the version before it has gone already.
    for more in [true, true, false] {
        let store = open(dir.path());
        let done = wait(store.upkeep(&later, 1)).unwrap();
        assert_eq!((done.expired, done.more), (1, more));
        store.compact(&Tenant::default()).unwrap();
    }
    let store = open(dir.path());
    assert_eq!(names(&store), ["again"]);
    assert_eq!(history(&store, None).len(), 1);
    assert!(!holds(dir.path(), "a secret"));
    assert!(!holds(dir.path(), "gone"));
}

#[test]
fn upkeep_drops_history_and_receipts_for_good() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    lively(&store);
    store.compact(&Tenant::default()).unwrap();
    lively(&store);
    let policy = Policy {
        history_days: Some(10),
        ..Policy::default()
    };
    let later = Ctx::new(Tenant::default(), "test", now().plus_days(40));
    let later = policy.check(&later, Right::Write).unwrap().accept_clock();
    let history = wait(store.tally(&later)).unwrap().history;
    let done = wait(store.upkeep(&later, 1000)).unwrap();
    let tombstones = 2;
    assert_eq!((done.history, done.receipts), (history + tombstones, 1));
    for _ in 0..2 {
        let again = open(dir.path());
        let tally = wait(again.tally(&later)).unwrap();
        assert_eq!(tally.history, 0);
        assert_eq!(all(&again), all(&store));
        again.compact(&Tenant::default()).unwrap();
    }
    assert!(
        !files(dir.path())
            .iter()
            .any(|name| name.starts_with("history."))
    );
}

#[test]
fn a_damaged_history_is_reported_and_the_rest_used() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    lively(&store);
    store.compact(&Tenant::default()).unwrap();
    drop(store);
    let path = history_file(dir.path());
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("\"op\"", "\"oq\"", 1)).unwrap();
    let store = open(dir.path());
    assert_eq!(store.notices().skipped_total, 1);
    assert_eq!(store.notices().skipped[0].file, path);
    let before = all(&store);
    store.compact(&Tenant::default()).unwrap();
    assert_eq!(all(&open(dir.path())), before);
    let notices = open(dir.path()).notices();
    assert_eq!(notices.skipped_total, 0);
    assert_eq!(notices.set_aside, [dir.path().join("memory.jsonl.bad")]);

    fs::remove_file(history_file(dir.path())).unwrap();
    let store = open(dir.path());
    assert_eq!(store.notices().skipped_total, 1);
    assert_eq!(all(&store).0, before.0, "the records are all there");
}
