//! A purge leaves nothing.

use mnemon_core::{ErrorKind, Fate, Op, Right};

use super::Subject;
use crate::make::{Caller, Remade, at, grant, id, ids, note};

pub async fn a_purge_leaves_no_trace(s: Subject) {
    let g = grant(at(0));
    s.put(&g, [note("a"), note("a").saying("again"), note("b")])
        .await;
    let receipt = s.purge(&g, "a").await;
    assert_eq!(receipt.items[0].fate, Fate::Purged);
    assert_eq!(receipt.commit, None, "there is nothing to undo");
    assert!(!s.has(&g, "a").await);
    assert!(s.changes(&g, "a").await.is_empty());
    let seen = s.seen(&g).await;
    assert_eq!(seen.newest, ids(&["b"]));
    assert!(seen.changes.iter().all(|change| change.id == id("b")));
    assert_eq!((seen.tally.records(), seen.tally.history), (1, 0));
}

pub async fn a_purge_takes_what_was_derived(s: Subject) {
    let g = grant(at(0));
    let records = [
        note("a"),
        note("b").made_from(&["a"]),
        note("b").made_from(&["a"]).saying("again"),
        note("c").made_from(&["b"]),
        note("other"),
    ];
    s.put(&g, records).await;
    let receipt = s.purge(&g, "a").await;
    assert_eq!(receipt.cascaded, ids(&["b", "c"]));
    assert_eq!(s.names(&g).await, ["other"]);
    for name in ["a", "b", "c"] {
        assert!(s.changes(&g, name).await.is_empty());
    }
    assert_eq!(s.tally(&g).await.history, 0);
}

pub async fn a_purge_reaches_the_deleted(s: Subject) {
    let g = grant(at(0));
    let records = [
        note("a"),
        note("b").made_from(&["a"]),
        note("c").made_from(&["b"]),
    ];
    s.put(&g, records).await;
    s.delete(&g, "b").await;
    s.delete(&g, "a").await;
    assert_eq!(s.tally(&g).await.history, 6);
    let receipt = s.purge(&g, "a").await;
    assert_eq!(receipt.items[0].fate, Fate::Purged);
    assert_eq!(receipt.cascaded, ids(&["b", "c"]));
    assert!(s.seen(&g).await.changes.is_empty());
    assert_eq!(s.tally(&g).await.history, 0);
}

pub async fn a_purge_needs_the_right(s: Subject) {
    s.put(&grant(at(0)), [note("a")]).await;
    let writer = Caller::default().grant(Right::Write);
    let ops = vec![Op::put(note("b")), Op::Purge { id: id("a") }];
    let error = s.refused(&writer, ops).await;
    assert_eq!(error.kind(), ErrorKind::Denied);
    let ops = vec![Op::Purge { id: id("nothing") }];
    let error = s.refused(&writer, ops).await;
    assert_eq!(error.kind(), ErrorKind::Denied);
}

pub async fn purging_what_is_not_there_is_no_error(s: Subject) {
    let g = grant(at(0));
    s.put(&g, [note("b").made_from(&["a"])]).await;
    let receipt = s.purge(&g, "nothing").await;
    assert_eq!(receipt.items[0].fate, Fate::Missing);
    assert!(receipt.cascaded.is_empty());
    // The source itself is gone, or never was; what was made of it is still its copy.
    let receipt = s.purge(&g, "a").await;
    assert_eq!(receipt.items[0].fate, Fate::Missing);
    assert_eq!(receipt.cascaded, [id("b")]);
}

pub async fn a_purged_id_starts_anew(s: Subject) {
    let g = grant(at(0));
    let derived = || note("b").made_from(&["a"]);
    s.put(&g, [note("a"), derived(), derived()]).await;
    s.purge(&g, "b").await;
    let receipt = s.done(&g, vec![Op::append(note("b"))]).await;
    assert_eq!(receipt.items[0].fate, Fate::Stored { version: 1 });
    assert!(s.delete(&g, "a").await.cascaded.is_empty());
    assert!(s.has(&g, "b").await);
}

pub async fn nothing_purged_comes_back_on_reopening(mut s: Subject) {
    let g = Caller::default().capped(None, Some(2));
    let g = g.grant(Right::Purge);
    let records = [
        note("evicted"),
        note("a"),
        note("b").made_from(&["a"]),
        note("c").made_from(&["b"]),
    ];
    s.put(&g, records).await;
    for name in ["evicted", "a"] {
        s.purge(&g, name).await;
    }
    let before = s.seen(&g).await;
    assert_eq!((before.tally.records(), before.tally.history), (0, 0));
    s.reopen().await;
    assert_eq!(s.seen(&g).await, before);
}
