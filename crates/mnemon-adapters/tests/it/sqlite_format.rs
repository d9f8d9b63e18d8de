//! The file format: old files open, newer and foreign ones are refused, nothing is overwritten.

use std::path::{Path, PathBuf};

use mnemon_adapters::Sqlite;
use mnemon_core::index::Terms;
use mnemon_core::{Batch, ErrorKind, Filter, Id, Op, Record, SearchIndex, Store};
use rusqlite::Connection;
use rusqlite::types::ValueRef;

use crate::kit::{assert_default_audiences, assert_healthy, ctx, everything, grant, wait};

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
    if std::env::var_os("UPDATE_FIXTURE").is_some() {
        make_newest_fixture();
    }
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
        assert_default_audiences(&store);
        drop(store);
        assert_healthy(&format!("sqlite:{}", path.display()));
        assert_schema_is_on_first_page(&path);
    }
    let raw = Connection::open(folder.path().join("fresh.db")).unwrap();
    drop(raw);
    let fresh = folder.path().join("fresh.db");
    drop(Sqlite::open(&fresh).unwrap());
    assert_schema_is_on_first_page(&fresh);
    let current: i64 = Connection::open(&fresh)
        .unwrap()
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .unwrap();
    assert_eq!(versions, current, "a fixture for every version");
}

/// Otherwise a repair knows no table when another page of the schema is damaged. The byte after the
/// header tells a table of one page from a larger one.
fn assert_schema_is_on_first_page(path: &Path) {
    let bytes = std::fs::read(path).unwrap();
    assert_eq!(bytes[100], 13, "{}", path.display());
}

/// Makes the fixture of the current version from the one before it. Only while that version is not
/// released.
fn make_newest_fixture() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.db");
    let fixture = |version: i64| fixtures().join(format!("sqlite-v{version}.db"));
    drop(Sqlite::open(&path).unwrap());
    let version = "PRAGMA user_version";
    let raw = Connection::open(&path).unwrap();
    let current: i64 = raw.query_row(version, [], |row| row.get(0)).unwrap();
    drop(raw);
    std::fs::copy(fixture(current - 1), &path).unwrap();
    drop(Sqlite::open(&path).unwrap());
    std::fs::copy(&path, fixture(current)).unwrap();
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

/// A migration writes every row anew, and must not leave the old ones in freed space.
#[test]
fn a_purge_after_a_migration_leaves_no_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("old.db");
    let notes = |what: fn(usize) -> Op| Batch::from((0..400).map(what).collect::<Vec<_>>());
    let put = notes(|n| {
        let text = format!("hunter{n:04} ").repeat(1 + n % 40);
        Op::put(Record::note(id(n), &ctx(), text))
    });
    let store = Sqlite::open(&path).unwrap();
    wait(store.apply(&grant(), put)).unwrap();
    drop(store);
    // As a file of version 4 was, with nothing in its freed space.
    let raw = Connection::open(&path).unwrap();
    raw.execute_batch(
        "DROP INDEX records_kind; DROP INDEX records_agent;
         CREATE INDEX records_created ON records (tenant, created);
         ALTER TABLE records DROP COLUMN audience;
         DROP TABLE removals; DROP INDEX search_embedded; DROP INDEX search_model;
         ALTER TABLE search DROP COLUMN embedded;
         ALTER TABLE records DROP COLUMN sum; ALTER TABLE history DROP COLUMN sum;
         ALTER TABLE history DROP COLUMN replaced_sum; ALTER TABLE search DROP COLUMN sum;
         ALTER TABLE receipts DROP COLUMN sum; ALTER TABLE tenants DROP COLUMN clock_trusted;
         ALTER TABLE tenants DROP COLUMN clock_suspect; PRAGMA user_version = 4; VACUUM;",
    )
    .unwrap();
    drop(raw);
    let store = Sqlite::open(&path).unwrap();
    let purge = notes(|n| Op::Purge { id: id(n) });
    wait(store.apply(&grant(), purge)).unwrap();
    drop(store);
    let bytes = std::fs::read(&path).unwrap();
    let left = bytes.windows(6).filter(|part| part == b"hunter").count();
    assert_eq!(left, 0);
}

fn id(n: usize) -> Id {
    format!("id-{n}").parse().unwrap()
}

