//! The file format: old files open, newer and foreign ones are refused, nothing is overwritten.

use std::path::{Path, PathBuf};

use mnemon_adapters::Sqlite;
use mnemon_core::{ErrorKind, Store};
use rusqlite::Connection;

use crate::kit::{assert_healthy, everything, grant, wait};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn kind_of_opening(path: &Path) -> (ErrorKind, String) {
    match Sqlite::open(path) {
        Ok(_) => panic!("{} opened", path.display()),
        Err(error) => (error.kind(), error.to_string()),
    }
}

/// A fixture is made by the version that introduced a format and kept for ever.
#[test]
fn files_of_every_version_open_and_are_brought_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    let mut versions = 0;
    for version in 1.. {
        let name = format!("sqlite-v{version}.db");
        let fixture = fixtures().join(&name);
        if !fixture.exists() {
            break;
        }
        versions += 1;
        let path = folder.path().join(&name);
        std::fs::copy(&fixture, &path).unwrap();
        let store = Sqlite::open(&path).unwrap();
        let contents: Vec<String> = everything(&store).into_iter().map(|r| r.content).collect();
        assert_eq!(contents, ["Ann moved to Huế", "Ann prefers tea, no sugar"]);
        let tally = wait(store.tally(&grant())).unwrap();
        assert_eq!((tally.records(), tally.history, tally.seq), (2, 3, 5));
        drop(store);
        assert_healthy(&format!("sqlite:{}", path.display()));
    }
    let raw = Connection::open(folder.path().join("fresh.db")).unwrap();
    drop(raw);
    let fresh = folder.path().join("fresh.db");
    drop(Sqlite::open(&fresh).unwrap());
    let current: i64 = Connection::open(&fresh)
        .unwrap()
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .unwrap();
    assert_eq!(versions, current, "a fixture for every version");
}

/// The bundled SQLite has the fix for the WAL-reset bug, which loses committed transactions.
#[test]
fn sqlite_is_new_enough() {
    assert!(rusqlite::version_number() >= 3_051_003);
}

#[test]
fn a_file_of_a_newer_version_is_refused_and_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("newer.db");
    drop(Sqlite::open(&path).unwrap());
    let raw = Connection::open(&path).unwrap();
    raw.execute_batch("PRAGMA user_version = 99; PRAGMA journal_mode = DELETE;")
        .unwrap();
    drop(raw);
    let before = std::fs::read(&path).unwrap();
    let (kind, text) = kind_of_opening(&path);
    assert_eq!(kind, ErrorKind::TooNew);
    assert!(text.contains("format 99"), "{text}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn what_is_not_ours_is_refused_and_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text.db");
    std::fs::write(&text, "dear diary, this is no database").unwrap();
    let other = folder.path().join("other.db");
    let raw = Connection::open(&other).unwrap();
    raw.execute_batch("CREATE TABLE t (x); PRAGMA user_version = 7;")
        .unwrap();
    drop(raw);
    for path in [text, other] {
        let before = std::fs::read(&path).unwrap();
        let (kind, message) = kind_of_opening(&path);
        assert_eq!(kind, ErrorKind::Foreign, "{message}");
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
    let (kind, message) = kind_of_opening(folder.path());
    assert_eq!(kind, ErrorKind::Foreign);
    assert!(message.contains("it is a folder"), "{message}");
}

#[test]
fn a_wrong_count_is_found_and_mended() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.db");
    std::fs::copy(fixtures().join("sqlite-v1.db"), &path).unwrap();
    let url = format!("sqlite:{}", path.display());
    drop(Sqlite::open(&path).unwrap());
    let raw = Connection::open(&path).unwrap();
    raw.execute_batch("UPDATE tally SET count = count + 1")
        .unwrap();
    drop(raw);
    let examination = mnemon_adapters::examine(&url).unwrap();
    let wrong: Vec<_> = examination.findings.iter().filter(|f| !f.ok).collect();
    assert_eq!(wrong.len(), 1, "{examination:#?}");
    assert_eq!(wrong[0].check, "counts");
    assert!(wrong[0].repair.is_some());
    mnemon_adapters::repair(&url).unwrap();
    assert_healthy(&url);
}
