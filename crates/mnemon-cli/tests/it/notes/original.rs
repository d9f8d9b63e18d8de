//! The program that the notes document describes: its files are read here, and ours there.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use mnemon_core::{Namespace, Viewer};
use serde_json::Value;

use super::*;

/// A log as that program writes it: 10,000 lines, of which every hundredth is broken in a way of
/// its own, every fiftieth deletes what was added before, and every seventy-fifth is an update.
fn log_of_the_original() -> (String, BTreeMap<String, String>, u64) {
    let mut log = String::new();
    let mut live = BTreeMap::new();
    let mut broken = 0;
    for n in 0..10_000_u64 {
        let at = 1_699_000_000_000 + n;
        let id = format!("{:016x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        if n % 100 == 99 {
            broken += 1;
            let bad = [
                "{\"op\":\"add\",\"entry\":{\"id\":",
                "not JSON",
                "{\"op\":\"fly\"}",
                "[]",
                "{\"op\":\"add\"}",
            ];
            log.push_str(bad[(n / 100) as usize % bad.len()]);
            log.push('\n');
            continue;
        }
        if n % 50 == 49 {
            let gone = live.keys().next().cloned().unwrap();
            live.remove(&gone);
            writeln!(log, r#"{{"op":"delete","id":"{gone}","timestamp":{at}}}"#).unwrap();
            continue;
        }
        let (op, id) = match n % 75 == 74 {
            true => ("update", live.keys().next().cloned().unwrap()),
            false => ("add", id),
        };
        let content = format!("entry {n} about the API and 設定 số {n}");
        let namespace = if n % 3 == 0 {
            "long-term"
        } else {
            "short-term"
        };
        let entry = serde_json::json!({
            "id": id, "namespace": namespace, "content": content, "summary": content,
            "tags": [format!("t{}", n % 10)], "createdAt": at, "updatedAt": at,
            "expiresAt": 1_900_000_000_000_u64, "source": "chat", "importance": 0.5,
        });
        let line = serde_json::json!({"op": op, "entry": entry, "timestamp": at});
        writeln!(log, "{line}").unwrap();
        live.insert(id, content);
    }
    (log, live, broken)
}

#[test]
fn a_file_of_ten_thousand_lines_some_of_them_broken() {
    let folder = tempfile::tempdir().unwrap();
    let (log, live, broken) = log_of_the_original();
    assert_eq!(log.lines().count(), 10_000);
    std::fs::write(folder.path().join("memory.jsonl"), log).unwrap();
    let config = config(&format!("jsonl:{}", folder.path().display()));
    let wired = wiring::open(&config).unwrap();
    // Twenty are told with their line and reason, the rest is counted.
    assert_eq!(wired.notices.len(), 21, "{:?}", wired.notices);
    assert!(
        wired.notices[0].contains("memory.jsonl:100 was skipped"),
        "{}",
        wired.notices[0]
    );
    let rest = format!("{} more lines were skipped", broken - 20);
    assert_eq!(wired.notices[20], rest);

    let memory = wired.memory;
    let counts = wait(memory.notes().stats(&now(), &Viewer::Tenant)).unwrap();
    assert_eq!(counts.total, live.len() as u64);
    for (id, content) in live.iter().take(50) {
        let found = search(&memory, &now(), id);
        assert_eq!(found.results[0].summary, *content);
    }
    let found = search(&memory, &now(), "entry 5003");
    assert!(
        found.results[0].summary.starts_with("entry 5003 "),
        "{:?}",
        found.results[0]
    );
    // Noting what is there already is no new entry, whoever wrote it.
    let (id, content) = live.iter().next_back().unwrap();
    let again = add(&memory, &now(), NewNote::new(content.clone()));
    assert!(again.known && again.id.as_str() == id, "{again:?}");
}

/// The reader of that program, by its rules: line by line, what is no JSON is skipped, `add` and
/// `update` set the entry of their id, `delete` takes it away, everything else is passed over.
fn read_like_the_original(folder: &Path) -> BTreeMap<String, Value> {
    let mut entries = BTreeMap::new();
    for line in std::fs::read_to_string(folder.join("memory.jsonl"))
        .unwrap()
        .split('\n')
    {
        let Ok(line) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        match line["op"].as_str() {
            Some("add" | "update") => {
                entries.insert(
                    line["entry"]["id"].as_str().unwrap().to_owned(),
                    line["entry"].clone(),
                );
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
fn what_we_write_its_reader_reads() {
    let folder = tempfile::tempdir().unwrap();
    let memory = open(&config(&format!("jsonl:{}", folder.path().display())));
    let full = NewNote {
        namespace: Some(Namespace::LongTerm),
        tags: vec!["Config".into(), "important".into()],
        source: Some("user".into()),
        importance: Some(0.7),
        metadata: serde_json::json!({"k": "v"}).as_object().unwrap().clone(),
        ..NewNote::new("設定 ".repeat(700))
    };
    let full = add(&memory, &now(), full);
    let plain = add(&memory, &now(), NewNote::new("API response data"));
    let gone = add(&memory, &now(), NewNote::new("to be deleted"));
    wait(memory.notes().delete(&now(), &Viewer::Tenant, &gone.id)).unwrap();

    let entries = read_like_the_original(folder.path());
    assert_eq!(entries.len(), 2);
    let entry = &entries[full.id.as_str()];
    let content = "設定 ".repeat(700);
    // 1,200 units end with a space, at 1,199: cut there.
    let summary = format!("{}...", &"設定 ".repeat(400).trim_end());
    assert_eq!(entry["content"], content);
    assert_eq!(entry["summary"], summary);
    assert_eq!(entry["namespace"], "long-term");
    assert_eq!(entry["tags"], serde_json::json!(["config", "important"]));
    assert_eq!(entry["createdAt"], 1_700_000_000_000_u64);
    assert_eq!(entry["updatedAt"], 1_700_000_000_000_u64);
    assert_eq!(
        entry["expiresAt"],
        1_700_000_000_000_u64 + 3650 * 86_400_000
    );
    assert_eq!(
        (&entry["source"], &entry["importance"]),
        (&"user".into(), &0.7.into())
    );
    assert_eq!(entry["metadata"]["k"], "v");
    let entry = &entries[plain.id.as_str()];
    assert_eq!(entry["summary"], "API response data");
    assert_eq!(entry["expiresAt"], 1_700_000_000_000_u64 + 14 * 86_400_000);
}
