//! Versions, preconditions, and all or nothing.

use std::collections::HashSet;

use mnemon_core::{Batch, Cause, ErrorKind, Expect, Fate, Op, Receipt, Record, Right, StoreError};

use super::Subject;
use crate::make::{Caller, Remade, at, grant, id, key, note};

fn fates(receipt: &Receipt) -> Vec<&Fate> {
    receipt.items.iter().map(|item| &item.fate).collect()
}

pub async fn versions_count_up(s: Subject) {
    let g = grant(at(0));
    let mut last_seq = 0;
    for version in 1..=3 {
        let claimed = Record {
            seq: 99,
            version: 99,
            ..note("a").saying(&format!("v{version}"))
        };
        let receipt = s.done(&g, vec![Op::put(claimed)]).await;
        let fate = match version {
            1 => Fate::Stored { version },
            _ => Fate::Updated { version },
        };
        assert_eq!(fates(&receipt), [&fate]);
        assert_eq!(receipt.items[0].id, id("a"));
        let found = s.get(&g, "a").await.unwrap();
        assert_eq!(
            (found.version, found.content),
            (version, format!("v{version}"))
        );
        assert!(found.seq > last_seq && receipt.commit == Some(found.seq));
        last_seq = found.seq;
    }
    assert_eq!(s.names(&g).await, ["a"]);
}

pub async fn an_update_replaces_everything(s: Subject) {
    let g = grant(at(0));
    s.put(&g, [crate::make::full("a"), note("a")]).await;
    let found = s.get(&g, "a").await.unwrap();
    let expected = Record {
        seq: found.seq,
        version: 2,
        ..note("a")
    };
    assert_eq!(found, expected);
    assert_eq!(s.tally(&g).await.records(), 1);
}

fn current(error: StoreError) -> Option<u64> {
    assert_eq!(error.kind(), ErrorKind::Conflict);
    match error {
        StoreError::Conflict {
            id: at, current, ..
        } => {
            assert_eq!(at, id("a"));
            current
        }
        other => panic!("{other}"),
    }
}

pub async fn absent_is_held_to(s: Subject) {
    let g = grant(at(0));
    s.done(&g, vec![Op::append(note("a"))]).await;
    let error = s.refused(&g, vec![Op::append(note("a"))]).await;
    assert_eq!(current(error), Some(1));
    s.delete(&g, "a").await;
    let receipt = s.done(&g, vec![Op::append(note("a"))]).await;
    assert_eq!(fates(&receipt), [&Fate::Stored { version: 3 }]);
}

pub async fn a_stale_version_is_refused(s: Subject) {
    let g = grant(at(0));
    let put_if = |version| vec![Op::put_if(note("a"), Expect::Version(version))];
    let delete_if = |version| {
        vec![Op::Delete {
            id: id("a"),
            expect: Expect::Version(version),
        }]
    };
    assert_eq!(current(s.refused(&g, put_if(1)).await), None);
    assert_eq!(current(s.refused(&g, delete_if(1)).await), None);
    s.put(&g, [note("a")]).await;
    s.done(&g, put_if(1)).await;
    assert_eq!(current(s.refused(&g, put_if(1)).await), Some(2));
    assert_eq!(current(s.refused(&g, put_if(3)).await), Some(2));
    assert_eq!(current(s.refused(&g, delete_if(1)).await), Some(2));
    let absent = Op::Delete {
        id: id("a"),
        expect: Expect::Absent,
    };
    assert_eq!(current(s.refused(&g, vec![absent]).await), Some(2));
    s.done(&g, delete_if(2)).await;
    assert_eq!(current(s.refused(&g, delete_if(2)).await), None);
}

/// A little of everything, to be taken back.
async fn prepare(s: &Subject) {
    let g = grant(at(0));
    let records = [
        note("a"),
        note("a").saying("a again"),
        note("b"),
        note("c").made_from(&["b"]),
        note("d").made_from(&["c", "a"]),
        note("gone").made_from(&["a"]),
        note("p").made_from(&["x"]),
        note("p").made_from(&["a"]),
        note("expired").until(at(5)),
        note("weak").short_term(),
    ];
    s.put(&g, records).await;
    s.delete(&g, "gone").await;
}

