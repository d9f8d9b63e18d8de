//! What is wrong is said, and nothing is changed by it.

use mnemon_core::ErrorKind;

use super::sharing::helper;
use super::*;

#[test]
fn a_path_that_is_not_ours_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "x").unwrap();
    assert_eq!(Jsonl::open(&file).unwrap_err().kind(), ErrorKind::Foreign);
    let store = open(&file.join("below"));
    assert!(try_put(&store, "a", "x").is_err());
    assert_eq!(fs::read(&file).unwrap(), b"x");

    fs::create_dir(dir.path().join("memory.jsonl")).unwrap();
    let error = Jsonl::open(dir.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Foreign, "{error}");
}

#[test]
fn a_file_that_is_no_log_is_refused_and_left_alone() {
    for other in [
        &b"\x7fELF\x02\x01"[..],
        b"a,b,c\n1,2,3\n",
        b"{\"a\":1}\n[]\n",
    ] {
        let dir = tempfile::tempdir().unwrap();
        fs::write(log(dir.path()), other).unwrap();
        let error = Jsonl::open(dir.path()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Foreign, "{error}");
        assert_eq!(fs::read(log(dir.path())).unwrap(), other);
    }
}

#[test]
fn a_newer_format_is_refused() {
    let newer = [
        r#"{"op":"add","entry":{"changed":true},"mnemon":{"v":3}}"#,
        r#"{"op":"embrace","mnemon":{"v":3,"part":"all"}}"#,
    ];
    for line in newer {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path());
        put(&store, "a", "x");
        let mut bytes = fs::read(log(dir.path())).unwrap();
        bytes.extend(line.as_bytes());
        bytes.push(b'\n');
        fs::write(log(dir.path()), &bytes).unwrap();
        let error = Jsonl::open(dir.path()).unwrap_err();
        assert!(
            matches!(
                error,
                StoreError::TooNew {
                    found: 3,
                    known: 2,
                    ..
                }
            ),
            "{error}"
        );
        // The same for a handle that was open already: it must not write on.
        assert_eq!(
            try_put(&store, "b", "x").unwrap_err().kind(),
            ErrorKind::TooNew
        );
        assert_eq!(fs::read(log(dir.path())).unwrap(), bytes);
    }
}

#[test]
fn what_an_older_program_would_misread_has_the_newer_format() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let first = put(&store, "plain", "x");
    let continued = Batch {
        continues: first.commit,
        ..Batch::from(vec![Op::put(note("continued", "x"))])
    };
    wait(store.apply(&grant(), continued)).unwrap();
    let audience = Some("user:ann".parse().unwrap());
    let shared = Record {
        audience,
        ..note("shared", "x")
    };
    apply(&store, vec![Op::put(shared)]);
    let formats = || {
        let text = fs::read_to_string(log(dir.path())).unwrap();
        let version = |line: &str| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            line["mnemon"]["v"].as_i64().unwrap()
        };
        text.lines().map(version).collect::<Vec<_>>()
    };
    assert_eq!(formats(), [1, 2, 2]);
    // A rewrite needs no numbers of batches, but audiences.
    apply(&store, vec![Op::Purge { id: id("plain") }]);
    assert_eq!(formats(), [1, 1, 2], "header, continued, shared");
}

#[test]
fn a_full_device_is_said_to_be_full() {
    let dir = tempfile::tempdir().unwrap();
    if !Path::new("/dev/full").exists() {
        println!("skipped: there is no /dev/full here");
        return;
    }
    std::os::unix::fs::symlink("/dev/full", log(dir.path())).unwrap();
    let store = open(dir.path());
    let error = try_put(&store, "a", "x").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Full, "{error}");
    assert!(names(&store).is_empty());
    // A rewrite would replace the link.
    assert!(store.compact(&Tenant::default()).is_err());
    assert!(fs::symlink_metadata(log(dir.path())).unwrap().is_symlink());
}

