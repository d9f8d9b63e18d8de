//! The program that the format comes from: we read its files, and it could read ours.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;

/// What the original's `load` does: upsert on add and update, remove on delete, skip the rest.
/// The fields that its code relies on must be there, of their types.
fn load_like_the_original(dir: &Path) -> BTreeMap<String, Value> {
    let mut entries = BTreeMap::new();
    for line in fs::read_to_string(log(dir)).unwrap().split('\n') {
        let Ok(line) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        match line["op"].as_str() {
            Some("add" | "update") => {
                let entry = &line["entry"];
                for text in ["id", "content", "summary"] {
                    assert!(entry[text].is_string(), "{text} in {line}");
                }
                let namespace = entry["namespace"].as_str().unwrap();
                assert!(["short-term", "long-term"].contains(&namespace));
                assert!(
                    entry["tags"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .all(Value::is_string)
                );
                for number in ["createdAt", "updatedAt"] {
                    assert!(entry[number].is_i64(), "{number} in {line}");
                }
                for (optional, right) in [
                    ("expiresAt", Value::is_i64 as fn(&Value) -> bool),
                    ("source", Value::is_string),
                    ("importance", Value::is_number),
                    ("metadata", Value::is_object),
                ] {
                    let there = entry.get(optional);
                    assert!(there.is_none_or(right), "{optional} in {line}");
                }
                assert!(line["timestamp"].is_i64());
                entries.insert(entry["id"].as_str().unwrap().to_owned(), entry.clone());
            }
            Some("delete") => {
                entries.remove(line["id"].as_str().unwrap());
            }
            _ => {}
        }
    }
    entries
}

#[test]
fn the_original_could_read_what_we_write() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let mut full = note("full", &"word ".repeat(400));
    full.tags = vec!["a".into(), "b".into()];
    full.expires = Some(now().plus_days(14));
    full.source = Some("file:x".into());
    full.importance = 0.1 + 0.2;
    full.metadata = json!({"k": [1, 2.5, null]}).as_object().unwrap().clone();
    full.body = Some(json!({"blocks": []}));
    let batch = vec![Op::put(full.clone()), Op::put(note("plain", "tea"))];
    wait(store.apply(&grant(), Batch::from(batch).with_key(Some(keyed("k"))))).unwrap();
    put(&store, "plain", "coffee");
    put(&store, "gone", "x");
    apply(&store, vec![Op::delete(id("gone"))]);

    let seen = load_like_the_original(dir.path());
    assert_eq!(seen.keys().collect::<Vec<_>>(), ["full", "plain"]);
    assert_eq!(seen["plain"]["content"], "coffee");
    assert_eq!(seen["plain"]["summary"], "coffee");
    assert_eq!(seen["plain"]["createdAt"], 1_700_000_000_000_i64);
    // 1,200 units, cut at the last space, which lies at 1,199.
    let summary = seen["full"]["summary"].as_str().unwrap();
    assert!(summary.ends_with("word..."), "{summary}");
    assert_eq!(summary.len(), 1199 + 3);
    assert_eq!(seen["full"]["importance"], 0.1 + 0.2);

    // The summary made for the original is not ours when we read it back.
    drop(store);
    let mut read = get(&open(dir.path()), "full").unwrap();
    assert_eq!(read.summary, None);
    (read.seq, read.version) = (0, 0);
    assert_eq!(read, full);

    // A compacted log says the same.
    open(dir.path()).compact(&Tenant::default()).unwrap();
    assert_eq!(load_like_the_original(dir.path()).len(), 2);
}

