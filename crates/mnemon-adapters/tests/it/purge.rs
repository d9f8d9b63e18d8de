//! What is purged is gone: from tables, indexes, history, and from the bytes on disk.

use std::path::Path;
use std::time::Duration;

use mnemon_adapters::{Saving, Sqlite};
use mnemon_core::{Batch, Changes, Fate, Op, Probe, Record, SearchIndex, Store};

use crate::kit::{ctx, everything, grant, ids, on_disk, open, wait};

/// How often the bytes occur in the file, or in any file of the folder.
pub(crate) fn occurrences(folder: &Path, secret: &str) -> usize {
    if folder.is_file() {
        let bytes = std::fs::read(folder).unwrap();
        let windows = bytes.windows(secret.len());
        return windows
            .filter(|window| *window == secret.as_bytes())
            .count();
    }
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| occurrences(&path, secret))
        .sum()
}

/// Records of many sizes, so that secrets lie in leaf cells, overflow pages and split pages.
fn record(ids: &mut impl FnMut() -> mnemon_core::Id, number: usize, secret: bool) -> Record {
    let mut record = Record::note(ids(), &ctx(), "plain ".repeat(1 + number * 37 % 900));
    if secret {
        let at = number * 13 % (record.content.len() / 6) * 6;
        record.content.insert_str(at, "hunter2-secret");
        record.tags = vec!["hunter2-secret".into()];
        record.owner.user = Some("hunter2-secret".into());
    }
    record
}

#[test]
fn a_purge_leaves_no_byte_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    for (place, url) in on_disk(folder.path()).into_iter().enumerate() {
        let store = open(&url);
        let source = ids();
        let mut next = || source.next(ctx().now);
        let mut secrets = Vec::new();
        for number in 0..600 {
            let secret = number % 3 == 0;
            let new = record(&mut next, number, secret);
            if secret {
                secrets.push(new.clone());
            }
            wait(store.apply(&grant(), Batch::of(Op::put(new)))).unwrap();
        }
        // Old versions and deletions hold the secret as well.
        for (number, old) in secrets.iter().enumerate() {
            let op = match number % 3 {
                0 => Op::delete(old.id.clone()),
                1 => Op::put(Record {
                    content: format!("{} and more", old.content),
                    ..old.clone()
                }),
                _ => continue,
            };
            wait(store.apply(&grant(), Batch::of(op))).unwrap();
        }
        assert!(occurrences(folder.path(), "hunter2-secret") > 0);

        let purge = secrets.iter().map(|old| Op::Purge { id: old.id.clone() });
        let batch = Batch::from(purge.collect::<Vec<Op>>());
        let receipt = wait(store.apply(&grant(), batch)).unwrap();
        assert!(receipt.items.iter().all(|item| item.fate == Fate::Purged));
        assert_eq!(
            occurrences(folder.path(), "hunter2-secret"),
            0,
            "{place}: {url}"
        );

        for old in &secrets {
            let of = Changes {
                id: Some(old.id.clone()),
                limit: 10,
                ..Changes::all_of_tenant(0)
            };
            assert!(wait(store.changes(&grant(), &of)).unwrap().is_empty());
        }
        assert_eq!(everything(store.as_ref()).len(), 400);
    }
}

#[test]
fn a_purge_leaves_nothing_in_a_saved_index() {
    let folder = tempfile::tempdir().unwrap();
    let saving = Saving {
        changes: 1,
        pause: Duration::ZERO,
    };
    let store = Sqlite::open_with(&folder.path().join("m.db"), saving).unwrap();
    let source = ids();
    let mut next = || source.next(ctx().now);
    let kept = record(&mut next, 1, false);
    let secret = record(&mut next, 2, true);
    for new in [&kept, &secret] {
        wait(store.apply(&grant(), Batch::of(Op::put(new.clone())))).unwrap();
    }
    let search = || {
        wait(store.find(
            &grant(),
            &Probe {
                depth: 9,
                ..Probe::new(mnemon_core::Filter::all_of_tenant(), 0)
            },
        ))
        .unwrap()
        .matches
    };
    let saved = folder.path().join("m.db-index.1");
    let known = || {
        let bytes = std::fs::read(&saved).unwrap();
        bytes.windows(14).any(|window| window == b"hunter2-secret")
    };
    assert_eq!(search().len(), 2);
    assert!(known());
    // Deleted, it stays in the history, and may stay here.
    wait(store.apply(&grant(), Batch::of(Op::delete(secret.id.clone())))).unwrap();
    let purge = Batch::of(Op::Purge { id: secret.id });
    wait(store.apply(&grant(), purge)).unwrap();
    assert!(!saved.exists());
    assert_eq!(occurrences(folder.path(), "hunter2-secret"), 0);
    // The handle remembers where it was, and writes nothing of it down.
    wait(store.apply(&grant(), Batch::of(Op::put(record(&mut next, 3, false))))).unwrap();
    assert_eq!(search().len(), 2);
    assert!(!known());
    assert_eq!(occurrences(folder.path(), "hunter2-secret"), 0);
}
