//! Damaged logs: a line costs itself and nothing else, and it is reported until somebody has
//! looked at it.

use std::collections::{BTreeMap, BTreeSet};

use crate::kit::{examine_jsonl, repair_jsonl};

use super::*;

/// Repeatable random numbers (splitmix64).
struct Seeded(u64);

impl Seeded {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.next() % most as u64).unwrap()
    }
}

/// A log with single writes, batches, updates, deletions and a receipt.
fn lively_log(dir: &Path) -> Vec<u8> {
    let store = open(dir);
    for round in 0..6 {
        put(&store, &format!("single{round}"), &format!("alone {round}"));
        let batch = (0..5).map(|n| Op::put(note(&format!("batch{round}x{n}"), "one of five")));
        let mut batch: Vec<Op> = batch.collect();
        batch.push(Op::put(note("changing", &format!("version {round}"))));
        let key = Some(keyed(&format!("k{round}")));
        wait(store.apply(&grant(), Batch::from(batch).with_key(key))).unwrap();
    }
    put(&store, "gone", "x");
    apply(&store, vec![Op::delete(id("gone"))]);
    put(&store, "last", "the end");
    fs::read(log(dir)).unwrap()
}

/// The lines of a file without their line breaks.
fn split(bytes: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    if lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    lines
}

fn joined(lines: &[&[u8]]) -> Vec<u8> {
    let mut bytes = lines.join(&b'\n');
    bytes.push(b'\n');
    bytes
}

const KINDS: [&str; 7] = [
    "flipped bit",
    "overwritten bytes",
    "removed bytes",
    "removed line",
    "swapped lines",
    "repeated line",
    "cut end",
];

fn damage(whole: &[u8], kind: &str, random: &mut Seeded) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    let mut lines = split(whole);
    let (at, other) = (random.below(whole.len()), random.below(lines.len()));
    let line = random.below(lines.len());
    match kind {
        "flipped bit" => bytes[at] ^= 1 << random.below(8),
        "overwritten bytes" => {
            let end = (at + 1 + random.below(200)).min(whole.len());
            for byte in &mut bytes[at..end] {
                *byte = random.next().to_le_bytes()[0];
            }
        }
        "removed bytes" => {
            let end = (at + 1 + random.below(400)).min(whole.len());
            bytes.drain(at..end);
        }
        "removed line" => {
            lines.remove(line);
            bytes = joined(&lines);
        }
        "swapped lines" => {
            lines.swap(line, other);
            bytes = joined(&lines);
        }
        "repeated line" => {
            lines.insert(other, lines[line]);
            bytes = joined(&lines);
        }
        "cut end" => bytes.truncate(at.max(whole.len() / 2)),
        other => panic!("{other}"),
    }
    bytes
}

/// What each intact line says, by the number of its change: an id and, unless it was deleted, its
/// content.
fn said<'a>(lines: impl Iterator<Item = &'a [u8]>) -> BTreeMap<u64, (String, Option<String>)> {
    let values = lines.filter_map(|line| serde_json::from_slice::<serde_json::Value>(line).ok());
    let changes = values.filter_map(|value| {
        let seq = value["mnemon"]["seq"].as_u64()?;
        let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
        let change = match value["op"].as_str()? {
            "add" => (
                text(&value["entry"]["id"])?,
                text(&value["entry"]["content"]),
            ),
            _ => (text(&value["id"])?, None),
        };
        Some((seq, change))
    });
    changes.collect()
}

/// Of a log that was cut off the last commit may be torn: then it never happened.
fn drop_torn_commit(lines: &mut Vec<&[u8]>) {
    let stamp = |line: &[u8]| {
        let value: serde_json::Value = serde_json::from_slice(line).unwrap();
        value["mnemon"].clone()
    };
    let Some(last) = lines.last().map(|line| stamp(line)) else {
        return;
    };
    if last["part"][0] != last["part"][1] {
        lines.retain(|line| stamp(line)["commit"] != last["commit"]);
    }
}

fn integrity(dir: &Path) -> mnemon_adapters::Finding {
    let findings = examine_jsonl(dir);
    let mut found = findings.into_iter().filter(|f| f.check == "integrity");
    found.next().unwrap()
}

