//! Damage to the bytes of a file: every flipped bit of a record is found, and a repair keeps all
//! that could still be read.

use std::collections::BTreeMap;
use std::path::Path;

use mnemon_adapters::{Finding, Sqlite};
use mnemon_core::{Batch, Changes, ErrorKind, Id, IdempotencyKey, Op, Record, Store};
use rusqlite::Connection;

use crate::kit::{assert_healthy, ctx, everything, grant, rounds, wait};

fn url(path: &Path) -> String {
    format!("sqlite:{}", path.display())
}

fn wrong(path: &Path) -> Vec<Finding> {
    let examination = mnemon_adapters::examine(&url(path)).unwrap();
    let findings = examination.findings.into_iter();
    findings.filter(|finding| !finding.ok).collect()
}

/// A closed store of so many records; some were updated and some deleted.
fn fill(path: &Path, records: usize) -> Vec<Record> {
    let store = Sqlite::open(path).unwrap();
    for number in 0..records {
        let id: Id = format!("record-{number:04}").parse().unwrap();
        let text = format!("text of record {number} ").repeat(1 + number % 40);
        let mut record = Record::note(id, &ctx(), text);
        record.owner.user = Some(format!("user-{}", number % 7));
        record.owner.session = (number % 3 == 0).then(|| "a-session".to_owned());
        record.owner.agent = (number % 5 == 0).then(|| "an-agent".to_owned());
        record.importance = f64::from(u8::try_from(number % 10).unwrap()) / 10.0;
        record.expires = (number % 4 == 0).then(|| ctx().now.plus_days(9));
        record.tags = vec![format!("tag-{}", number % 11)];
        if number % 10 == 9 {
            let source = format!("record-{:04}", number - 1);
            record.derived_from = vec![source.parse().unwrap()];
        }
        let op = Op::put(record.clone());
        wait(store.apply(&grant(), Batch::of(op))).unwrap();
        if number % 6 == 0 {
            record.content.push_str("and more");
            wait(store.apply(&grant(), Batch::of(Op::put(record)))).unwrap();
        }
        if number % 25 == 24 {
            let id = format!("record-{:04}", number - 2).parse().unwrap();
            wait(store.apply(&grant(), Batch::of(Op::delete(id)))).unwrap();
        }
    }
    everything(&store)
}

#[test]
fn a_flipped_bit_in_a_text_is_found_refused_and_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.db");
    let before = fill(&path, 60);
    let mut bytes = std::fs::read(&path).unwrap();
    let text = b"text of record 17 text";
    let places: Vec<usize> = bytes
        .windows(text.len())
        .enumerate()
        .filter_map(|(at, window)| (window == text).then_some(at))
        .collect();
    bytes[places[0] + 3] ^= 4;
    std::fs::write(&path, bytes).unwrap();

    let found = wrong(&path);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].check, "checksums");
    assert!(
        found[0].detail.contains("record-0017"),
        "{}",
        found[0].detail
    );
    let store = Sqlite::open(&path).unwrap();
    let damaged: Id = "record-0017".parse().unwrap();
    let error = wait(store.get(&grant(), std::slice::from_ref(&damaged))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("record-0017"), "{error}");
    let whole: Id = "record-0016".parse().unwrap();
    assert!(wait(store.get(&grant(), &[whole])).unwrap()[0].is_some());
    drop(store);

    let done = mnemon_adapters::repair(&url(&path)).unwrap();
    assert!(
        done.iter().any(|said| said.contains("record-0017")),
        "{done:?}"
    );
    assert_healthy(&url(&path));
    let expected: Vec<Record> = before.into_iter().filter(|r| r.id != damaged).collect();
    assert_eq!(everything(&Sqlite::open(&path).unwrap()), expected);
    // The damaged file is kept, and told of until somebody removes it.
    let bad = folder.path().join("m.db.bad");
    let told = |path: &Path| {
        let examination = mnemon_adapters::examine(&url(path)).unwrap();
        let findings = examination.findings.into_iter();
        findings
            .filter(|finding| finding.check == "set aside")
            .count()
    };
    assert!(bad.exists());
    assert_eq!(told(&path), 1);
    std::fs::remove_file(bad).unwrap();
    assert_eq!(told(&path), 0);
}