#[test]
fn reads_a_file_of_the_original() {
    let dir = tempfile::tempdir().unwrap();
    let long_tag = "t".repeat(300);
    let sample = [
        r#"{"op":"add","entry":{"id":"a1b2c3d4e5f60718","namespace":"long-term","content":"Ann prefers tea","summary":"Ann prefers tea","tags":["drinks"],"createdAt":1690000000000,"updatedAt":1690000000000,"expiresAt":4000000000000,"source":"chat","importance":8,"metadata":{"x":1}},"timestamp":1690000000001}"#.to_owned(),
        r#"{"op":"add","entry":{"id":"b","namespace":"short-term","content":"old","summary":"own words","tags":[],"createdAt":1690000000002,"updatedAt":1690000000002},"timestamp":1690000000002}"#.to_owned(),
        "this is not JSON".to_owned(),
        r#"{"op":"add","entry":{"id":"c","namespace":"short-term"},"timestamp":1}"#.to_owned(),
        r#"{"op":"add","entry":{"id":"e","namespace":"short-term","content":"","summary":"","tags":[],"createdAt":1,"updatedAt":1},"timestamp":1}"#.to_owned(),
        String::new(),
        r#"{"op":"update","entry":{"id":"b","namespace":"short-term","content":"new","summary":"own words","tags":[],"createdAt":1690000000002,"updatedAt":1690000000003},"timestamp":1690000000003}"#.to_owned(),
        r#"{"op":"add","entry":{"id":"d","namespace":"short-term","content":"gone soon","summary":"gone soon","tags":[],"createdAt":1,"updatedAt":1},"timestamp":1}"#.to_owned(),
        r#"{"op":"delete","id":"d","timestamp":1690000000004}"#.to_owned(),
        r#"{"op":"delete","id":"never","timestamp":1690000000004}"#.to_owned(),
        format!(r#"{{"op":"add","entry":{{"id":"f","namespace":"short-term","content":"cut \ud83d","summary":"cut \ud83d","tags":["{long_tag}"," "],"createdAt":5,"updatedAt":5}},"timestamp":5}}"#),
    ];
    // No line break at the end, as an editor may leave it.
    fs::write(log(dir.path()), sample.join("\n")).unwrap();

    let store = open(dir.path());
    assert_eq!(names(&store), ["a1b2c3d4e5f60718", "b", "f"]);
    let ann = get(&store, "a1b2c3d4e5f60718").unwrap();
    assert_eq!((ann.seq, ann.version, ann.importance), (1, 1, 0.8));
    assert_eq!(ann.kind, mnemon_core::Kind::Note);
    assert_eq!(ann.scope, mnemon_core::Scope::Semantic);
    assert_eq!((ann.summary, ann.source.as_deref()), (None, Some("chat")));
    assert_eq!(ann.created.millis(), 1_690_000_000_000);
    let b = get(&store, "b").unwrap();
    assert_eq!((b.content.as_str(), b.version), ("new", 2));
    assert_eq!(b.summary.as_deref(), Some("own words"));
    assert_eq!(get(&store, "f").unwrap().tags, ["t".repeat(100)]);
    assert_eq!(content(&store, "f").unwrap(), "cut \u{fffd}");

    let notices = store.notices();
    assert_eq!(notices.skipped_total, 3);
    let skipped: Vec<u64> = notices.skipped.iter().map(|bad| bad.line).collect();
    assert_eq!(skipped, [3, 4, 5]);
    assert!(notices.skipped[1].why.contains("missing field `content`"));
    assert_eq!(notices.torn_bytes, 0);
    assert_eq!(notices.sentences().len(), 3);

    // A write goes on a new line, and everything is the same when it is opened again.
    put(&store, "ours", "x");
    let again = open(dir.path());
    assert_eq!(names(&again), ["a1b2c3d4e5f60718", "b", "f", "ours"]);
    assert_eq!(history(&again, None), history(&store, None));
    assert_eq!(history(&again, Some("d")).len(), 2, "added and deleted");

    // Compaction turns them into our lines and keeps the bad ones aside.
    again.compact(&Tenant::default()).unwrap();
    assert_eq!(history(&open(dir.path()), None), history(&store, None));
    let notices = open(dir.path()).notices();
    assert_eq!(notices.skipped_total, 0);
    assert_eq!(notices.set_aside, [dir.path().join("memory.jsonl.bad")]);
    let bad = fs::read_to_string(dir.path().join("memory.jsonl.bad")).unwrap();
    assert_eq!(
        bad.lines().collect::<Vec<_>>(),
        [&sample[2], &sample[3], &sample[4]]
    );
}

#[test]
fn survives_a_compaction_by_the_original() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let mut fact = note("fact", "Ann likes tea");
    fact.kind = mnemon_core::Kind::Fact;
    fact.derived_from = vec![id("src")];
    apply(&store, vec![Op::put(note("src", "said")), Op::put(fact)]);
    put(&store, "fact2", "x");
    // It writes the entries that are left, with the fields it does not know, and no more.
    let kept: String = load_like_the_original(dir.path())
        .values()
        .map(|entry| json!({"op": "add", "entry": entry, "timestamp": 7}).to_string() + "\n")
        .collect();
    let aside = dir.path().join("memory.jsonl.tmp");
    fs::write(&aside, kept).unwrap();
    fs::rename(aside, log(dir.path())).unwrap();

    let fact = get(&store, "fact").unwrap();
    assert_eq!(fact.kind, mnemon_core::Kind::Fact);
    assert_eq!(fact.derived_from, [id("src")]);
    let receipt = apply(&store, vec![Op::delete(id("src"))]);
    assert_eq!(receipt.cascaded, [id("fact")]);
    assert_eq!(names(&open(dir.path())), ["fact2"]);
}

#[test]
fn two_of_our_logs_joined_lose_nothing() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for (dir, name) in [(&one, "a"), (&two, "b")] {
        let store = open(dir.path());
        put(&store, name, "x");
        put(&store, "both", name);
    }
    let mut joined = fs::read(log(one.path())).unwrap();
    joined.extend(fs::read(log(two.path())).unwrap());
    fs::write(log(one.path()), joined).unwrap();
    let store = open(one.path());
    assert_eq!(names(&store), ["a", "b", "both"]);
    assert_eq!(content(&store, "both").unwrap(), "b");
    store.compact(&Tenant::default()).unwrap();
    assert_eq!(names(&open(one.path())), ["a", "b", "both"]);
}