/// A trigger in a file that came with a clone could delete or copy what is written.
#[test]
fn a_file_with_triggers_or_views_is_refused() {
    for sql in [
        "CREATE TRIGGER t AFTER INSERT ON records BEGIN DELETE FROM records; END",
        "CREATE VIEW v AS SELECT doc FROM records",
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.db");
        drop(Sqlite::open(&path).unwrap());
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        let (kind, said) = kind_of_opening(&path);
        assert_eq!(kind, ErrorKind::Foreign, "{said}");
        assert!(said.contains("triggers or views"), "{said}");
    }
}

/// Files of format 6 counted speakers in a table; the index knows them now.
#[test]
fn speakers_of_an_older_file_are_known() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.db");
    std::fs::copy(fixtures().join("sqlite-v5.db"), &path).unwrap();
    let raw = Connection::open(&path).unwrap();
    let named = "UPDATE records SET sum = 0,
        doc = json_patch(doc, '{\"metadata\": {\"speaker\": \"Ann Lee\"}}')";
    assert_eq!(raw.execute(named, []).unwrap(), 2);
    raw.execute("DELETE FROM search", []).unwrap();
    drop(raw);
    let store = Sqlite::open(&path).unwrap();
    let tenant = Filter::all_of_tenant();
    let named = wait(store.speakers(&grant(), &tenant, &["ann"])).unwrap();
    assert_eq!(named, ["Ann Lee"]);
}

/// The checksum of a row of `search`, as the file has it.
fn register_sum(raw: &Connection) {
    let flags = rusqlite::functions::FunctionFlags::SQLITE_UTF8;
    let sum = |values: &rusqlite::functions::Context<'_>| {
        let mut sum = crc32fast::Hasher::new();
        for at in 0..values.len() {
            match values.get_raw(at) {
                ValueRef::Null => sum.update(&[0]),
                ValueRef::Integer(number) => {
                    sum.update(&[1]);
                    sum.update(&number.to_le_bytes());
                }
                ValueRef::Real(number) => {
                    sum.update(&[2]);
                    sum.update(&number.to_bits().to_le_bytes());
                }
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                    sum.update(&[3]);
                    sum.update(&(bytes.len() as u64).to_le_bytes());
                    sum.update(bytes);
                }
            }
        }
        Ok(i64::from(sum.finalize()))
    };
    raw.create_scalar_function("sum_of", -1, flags, sum)
        .unwrap();
}

/// Words, model, scale and codes of a row of `search`.
type SearchRow = (Vec<u8>, Option<i64>, Option<f64>, Option<Vec<u8>>);

/// Format 7 analyses all words again. Vectors are expensive, and stay.
#[test]
fn words_of_an_older_file_are_analysed_again_and_vectors_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.db");
    std::fs::copy(fixtures().join("sqlite-v6.db"), &path).unwrap();
    let search = |raw: &Connection| -> Vec<SearchRow> {
        let mut select = raw
            .prepare("SELECT terms, model, scale, codes FROM search ORDER BY key")
            .unwrap();
        let rows = select.query_map([], |row| row.try_into()).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    };
    let raw = Connection::open(&path).unwrap();
    register_sum(&raw);
    raw.execute_batch(
        "INSERT OR IGNORE INTO models (num, name, dimension) VALUES (1, 'm', 2);
         UPDATE search SET terms = x'010000', model = 1, scale = 0.5, codes = x'407f00';
         UPDATE search SET sum = sum_of(key, terms, speaker, tags, model, scale, codes);
         UPDATE search SET sum = sum + 1 WHERE key = (SELECT max(key) FROM search);",
    )
    .unwrap();
    let before = search(&raw);
    drop(raw);
    drop(Sqlite::open(&path).unwrap());
    let raw = Connection::open(&path).unwrap();
    let after = search(&raw);
    let vectors = |rows: &[SearchRow]| {
        let rows = rows.iter();
        rows.map(|row| (row.1, row.2, row.3.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(vectors(&after), vectors(&before));
    let doc = "SELECT doc FROM records ORDER BY key LIMIT 1";
    let doc: String = raw.query_row(doc, [], |row| row.get(0)).unwrap();
    let record: Record = serde_json::from_str(&doc).unwrap();
    assert_eq!(after[0].0, Terms::of(&record).to_bytes());
    assert_eq!(after[1].0, before[1].0, "a damaged row is left to doctor");
    register_sum(&raw);
    let agree = "SELECT count(*) FROM search
        WHERE sum = sum_of(key, terms, speaker, tags, model, scale, codes)";
    let agree: i64 = raw.query_row(agree, [], |row| row.get(0)).unwrap();
    assert_eq!(agree, 1);
}