/// Whatever column of a record or of its past is changed without its checksum, it is found.
#[test]
fn a_change_of_any_column_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().join("base.db");
    fill(&base, 60);
    let path = folder.path().join("m.db");
    for table in ["records", "history", "search", "receipts"] {
        let raw = Connection::open(&base).unwrap();
        let mut columns = raw
            .prepare(&format!("SELECT name FROM pragma_table_info('{table}')"))
            .unwrap();
        let columns: Vec<String> = columns
            .query_map([], |row| row.get(0))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        // When a vector came is no part of what it is.
        for column in columns.iter().filter(|name| *name != "embedded") {
            std::fs::copy(&base, &path).unwrap();
            let raw = Connection::open(&path).unwrap();
            let changed = raw
                .execute(
                    &format!(
                        "UPDATE {table} SET {column} = CASE typeof({column})
                            WHEN 'text' THEN 'x' || substr({column}, 2)
                            WHEN 'blob' THEN zeroblob(length({column}))
                            WHEN 'null' THEN 'x' ELSE {column} + 0.125 * 8 END
                         WHERE rowid = (SELECT max(rowid) FROM {table})"
                    ),
                    [],
                )
                .unwrap_or(0);
            drop(raw);
            if changed > 0 {
                assert!(!wrong(&path).is_empty(), "{table}.{column}");
                mnemon_adapters::repair(&url(&path)).unwrap();
                let found = wrong(&path);
                assert!(found.is_empty(), "{table}.{column}: {found:#?}");
            }
        }
    }
}

#[test]
fn lost_links_are_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.db");
    fill(&path, 60);
    let raw = Connection::open(&path).unwrap();
    raw.execute_batch("UPDATE links SET source = 'x' || source WHERE derived = 'record-0019'")
        .unwrap();
    drop(raw);
    assert_eq!(wrong(&path)[0].check, "links");
    mnemon_adapters::repair(&url(&path)).unwrap();
    assert_healthy(&url(&path));
}

/// What of the records can still be read, one by one.
fn readable(path: &Path, before: &[Record]) -> BTreeMap<Id, Record> {
    let Ok(store) = Sqlite::open(path) else {
        return BTreeMap::new();
    };
    let mut found = BTreeMap::new();
    for record in before {
        let got = wait(store.get(&grant(), std::slice::from_ref(&record.id)));
        if let Ok(got) = got
            && let Some(record) = got.into_iter().flatten().next()
        {
            found.insert(record.id.clone(), record);
        }
    }
    found
}

/// Damages a closed file in one of several ways.
fn damage(path: &Path, random: &mut fastrand::Rng) -> String {
    let mut bytes = std::fs::read(path).unwrap();
    let pages = bytes.len() / 4096;
    // Page 1 has the header and the schema, without which there is nothing to be read at all.
    let page = random.usize(1..pages);
    let kind = random.u8(0..4);
    match kind {
        0 => {
            let at = page * 4096 + random.usize(0..4096);
            bytes[at] ^= 1 << random.u8(0..8);
        }
        1 => bytes[page * 4096..(page + 1) * 4096].fill(0),
        2 => {
            for _ in 0..50 {
                let at = random.usize(4096..bytes.len());
                bytes[at] = random.u8(..);
            }
        }
        _ => bytes[page * 4096..page * 4096 + 12].fill_with(|| random.u8(..)),
    }
    std::fs::write(path, bytes).unwrap();
    format!("kind {kind}, page {page} of {pages}")
}