fn check(whole: &[u8], damaged: &[u8], kind: &str, what: &str) {
    let original: BTreeSet<&[u8]> = split(whole).into_iter().collect();
    let mut intact: Vec<&[u8]> = Vec::new();
    for line in split(damaged) {
        // A damaged line break joins lines that are themselves whole.
        let within = |whole: &&&[u8]| line.windows(whole.len()).any(|part| part == **whole);
        match original.get(line) {
            Some(line) => intact.push(line),
            None => intact.extend(original.iter().filter(within)),
        }
    }
    if kind == "cut end" {
        drop_torn_commit(&mut intact);
    }
    let mut expected: BTreeMap<String, Option<String>> = BTreeMap::new();
    for (id, content) in said(intact.into_iter()).into_values() {
        expected.insert(id, content);
    }
    let dir = tempfile::tempdir().unwrap();
    fs::write(log(dir.path()), damaged).unwrap();
    let store = open(dir.path());
    for (name, text) in &expected {
        assert_eq!(content(&store, name), *text, "{what}: {name}");
    }
    let finding = integrity(dir.path());
    let mut before = BTreeSet::new();
    let last = split(damaged).len();
    for (number, line) in (1..).zip(split(damaged)) {
        let unfinished = number == last && damaged.last() != Some(&b'\n');
        let whole_and_new = original.contains(line) && before.insert(line);
        if whole_and_new || unfinished || line.trim_ascii().is_empty() {
            continue;
        }
        // A receipt may stand there twice: the second time it says nothing new.
        if original.contains(line) && line.starts_with(b"{\"op\":\"receipt\"") {
            continue;
        }
        assert!(!finding.ok, "{what}: line {number} is not found");
        let named = format!("memory.jsonl:{number}:");
        assert!(
            finding.detail.contains(&named),
            "{what}: {named} in {}",
            finding.detail
        );
    }

    // A repair loses nothing of it, and the damage is reported on.
    let before = names(&store);
    repair_jsonl(dir.path()).unwrap();
    let again = open(dir.path());
    assert_eq!(names(&again), before, "{what}");
    assert!(integrity(dir.path()).ok, "{what}");
    put(&again, "afterwards", "x");
    assert!(get(&open(dir.path()), "afterwards").is_some(), "{what}");
}

#[test]
fn every_intact_line_of_a_damaged_log_is_read_and_every_damaged_one_named() {
    let made = tempfile::tempdir().unwrap();
    let whole = lively_log(made.path());
    for seed in 0..crate::kit::rounds(60, 15) {
        for (n, kind) in (0..).zip(KINDS) {
            let mut random = Seeded(u64::from(seed) * 100 + n);
            let damaged = damage(&whole, kind, &mut random);
            check(&whole, &damaged, kind, &format!("{kind}, seed {seed}"));
        }
    }
}

#[test]
fn no_flipped_bit_goes_unnoticed() {
    let made = tempfile::tempdir().unwrap();
    let store = open(made.path());
    put(&store, "a", "first");
    put(&store, "b", "second");
    let whole = fs::read(log(made.path())).unwrap();
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        let dir = tempfile::tempdir().unwrap();
        fs::write(log(dir.path()), damaged).unwrap();
        let findings = examine_jsonl(dir.path());
        let noticed = findings.iter().any(|f| !f.ok || f.warning);
        assert!(noticed, "bit {} of byte {at}", at % 8);
    }
}

#[test]
fn one_damaged_byte_costs_one_record_of_a_batch() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let many = (0..1000).map(|n| Op::put(note(&format!("n{n:03}"), "acknowledged")));
    apply(&store, many.collect());
    drop(store);
    let mut bytes = fs::read(log(dir.path())).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(log(dir.path()), &bytes).unwrap();

    let store = open(dir.path());
    assert_eq!(names(&store).len(), 999);
    assert_eq!(store.notices().skipped_total, 1);
    assert!(!integrity(dir.path()).ok);
}

#[test]
fn damage_is_reported_until_somebody_has_looked_at_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    for name in ["a", "b"] {
        put(&store, name, "x");
    }
    let text = fs::read_to_string(log(dir.path())).unwrap();
    fs::write(log(dir.path()), text.replacen("\"x\"", "\"y\"", 1)).unwrap();
    // An ordinary compaction takes the line out of the log.
    let store = open(dir.path());
    let many = |content: &str| {
        let names = (0..500).map(|n| format!("n{n}"));
        names.map(|name| Op::put(note(&name, content))).collect()
    };
    for content in ["one", "two", "three"] {
        apply(&store, many(content));
    }
    assert!(lines(dir.path()).len() < 600, "it was compacted");
    for _ in 0..2 {
        let findings = examine_jsonl(dir.path());
        let about = findings.iter().find(|f| f.check == "set aside").unwrap();
        assert!(about.ok && about.warning, "{about:?}");
        assert!(about.detail.contains("holds 1 damaged lines"), "{about:?}");
        let told = open(dir.path()).notices().sentences();
        assert!(
            told.iter().any(|line| line.contains("delete the file")),
            "{told:?}"
        );
        repair_jsonl(dir.path()).unwrap();
    }
    fs::remove_file(dir.path().join("memory.jsonl.bad")).unwrap();
    assert!(
        examine_jsonl(dir.path())
            .iter()
            .all(|f| f.check != "set aside")
    );
    assert_eq!(open(dir.path()).notices(), Default::default());
}

