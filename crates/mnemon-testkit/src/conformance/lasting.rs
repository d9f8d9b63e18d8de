//! What was acknowledged is there when the store is opened again.

use mnemon_core::{Expect, Fate, Op, Right};

use super::Subject;
use crate::make::{Caller, Remade, at, full, grant, grant_on, id, ids, note};

async fn furnish(s: &Subject) {
    let g = grant(at(0));
    let records = [
        full("full"),
        note("a").saying("one"),
        note("a").saying("two"),
        note("b").made_from(&["a"]),
        note("c").short_term(),
        note("gone").made_from(&["c"]),
        note("again"),
    ];
    s.put(&g, records).await;
    s.delete(&g, "gone").await;
    s.delete(&g, "again").await;
    s.put(&g, [note("again").saying("a second life")]).await;
    s.put(&grant_on("other"), [note("a").on("other")]).await;
}

pub async fn reopening_keeps_everything(mut s: Subject) {
    furnish(&s).await;
    let (g, other) = (grant(at(1)), grant_on("other"));
    let before = (s.seen(&g).await, s.seen(&other).await);
    assert_eq!((before.0.written.len(), before.0.changes.len()), (5, 10));
    for _ in 0..3 {
        s.reopen().await;
        assert_eq!((s.seen(&g).await, s.seen(&other).await), before);
    }
}

pub async fn numbers_go_on_after_reopening(mut s: Subject) {
    furnish(&s).await;
    s.reopen().await;
    let g = grant(at(0));
    let ops = vec![
        Op::put_if(note("a"), Expect::Version(2)),
        Op::append(note("gone")),
        Op::put(note("again")),
    ];
    let receipt = s.done(&g, ops).await;
    assert_eq!(receipt.commit, Some(11));
    let fates: Vec<&Fate> = receipt.items.iter().map(|item| &item.fate).collect();
    let expected = [
        &Fate::Updated { version: 3 },
        &Fate::Stored { version: 3 },
        &Fate::Updated { version: 4 },
    ];
    assert_eq!(fates, expected);
}

pub async fn links_and_caps_go_on_after_reopening(mut s: Subject) {
    furnish(&s).await;
    s.reopen().await;
    let g = Caller::default().capped(Some(1), None).grant(Right::Purge);
    assert_eq!(s.delete(&g, "a").await.cascaded, [id("b")]);
    let receipt = s.done(&g, vec![Op::put(note("d").short_term())]).await;
    assert_eq!(receipt.evicted, [id("c")]);
    s.reopen().await;
    assert_eq!(s.purge(&g, "c").await.cascaded, [id("gone")]);
    assert_eq!(s.purge(&g, "a").await.cascaded, ids(&["b"]));
    s.reopen().await;
    for name in ["a", "b", "c", "gone"] {
        assert!(s.changes(&g, name).await.is_empty(), "{name}");
    }
}

pub async fn a_refused_batch_is_not_there_after_reopening(mut s: Subject) {
    furnish(&s).await;
    let g = grant(at(0));
    let before = s.seen(&g).await;
    let ops = vec![
        Op::put(note("new")),
        Op::Purge { id: id("a") },
        Op::put_if(note("c"), Expect::Absent),
    ];
    s.refused(&g, ops).await;
    s.reopen().await;
    assert_eq!(s.seen(&g).await, before);
}

pub async fn upkeep_is_kept_after_reopening(mut s: Subject) {
    furnish(&s).await;
    let later = Caller::default().at(at(0).plus_days(99)).keeping_history(1);
    let later = later.grant(Right::Purge).accept_clock();
    let upkept = s.upkeep(&later, 1000).await;
    assert_eq!((upkept.expired, upkept.history), (1, 5));
    let before = s.seen(&later).await;
    s.reopen().await;
    assert_eq!(s.seen(&later).await, before);
    assert!(!s.has(&grant(at(0)), "full").await);
}