#[test]
fn a_repair_keeps_all_that_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().join("base.db");
    let before = fill(&base, 400);
    let (mut harmed, mut kept_some) = (0, 0);
    for seed in 0..u64::from(rounds(300, 48)) {
        let path = folder.path().join(format!("{seed}.db"));
        std::fs::copy(&base, &path).unwrap();
        let mut random = fastrand::Rng::with_seed(seed);
        let how = damage(&path, &mut random);
        let could = readable(&path, &before);
        if wrong(&path).is_empty() {
            continue;
        }
        harmed += 1;
        let done = mnemon_adapters::repair(&url(&path));
        let Ok(done) = done else {
            assert!(could.is_empty(), "seed {seed}, {how}: {done:?}");
            continue;
        };
        let found = wrong(&path);
        assert!(found.is_empty(), "seed {seed}, {how}: {found:#?} {done:?}");
        let store = Sqlite::open(&path).unwrap();
        let after = readable(&path, &before);
        for (id, record) in &could {
            assert_eq!(after.get(id), Some(record), "seed {seed}, {how}, {id}");
        }
        kept_some += usize::from(!after.is_empty());
        // It is a store like any other again.
        let new = Record::note("new".parse().unwrap(), &ctx(), "new");
        wait(store.apply(&grant(), Batch::of(Op::put(new)))).unwrap();
        let changes = Changes {
            limit: 1000,
            ..Changes::all_of_tenant(0)
        };
        assert!(!wait(store.changes(&grant(), &changes)).unwrap().is_empty());
    }
    assert!(harmed >= 30 && kept_some >= 30, "{harmed}, {kept_some}");
}

/// A process of an earlier version that was running during the migration writes no checksums.
#[test]
fn rows_without_a_checksum_are_read_and_kept_by_a_repair() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.db");
    let before = fill(&path, 60);
    let raw = Connection::open(&path).unwrap();
    raw.execute_batch("UPDATE records SET sum = 0; UPDATE history SET sum = 0, replaced_sum = 0")
        .unwrap();
    drop(raw);
    let could = readable(&path, &before);
    assert!(!could.is_empty());
    assert!(wrong(&path).is_empty(), "{:?}", wrong(&path));
    // A repair of something else loses none of them.
    let raw = Connection::open(&path).unwrap();
    raw.execute_batch("UPDATE records SET sum = 1 WHERE id = 'record-0010'")
        .unwrap();
    drop(raw);
    mnemon_adapters::repair(&url(&path)).unwrap();
    let after = readable(&path, &before);
    for (id, record) in could.iter().filter(|(id, _)| id.as_str() != "record-0010") {
        assert_eq!(after.get(id), Some(record), "{id}");
    }
}

/// Batches that come at once share a transaction: damage is the trouble of those that meet it.
#[test]
fn a_damaged_receipt_fails_only_the_batches_that_need_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.db");
    let store = Sqlite::open(&path).unwrap();
    let put = |name: String, is_keyed: bool| {
        let record = Record::note(name.parse().unwrap(), &ctx(), "text");
        let key = is_keyed.then(|| IdempotencyKey {
            name: "key".to_owned(),
            digest: "intent".to_owned(),
        });
        wait(store.apply(&grant(), Batch::of(Op::put(record)).with_key(key)))
    };
    put("first".to_owned(), true).unwrap();
    let other = Connection::open(&path).unwrap();
    let damage = "UPDATE receipts SET receipt = 'damaged'";
    assert_eq!(other.execute(damage, []).unwrap(), 1);
    std::thread::scope(|scope| {
        for number in 0..16 {
            let put = &put;
            scope.spawn(move || {
                let is_keyed = number % 2 == 0;
                let result = put(format!("record-{number}"), is_keyed);
                let kind = result.err().map(|error| error.kind());
                assert_eq!(kind, is_keyed.then_some(ErrorKind::Corrupt));
            });
        }
    });
    assert_eq!(everything(&store).len(), 9);
}