fn every_op() -> Vec<Op> {
    vec![
        Op::put(note("new").made_from(&["a"])),
        Op::put(note("a").saying("third").made_from(&["new"])),
        Op::delete(id("b")),
        Op::put(note("c").saying("again")),
        Op::Purge { id: id("p") },
        Op::put(note("gone").made_from(&["c"])),
        Op::put(note("gone")),
        Op::put(note("expired").saying("anew")),
        Op::put(note("strong").short_term().worth(1.0)),
        Op::delete(id("a")),
    ]
}

pub async fn a_conflict_rolls_everything_back(s: Subject) {
    prepare(&s).await;
    let g = Caller::default().at(at(9)).capped(Some(1), Some(2));
    let g = g.grant(Right::Purge);
    for at_op in 0..=every_op().len() {
        let mut ops = every_op();
        ops.insert(at_op, Op::put_if(note("weak"), Expect::Version(9)));
        let batch = Batch::from(ops).with_key(key("k", "1"));
        let error = s.refused(&g, batch).await;
        assert_eq!(error.kind(), ErrorKind::Conflict);
        // What had expired is as it was, too.
        assert!(s.has(&grant(at(5)), "expired").await);
    }
    links_are_as_prepared(&s).await;
}

/// The links of what `prepare` wrote cannot be seen but by their effect.
async fn links_are_as_prepared(s: &Subject) {
    let g = grant(at(5));
    let x = s.delete(&g, "x").await;
    assert_eq!(x.cascaded, []);
    let new = s.delete(&g, "new").await;
    assert_eq!(new.cascaded, []);
    let b = s.delete(&g, "b").await;
    assert_eq!(b.cascaded, [id("c"), id("d")]);
    let a = s.purge(&g, "a").await;
    assert_eq!(a.cascaded, [id("d"), id("gone"), id("p")]);
}

