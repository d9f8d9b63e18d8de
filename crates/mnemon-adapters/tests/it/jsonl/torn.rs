//! A write that was cut short.

use super::*;

/// A folder with two commits; the second one, of three lines and a receipt, begins at the offset.
fn two_commits(dir: &Path) -> usize {
    let store = open(dir);
    put(&store, "a", "first");
    let start = fs::metadata(log(dir)).unwrap().len();
    let ops = vec![
        Op::put(note("a", "second ✓")),
        Op::put(note("b", "x")),
        Op::delete(id("b")),
    ];
    wait(store.apply(&grant(), Batch::from(ops).with_key(Some(keyed("k"))))).unwrap();
    usize::try_from(start).unwrap()
}

#[test]
fn torn_at_any_byte_the_earlier_commits_are_there() {
    let made = tempfile::tempdir().unwrap();
    let start = two_commits(made.path());
    let whole = fs::read(log(made.path())).unwrap();
    let dir = tempfile::tempdir().unwrap();
    for cut in start..whole.len() {
        fs::write(log(dir.path()), &whole[..cut]).unwrap();
        let store = open(dir.path());
        // Only when the last line break alone is missing is the commit complete.
        let complete = cut == whole.len() - 1;
        let expected = if complete { "second ✓" } else { "first" };
        assert_eq!(content(&store, "a").unwrap(), expected, "cut at {cut}");
        let torn = if complete { 0 } else { cut - start };
        assert_eq!(store.notices().torn_bytes, torn as u64, "cut at {cut}");
        assert_eq!(
            fs::read(log(dir.path())).unwrap(),
            &whole[..cut],
            "only read"
        );

        put(&store, "c", "third");
        assert_eq!(store.notices().cut_bytes, torn as u64);
        let again = open(dir.path());
        assert_eq!(names(&again), ["a", "c"], "cut at {cut}");
        assert_eq!(again.notices(), Default::default(), "cut at {cut}");
        assert_eq!(history(&again, None), history(&store, None));
    }
}

/// The number of a continued commit is an old one, but the torn batch was never acknowledged.
#[test]
fn a_torn_continuation_is_not_there() {
    let made = tempfile::tempdir().unwrap();
    let store = open(made.path());
    let first = apply(
        &store,
        vec![Op::put(note("a", "1")), Op::put(note("b", "1"))],
    );
    put(&store, "c", "1");
    let start = fs::metadata(log(made.path())).unwrap().len() as usize;
    let ops = vec![Op::put(note("a", "2")), Op::put(note("b", "2"))];
    let batch = Batch {
        continues: first.commit,
        ..Batch::from(ops)
    };
    let receipt = wait(store.apply(&grant(), batch)).unwrap();
    assert_eq!(receipt.commit, first.commit);
    let whole = fs::read(log(made.path())).unwrap();
    let dir = tempfile::tempdir().unwrap();
    for cut in start..whole.len() - 1 {
        fs::write(log(dir.path()), &whole[..cut]).unwrap();
        let store = open(dir.path());
        let contents = ["a", "b", "c"].map(|name| content(&store, name).unwrap());
        assert_eq!(contents, ["1"; 3], "cut at {cut}");
        assert_eq!(store.notices().torn_bytes, (cut - start) as u64);
    }
    assert_eq!(content(&open(made.path()), "b").unwrap(), "2");
}

#[test]
fn zeros_after_a_power_cut_are_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    put(&open(dir.path()), "a", "first");
    let mut bytes = fs::read(log(dir.path())).unwrap();
    bytes.extend([0; 4096]);
    fs::write(log(dir.path()), bytes).unwrap();
    let store = open(dir.path());
    assert_eq!(store.notices().torn_bytes, 4096);
    put(&store, "b", "x");
    assert_eq!(names(&open(dir.path())), ["a", "b"]);

    // Even when the very first write got no further than its length.
    let dir = tempfile::tempdir().unwrap();
    fs::write(log(dir.path()), [0; 100]).unwrap();
    put(&open(dir.path()), "a", "x");
    assert_eq!(names(&open(dir.path())), ["a"]);
}

#[test]
fn half_a_commit_in_the_middle_is_skipped_and_reported() {
    let dir = tempfile::tempdir().unwrap();
    let start = two_commits(dir.path());
    let whole = fs::read(log(dir.path())).unwrap();
    // The original knows nothing of commits and appends after a torn one.
    let first_line = start + whole[start..].iter().position(|b| *b == b'\n').unwrap() + 1;
    let mut bytes = whole[..first_line].to_vec();
    let foreign = r#"{"op":"add","entry":{"id":"f","namespace":"short-term","content":"x","summary":"x","tags":[],"createdAt":1,"updatedAt":1},"timestamp":1}"#;
    bytes.extend(foreign.as_bytes());
    bytes.push(b'\n');
    fs::write(log(dir.path()), bytes).unwrap();
    let store = open(dir.path());
    assert_eq!(names(&store), ["a", "f"]);
    assert_eq!(content(&store, "a").unwrap(), "first");
    let notices = store.notices();
    assert_eq!((notices.skipped_total, notices.torn_bytes), (1, 0));
    assert!(notices.skipped[0].why.contains("not complete"));
}

#[test]
fn doctor_finds_and_mends() {
    let dir = tempfile::tempdir().unwrap();
    two_commits(dir.path());
    let mut bytes = b"not a line\n".to_vec();
    bytes.extend(fs::read(log(dir.path())).unwrap());
    bytes.extend(b"{\"op\":\"add\",\"entry\":{\"id\":");
    fs::write(log(dir.path()), &bytes).unwrap();
    fs::write(dir.path().join("memory.jsonl.tmp"), "left").unwrap();

    let findings = crate::kit::examine_jsonl(dir.path());
    let with_repair = findings.iter().filter(|f| f.repair.is_some());
    let seen: Vec<(&str, &str)> = with_repair.map(|f| (&*f.check, f.state())).collect();
    let expected = [
        ("integrity", "WRONG"),
        ("tail", "warning"),
        ("leftovers", "warning"),
    ];
    assert_eq!(seen, expected);
    assert_eq!(fs::read(log(dir.path())).unwrap(), bytes, "only looked");

    let done = crate::kit::repair_jsonl(dir.path()).unwrap();
    assert_eq!(done.len(), 3, "{done:?}");
    let findings = crate::kit::examine_jsonl(dir.path());
    assert!(findings.iter().all(|f| f.ok), "{findings:?}");
    assert!(findings.iter().all(|f| f.repair.is_none()), "{findings:?}");
    assert_eq!(content(&open(dir.path()), "a").unwrap(), "second ✓");
    let bad = fs::read_to_string(dir.path().join("memory.jsonl.bad")).unwrap();
    assert_eq!(bad, "not a line\n");
    assert!(crate::kit::repair_jsonl(dir.path()).unwrap().is_empty());
}
