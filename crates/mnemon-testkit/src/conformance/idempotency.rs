//! A retry is harmless.

use mnemon_core::{Batch, ErrorKind, Expect, Op, Record, Right, StoreError, limits};

use super::Subject;
use crate::make::{Caller, Remade, at, grant, id, key, note};

fn keyed(record: Record, name: &str, intent: &str) -> Batch {
    Batch::of(Op::put(record)).with_key(key(name, intent))
}

pub async fn a_retry_stores_once_and_answers_the_same(mut s: Subject) {
    let g = grant(at(0));
    let batch = || Batch::of(Op::append(note("a"))).with_key(key("k", "1"));
    let first = s.done(&g, batch()).await;
    assert_eq!(s.done(&g, batch()).await, first);
    s.put(&g, [note("a").saying("changed since")]).await;
    let before = s.seen(&g).await;
    assert_eq!(s.done(&grant(at(99)), batch()).await, first);
    s.reopen().await;
    assert_eq!(s.done(&g, batch()).await, first);
    assert_eq!(s.seen(&g).await, before);
}

pub async fn a_retry_answers_the_same_after_a_delete(s: Subject) {
    let g = grant(at(0));
    let first = s.done(&g, keyed(note("a"), "k", "1")).await;
    s.delete(&g, "a").await;
    assert_eq!(s.done(&g, keyed(note("a"), "k", "1")).await, first);
    assert!(!s.has(&g, "a").await);
    s.purge(&g, "a").await;
    assert_eq!(s.done(&g, keyed(note("a"), "k", "1")).await, first);
    assert!(!s.has(&g, "a").await);
}

pub async fn the_whole_receipt_is_kept(mut s: Subject) {
    let g = Caller::default().capped(Some(1), None).grant(Right::Purge);
    let records = [
        note("weak").short_term(),
        note("source"),
        note("derived").made_from(&["source"]),
    ];
    s.put(&g, records).await;
    let batch = || {
        let ops = vec![
            Op::put(note("strong").short_term().worth(1.0)),
            Op::delete(id("source")),
            Op::delete(id("nothing")),
            Op::Purge { id: id("nothing") },
        ];
        Batch::from(ops).with_key(key("ключ 🔑", "1"))
    };
    let first = s.done(&g, batch()).await;
    assert_eq!(first.evicted, [id("weak")]);
    assert_eq!(first.cascaded, [id("derived")]);
    assert_eq!(s.done(&g, batch()).await, first);
    s.reopen().await;
    assert_eq!(s.done(&g, batch()).await, first);
}

pub async fn a_key_is_not_for_something_else(s: Subject) {
    let g = grant(at(0));
    s.done(&g, keyed(note("a"), "k", "1")).await;
    let error = s.refused(&g, keyed(note("b"), "k", "2")).await;
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(matches!(error, StoreError::KeyReused { key } if key == "k"));
    s.done(&g, keyed(note("b"), "K", "2")).await;
    assert!(s.has(&g, "b").await);
}

pub async fn a_failed_batch_leaves_its_key_free(s: Subject) {
    let g = grant(at(0));
    let stale = Op::put_if(note("a"), Expect::Version(7));
    s.refused(&g, Batch::of(stale).with_key(key("k", "1")))
        .await;
    s.done(&g, keyed(note("a"), "k", "2")).await;
    assert!(s.has(&g, "a").await);
}

pub async fn a_key_must_be_a_line(s: Subject) {
    let g = grant(at(0));
    let long = "k".repeat(limits::KEY_CHARS + 1);
    for bad in ["", " ", "a\nb", "a\0b", &long] {
        let error = s.refused(&g, keyed(note("a"), bad, "1")).await;
        assert_eq!(error.kind(), ErrorKind::Invalid, "{bad:?}");
    }
    let longest = "ữ".repeat(limits::KEY_CHARS);
    s.done(&g, keyed(note("a"), &longest, "1")).await;
}

pub async fn a_key_is_free_again_after_its_time(s: Subject) {
    let g = grant(at(0));
    s.done(&g, keyed(note("a"), "k", "1")).await;
    let last = at(0).plus_days(limits::RECEIPT_DAYS);
    assert_eq!(s.upkeep(&grant(last), 10).await.receipts, 0);
    let error = s.refused(&grant(last), keyed(note("b"), "k", "2")).await;
    assert_eq!(error.kind(), ErrorKind::Conflict);
    let later = grant(last.plus_millis(1));
    assert_eq!(s.upkeep(&later, 10).await.receipts, 1);
    s.done(&later, keyed(note("b"), "k", "2")).await;
    assert!(s.has(&later, "a").await && s.has(&later, "b").await);
}

pub async fn the_oldest_keys_go_first(s: Subject) {
    let names = ["d", "a", "f", "c", "b", "e"];
    for (n, name) in names.iter().enumerate() {
        // Two moments; within one it goes by the key, so that all stores agree.
        let g = grant(at(if n < 3 { 1 } else { 0 }));
        s.done(&g, keyed(note("x"), name, "1")).await;
    }
    let later = grant(at(9).plus_days(limits::RECEIPT_DAYS));
    for gone in ["b", "c", "e", "a", "d", "f"] {
        let upkept = s.upkeep(&later, 1).await;
        assert_eq!((upkept.receipts, upkept.more), (1, gone != "f"));
        s.done(&later, keyed(note("y"), gone, "2")).await;
    }
}
