//! What every [`Files`] and every [`Log`] must do, whatever is behind it.

use mnemon_core::ErrorKind;
use mnemon_core::files::{Files, FilesError, Listed};
use mnemon_core::log::Log;

/// The whole contract of files, on an empty root.
pub async fn check_files(files: &dyn Files) {
    replaced_only_if_unchanged(files).await;
    removed_only_if_unchanged(files).await;
    listed_and_watched(files).await;
    kept_inside(files).await;
}

async fn replaced_only_if_unchanged(files: &dyn Files) {
    assert_eq!(files.read("a/b.md").await.unwrap(), None);
    let first = files.write("a/b.md", b"one", None).await.unwrap();
    let again = files.write("a/b.md", b"two", None).await.unwrap_err();
    assert!(matches!(again, FilesError::Conflict { .. }), "{again}");
    let second = files.write("a/b.md", b"two", Some(&first)).await.unwrap();
    let stale = files.write("a/b.md", b"three", Some(&first)).await;
    assert_eq!(stale.unwrap_err().kind(), ErrorKind::Conflict);
    let gone = files.write("a/c.md", b"x", Some(&first)).await;
    assert_eq!(gone.unwrap_err().kind(), ErrorKind::Conflict);
    let file = files.read("a/b.md").await.unwrap().unwrap();
    assert_eq!((file.bytes.as_slice(), file.stamp), (&b"two"[..], second));
    assert_eq!(files.read("a").await.unwrap(), None, "a folder is no file");
    assert_eq!(files.read("a/b.md/c").await.unwrap(), None);
}

async fn removed_only_if_unchanged(files: &dyn Files) {
    let stale = files.write("gone/x", b"1", None).await.unwrap();
    let stamp = files.write("gone/x", b"2", Some(&stale)).await.unwrap();
    let refused = files.remove("gone/x", &stale).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    files.remove("gone/x", &stamp).await.unwrap();
    assert_eq!(files.read("gone/x").await.unwrap(), None);
    assert!(files.list("gone").await.unwrap().is_empty());
    let again = files.remove("gone/x", &stamp).await.unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Conflict);
}

async fn listed_and_watched(files: &dyn Files) {
    for path in ["w/b.md", "w/a/z.md", "w/a/b/c.md", "w/ab/d.md"] {
        files.write(path, b"x", None).await.unwrap();
    }
    let paths = |listed: &[Listed]| -> Vec<String> {
        listed.iter().map(|file| file.path.clone()).collect()
    };
    let known = files.list("w/a").await.unwrap();
    assert_eq!(paths(&known), ["w/a/b/c.md", "w/a/z.md"]);
    assert_eq!(files.list("w").await.unwrap().len(), 4);
    assert!(files.list("none").await.unwrap().is_empty());
    assert!(files.changed("w/a", &known).await.unwrap().is_empty());
    let stamp = files.read("w/a/z.md").await.unwrap().unwrap().stamp;
    files.write("w/a/z.md", b"xy", Some(&stamp)).await.unwrap();
    files.write("w/a/new.md", b"x", None).await.unwrap();
    let changed = files.changed("w/a", &known).await.unwrap();
    assert_eq!(changed, ["w/a/new.md", "w/a/z.md"]);
}

async fn kept_inside(files: &dyn Files) {
    let long = "x".repeat(256);
    for path in [
        "../x",
        "/x",
        "a/../../x",
        "",
        "a//b",
        "a\\b",
        ".",
        "a/.",
        "a\0b",
        "a\nb",
        &long,
    ] {
        let error = files.write(path, b"x", None).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{path:?}");
        let error = files.read(path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{path:?}");
    }
    for folder in ["..", "/", "a/../.."] {
        let error = files.list(folder).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{folder}");
    }
}

/// The whole contract of logs, on an empty root.
pub async fn check_log(log: &(impl Log + Files)) {
    assert_eq!(log.read_before("l/x.jsonl", None, 10).await.unwrap(), None);
    assert_eq!(log.append("l/x.jsonl", b"one\n").await.unwrap(), 4);
    assert_eq!(log.append("l/x.jsonl", b"two\nthree\n").await.unwrap(), 14);
    let piece = log
        .read_before("l/x.jsonl", None, 6)
        .await
        .unwrap()
        .unwrap();
    assert_eq!((piece.start, piece.bytes.as_slice()), (8, &b"three\n"[..]));
    let piece = log.read_before("l/x.jsonl", Some(8), 100).await.unwrap();
    let piece = piece.unwrap();
    assert_eq!(
        (piece.start, piece.bytes.as_slice()),
        (0, &b"one\ntwo\n"[..])
    );
    log.write("l/torn.jsonl", b"{\"half\":", None)
        .await
        .unwrap();
    log.append("l/torn.jsonl", b"{}\n").await.unwrap();
    let whole = log.read("l/torn.jsonl").await.unwrap().unwrap();
    assert_eq!(whole.bytes, b"{\"half\":\n{}\n");
    for path in ["../x", "/x", "", "a/.."] {
        let error = log.append(path, b"x\n").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{path}");
        let error = log.erase(path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{path}");
    }
    assert!(log.erase("l/x.jsonl").await.unwrap());
    assert!(!log.erase("l/x.jsonl").await.unwrap());
    assert_eq!(log.read_before("l/x.jsonl", None, 10).await.unwrap(), None);
    assert_eq!(log.append("l/x.jsonl", b"anew\n").await.unwrap(), 5);
}