#[test]
fn when_there_is_no_room_the_memory_is_as_before() {
    let dir = tempfile::tempdir().unwrap();
    // Files of this process end at 64 blocks; it gets an error instead of a signal.
    let limit = "trap '' XFSZ; ulimit -f 64;";
    let status = helper("errors::a_cramped_process", dir.path(), limit).status();
    assert!(status.unwrap().success());
    let store = open(dir.path());
    assert_eq!(names(&store), ["a", "b"]);
    assert_eq!(store.notices(), Default::default());
}

#[test]
fn a_cramped_process() {
    let Ok(dir) = std::env::var("MNEMON_TEST_DIR") else {
        return;
    };
    let dir = Path::new(&dir);
    let store = open(dir);
    put(&store, "a", "x");
    let before = fs::read(log(dir)).unwrap();
    let ops = vec![
        Op::put(note("a", "changed")),
        Op::put(note("big", &"0123456789".repeat(20_000))),
    ];
    let batch = Batch::from(ops).with_key(Some(keyed("k")));
    for _ in 0..2 {
        let error = wait(store.apply(&grant(), batch.clone())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Full, "{error}");
        assert_eq!(content(&store, "a").unwrap(), "x");
        assert!(get(&store, "big").is_none());
        assert_eq!(wait(store.tally(&grant())).unwrap().seq, 1);
        assert_eq!(
            fs::read(log(dir)).unwrap(),
            before,
            "what was written is cut off"
        );
    }
    put(&store, "b", "fits");
}

#[test]
fn a_read_only_folder_can_be_read() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    put(&open(dir.path()), "a", "x");
    let allow = |mode| {
        for name in files(dir.path()) {
            let path = dir.path().join(name);
            fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o666)).unwrap();
        }
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).unwrap();
    };
    allow(0o555);
    if fs::OpenOptions::new()
        .append(true)
        .open(log(dir.path()))
        .is_ok()
    {
        println!("skipped: this user may write everywhere");
        return;
    }
    let store = open(dir.path());
    assert_eq!(content(&store, "a").unwrap(), "x");
    let error = try_put(&store, "b", "x").unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
    assert_eq!(names(&store), ["a"]);
    allow(0o755);
}

#[test]
fn lines_that_only_look_like_ours_are_skipped() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    put(&store, "a", "x");
    let stamp = r#""mnemon":{"v":1,"commit":9,"seq":9,"actor":"t","cause":"written","part":"#;
    let entry = r#""entry":{"id":"b","namespace":"long-term","content":"x","summary":"x","tags":[],"createdAt":1,"updatedAt":1}"#;
    let odd = [
        format!(r#"{{"op":"add",{entry},"timestamp":1,{stamp}[1,1]}}}}"#),
        format!(r#"{{"op":"add",{entry},"timestamp":1,{stamp}[0,0]}}}}"#),
        format!(r#"{{"op":"delete","id":"a","timestamp":1,{stamp}[3,2]}}}}"#),
        format!(r#"{{"op":"delete","id":"a","timestamp":1e300,{stamp}[1,1]}}}}"#),
        format!(r#"{{"op":"explode","id":"a","timestamp":1,{stamp}[1,1]}}}}"#),
        r#"{"op":"delete","id":"a","timestamp":1,"mnemon":{"v":1,"seq":18446744073709551615,"commit":1,"actor":"t","cause":"forgotten"}}"#.to_owned(),
        r#"{"op":"header","mnemon":{"v":1},"header":{"generation":1,"last_seq":5}}"#.to_owned(),
        format!(r#"{{"op":"add","x":{}1{}}}"#, "[".repeat(200), "]".repeat(200)),
        "\u{0}\u{0}".to_owned(),
    ];
    let mut bytes = fs::read(log(dir.path())).unwrap();
    bytes.extend(odd.join("\n").as_bytes());
    bytes.push(b'\n');
    fs::write(log(dir.path()), bytes).unwrap();
    for store in [&store, &open(dir.path())] {
        assert_eq!(names(store), ["a"]);
        assert_eq!(store.notices().skipped_total, odd.len() as u64);
    }
    put(&store, "c", "x");
    assert_eq!(names(&open(dir.path())), ["a", "c"]);
}