#[test]
fn a_log_whose_only_line_is_damaged_is_still_a_store() {
    let dir = tempfile::tempdir().unwrap();
    put(&open(dir.path()), "a", "first");
    let whole = fs::read(log(dir.path())).unwrap();
    for at in 0..whole.len() - 1 {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        fs::write(log(dir.path()), &damaged).unwrap();
        let store = Jsonl::open(dir.path()).unwrap_or_else(|error| panic!("byte {at}: {error}"));
        assert!(names(&store).is_empty(), "byte {at}");
        assert_eq!(store.notices().skipped_total, 1, "byte {at}");
    }
    put(&open(dir.path()), "b", "second");
    assert_eq!(names(&open(dir.path())), ["b"]);
}

#[test]
fn a_damaged_header_costs_no_history() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    for content in ["one", "two", "three"] {
        put(&store, "a", content);
    }
    store.compact(&Tenant::default()).unwrap();
    put(&store, "b", "x");
    let before = history(&store, None);
    let mut bytes = fs::read(log(dir.path())).unwrap();
    bytes[20] ^= 1;
    fs::write(log(dir.path()), bytes).unwrap();

    let store = open(dir.path());
    assert_eq!(history(&store, None), before);
    assert_eq!(store.notices().skipped_total, 1);
    repair_jsonl(dir.path()).unwrap();
    let store = open(dir.path());
    assert_eq!(history(&store, None), before);
    put(&store, "c", "x");
    assert_eq!(names(&open(dir.path())), ["a", "b", "c"]);
}

#[test]
fn a_damaged_line_of_the_history_costs_that_line() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    for content in ["one", "two", "three"] {
        put(&store, "a", content);
    }
    store.compact(&Tenant::default()).unwrap();
    drop(store);
    let path = dir.path().join("history.1.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("\"one\"", "\"own\"", 1)).unwrap();
    let store = open(dir.path());
    let versions: Vec<u64> = history(&store, Some("a"))
        .iter()
        .map(|c| c.version)
        .collect();
    assert_eq!(versions, [3, 2]);
    let finding = integrity(dir.path());
    assert!(
        finding.detail.contains("history.1.jsonl:1: its checksum"),
        "{finding:?}"
    );
}

/// What versions before checksums wrote: a header, records, one more commit, a history.
#[test]
fn a_log_without_checksums_is_read_and_written_on() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/jsonl-v1");
    let dir = tempfile::tempdir().unwrap();
    for name in ["memory.jsonl", "history.1.jsonl"] {
        fs::copy(fixture.join(name), dir.path().join(name)).unwrap();
    }
    let store = open(dir.path());
    assert_eq!(names(&store), ["plain", "one", "two", "last"]);
    crate::kit::assert_default_audiences(&store);
    assert_eq!(history(&store, Some("three")).len(), 2);
    put(&store, "new", "x");
    let again = open(dir.path());
    assert_eq!(names(&again), ["plain", "one", "two", "last", "new"]);
    assert_eq!(again.notices(), Default::default());
    let sealed = |line: &serde_json::Value| line["crc"].is_string();
    let lines_before = lines(dir.path());
    assert_eq!(lines_before.iter().filter(|line| sealed(line)).count(), 1);
    again.compact(&Tenant::default()).unwrap();
    assert!(lines(dir.path()).iter().all(sealed));
    assert_eq!(
        names(&open(dir.path())),
        ["plain", "one", "two", "last", "new"]
    );
}

#[test]
fn leftovers_of_a_rewrite_are_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    put(&open(dir.path()), "a", "x");
    fs::write(dir.path().join("memory.jsonl.tmp"), "half").unwrap();
    let url = format!("jsonl:{}", dir.path().display());
    let examination = mnemon_adapters::examine(&url).unwrap();
    assert!(examination.is_clean(), "{examination:?}");
    let warnings = examination.findings.iter().filter(|f| f.warning);
    assert_eq!(
        warnings.map(|f| &*f.check).collect::<Vec<_>>(),
        ["leftovers"]
    );
    open(dir.path());
    assert!(!dir.path().join("memory.jsonl.tmp").exists(), "it is swept");
}