pub async fn an_invalid_op_anywhere_rolls_everything_back(s: Subject) {
    prepare(&s).await;
    let g = grant(at(9));
    for at_op in [0, 1, every_op().len()] {
        let mut ops = every_op();
        ops.insert(at_op, Op::put(note("bad").worth(1.5)));
        let error = s.refused(&g, ops).await;
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
    links_are_as_prepared(&s).await;
}

pub async fn ops_on_one_id_happen_in_order(s: Subject) {
    let g = grant(at(0));
    let ops = vec![
        Op::append(note("a").saying("one")),
        Op::put_if(note("a").saying("two"), Expect::Version(1)),
        Op::delete(id("a")),
        Op::delete(id("a")),
        Op::append(note("a").saying("four")),
    ];
    let receipt = s.done(&g, ops).await;
    let expected = [
        &Fate::Stored { version: 1 },
        &Fate::Updated { version: 2 },
        &Fate::Deleted,
        &Fate::Missing,
        &Fate::Stored { version: 4 },
    ];
    assert_eq!(fates(&receipt), expected);
    assert_eq!(s.get(&g, "a").await.unwrap().content, "four");
    let changes = s.changes(&g, "a").await;
    let versions: Vec<u64> = changes.iter().map(|change| change.version).collect();
    assert_eq!(versions, [4, 3, 2, 1]);
    assert!(
        changes
            .iter()
            .all(|change| Some(change.commit) == receipt.commit)
    );
    let seqs: HashSet<u64> = changes.iter().map(|change| change.seq).collect();
    assert_eq!(seqs.len(), 4);
}

pub async fn put_and_purge_in_one_batch_leaves_nothing(s: Subject) {
    let g = grant(at(0));
    let ops = vec![Op::put(note("a")), Op::Purge { id: id("a") }];
    let receipt = s.done(&g, ops).await;
    assert_eq!(
        fates(&receipt),
        [&Fate::Stored { version: 1 }, &Fate::Purged]
    );
    assert!(s.changes(&g, "a").await.is_empty());
    assert!(s.names(&g).await.is_empty());
    assert_eq!(s.tally(&g).await.records(), 0);
}

pub async fn deleting_what_is_not_there_changes_nothing(s: Subject) {
    let g = grant(at(0));
    s.put(&g, [note("a")]).await;
    let before = s.seen(&g).await;
    let receipt = s.delete(&g, "b").await;
    assert_eq!(fates(&receipt), [&Fate::Missing]);
    assert_eq!(receipt.commit, None);
    assert_eq!(s.seen(&g).await, before);
}

pub async fn an_empty_batch_changes_nothing(s: Subject) {
    let g = grant(at(0));
    let receipt = s.done(&g, vec![]).await;
    assert!(receipt.items.is_empty() && receipt.commit.is_none());
    assert_eq!(s.tally(&g).await.seq, 0);
}

pub async fn numbers_are_never_used_again(mut s: Subject) {
    let g = grant(at(0));
    s.put(&g, [note("a"), note("b")]).await;
    let newest = s.get(&g, "b").await.unwrap().seq;
    s.purge(&g, "b").await;
    // A purge has a number of its own.
    assert_eq!(s.tally(&g).await.seq, newest + 1);
    s.reopen().await;
    assert_eq!(s.tally(&g).await.seq, newest + 1);
    let receipt = s.done(&g, vec![Op::put(note("c"))]).await;
    assert_eq!(receipt.commit, Some(newest + 2));
}

pub async fn concurrent_writes_all_arrive(s: Subject) {
    let mut tasks = Vec::new();
    for worker in 0..8 {
        let store = s.store().clone();
        tasks.push(tokio::spawn(async move {
            let g = grant(at(0));
            for n in 0..50 {
                let op = Op::append(note(&format!("w{worker}-{n}")));
                let receipt = store.apply(&g, Batch::of(op)).await.unwrap();
                assert_eq!(fates(&receipt), [&Fate::Stored { version: 1 }]);
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let seen = s.seen(&grant(at(0))).await;
    let seqs: HashSet<u64> = seen.written.iter().map(|record| record.seq).collect();
    assert_eq!((seen.written.len(), seqs.len()), (400, 400));
    assert_eq!((seen.changes.len(), seen.tally.records()), (400, 400));
    assert_eq!(seen.tally.seq, 400);
}

pub async fn concurrent_updates_lose_nothing(s: Subject) {
    let mut tasks = Vec::new();
    for worker in 0..8 {
        let store = s.store().clone();
        tasks.push(tokio::spawn(async move {
            let g = grant(at(0));
            for n in 0..50 {
                let op = Op::put(note("a").saying(&format!("w{worker}-{n}")));
                store.apply(&g, Batch::of(op)).await.unwrap();
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let changes = s.changes(&grant(at(0)), "a").await;
    let versions: Vec<u64> = changes.iter().rev().map(|change| change.version).collect();
    assert_eq!(versions, (1..=400).collect::<Vec<_>>());
    let texts: HashSet<String> = changes
        .iter()
        .map(|change| change.after.as_ref().unwrap().content.clone())
        .collect();
    assert_eq!(texts.len(), 400);
    assert!(changes.iter().all(|change| change.cause == Cause::Written));
}

/// Batches that come at once share a transaction where the store has one.
pub async fn a_batch_that_fails_among_others_fails_alone(s: Subject) {
    s.put(&grant(at(0)), [note("there")]).await;
    let mut tasks = Vec::new();
    for worker in 0..8 {
        let store = s.store().clone();
        tasks.push(tokio::spawn(async move {
            let g = grant(at(0));
            for n in 0..30 {
                let mut ops = vec![Op::append(note(&format!("w{worker}-{n}")))];
                if worker % 2 == 0 {
                    ops.push(Op::append(note("there")));
                }
                let result = store.apply(&g, Batch::from(ops)).await;
                assert_eq!(result.is_err(), worker % 2 == 0, "{result:?}");
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let seen = s.seen(&grant(at(0))).await;
    assert_eq!((seen.written.len(), seen.changes.len()), (121, 121));
    assert_eq!((seen.tally.records(), seen.tally.seq), (121, 121));
}
