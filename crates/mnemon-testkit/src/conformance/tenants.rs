//! Nobody sees, changes, deletes, evicts or counts another tenant's records.

use mnemon_core::{Batch, ErrorKind, Fate, Op, Right};

use super::Subject;
use crate::make::{Caller, Remade, at, grant, grant_on, id, key, note};
use crate::observe::Observed;

/// Tenant `a` with some of everything; what tenant `a` sees of it.
async fn furnish(s: &Subject) -> Observed {
    let a = grant_on("a");
    let records = [
        note("x").on("a").saying("one"),
        note("x").on("a").saying("two"),
        note("y").on("a").made_from(&["x"]),
        note("gone").on("a"),
        note("short").on("a").until(at(5)),
    ];
    s.put(&a, records).await;
    s.delete(&a, "gone").await;
    let keyed = Batch::of(Op::put(note("k").on("a"))).with_key(key("k", "a"));
    s.done(&a, keyed).await;
    s.seen(&a).await
}

pub async fn one_id_in_two_tenants_is_two_records(s: Subject) {
    let (a, b) = (grant_on("a"), grant_on("b"));
    s.put(&a, [note("x").on("a").saying("of a")]).await;
    assert!(!s.has(&b, "x").await);
    let receipt = s
        .done(&b, vec![Op::append(note("x").on("b").saying("of b"))])
        .await;
    assert_eq!(receipt.items[0].fate, Fate::Stored { version: 1 });
    assert_eq!(s.get(&a, "x").await.unwrap().content, "of a");
    assert_eq!(s.get(&b, "x").await.unwrap().content, "of b");
    for (g, text) in [(&a, "of a"), (&b, "of b")] {
        let seen = s.seen(g).await;
        assert_eq!(seen.written.len(), 1);
        assert_eq!(seen.written[0].content, text);
        assert_eq!((seen.changes.len(), seen.tally.records()), (1, 1));
    }
}

pub async fn writes_stay_within(s: Subject) {
    let before = furnish(&s).await;
    let b = grant_on("b");
    let empty = s.seen(&b).await;
    assert!(empty.written.is_empty() && empty.changes.is_empty());
    assert_eq!(
        (empty.tally.records(), empty.tally.seq, empty.tally.history),
        (0, 0, 0)
    );
    for name in ["x", "y", "gone"] {
        assert!(!s.has(&b, name).await);
        assert!(s.changes(&b, name).await.is_empty());
        let receipt = s.done(&b, vec![Op::put(note(name).on("b"))]).await;
        assert_eq!(receipt.items[0].fate, Fate::Stored { version: 1 });
    }
    assert_eq!(s.seen(&grant_on("a")).await, before);
}

pub async fn deletes_and_purges_stay_within(s: Subject) {
    let before = furnish(&s).await;
    let b = grant_on("b");
    for name in ["x", "y", "gone"] {
        assert_eq!(s.delete(&b, name).await.items[0].fate, Fate::Missing);
        let purged = s.purge(&b, name).await;
        assert_eq!(purged.items[0].fate, Fate::Missing);
        assert!(purged.cascaded.is_empty());
    }
    s.put(&b, [note("x").on("b")]).await;
    s.delete(&b, "x").await;
    s.purge(&b, "x").await;
    assert_eq!(s.seen(&grant_on("a")).await, before);
}

pub async fn cascades_stay_within(s: Subject) {
    let (a, b) = (grant_on("a"), grant_on("b"));
    s.put(
        &a,
        [note("x").on("a"), note("mid").on("a").made_from(&["x"])],
    )
    .await;
    let theirs = [
        note("x").on("b"),
        note("y").on("b").made_from(&["x"]),
        note("z").on("b").made_from(&["mid"]),
    ];
    s.put(&b, theirs).await;
    let before = s.seen(&b).await;
    assert_eq!(s.delete(&a, "x").await.cascaded, [id("mid")]);
    assert_eq!(s.purge(&a, "x").await.cascaded, [id("mid")]);
    assert_eq!(s.seen(&b).await, before);
}

pub async fn caps_count_one_tenant(s: Subject) {
    let before = furnish(&s).await;
    let b = Caller::default()
        .on("b")
        .capped(None, Some(2))
        .grant(Right::Write);
    s.put(&b, [note("1").on("b"), note("2").on("b")]).await;
    let receipt = s.done(&b, vec![Op::put(note("3").on("b"))]).await;
    assert_eq!(receipt.evicted, [id("1")]);
    assert_eq!(s.seen(&grant_on("a")).await, before);
}

pub async fn upkeep_stays_within(s: Subject) {
    furnish(&s).await;
    let at_day = |tenant, day| {
        let caller = Caller::default().on(tenant).at(at(0).plus_days(day));
        let caller = caller.keeping_history(1);
        caller.grant(Right::Write).accept_clock()
    };
    let before = s.seen(&at_day("a", 99)).await;
    s.put(&at_day("b", 99), [note("1").on("b")]).await;
    let upkept = s.upkeep(&at_day("b", 99), 100).await;
    assert_eq!((upkept.expired, upkept.history, upkept.receipts), (0, 0, 0));
    assert_eq!(s.seen(&at_day("a", 99)).await, before);
    let upkept = s.upkeep(&at_day("a", 99), 100).await;
    assert_eq!((upkept.expired, upkept.history, upkept.receipts), (1, 3, 1));
}

pub async fn keys_belong_to_a_tenant(s: Subject) {
    furnish(&s).await;
    let b = grant_on("b");
    let keyed = Batch::of(Op::put(note("k").on("b"))).with_key(key("k", "b"));
    let receipt = s.done(&b, keyed).await;
    assert_eq!(receipt.commit, Some(1));
    assert!(s.has(&b, "k").await);
}

pub async fn a_foreign_record_is_refused(s: Subject) {
    furnish(&s).await;
    let b = grant_on("b");
    let ops = vec![Op::put(note("1").on("b")), Op::put(note("x").on("a"))];
    let error = s.refused(&b, ops).await;
    assert_eq!(error.kind(), ErrorKind::Denied);
    let error = s
        .refused(&grant(at(0)), vec![Op::put(note("x").on("a"))])
        .await;
    assert_eq!(error.kind(), ErrorKind::Denied);
}

pub async fn a_tenant_numbers_its_own_changes(s: Subject) {
    for n in 1..=3 {
        for tenant in ["a", "b"] {
            let op = Op::put(note("x").on(tenant));
            let receipt = s.done(&grant_on(tenant), vec![op]).await;
            assert_eq!(receipt.commit, Some(n));
        }
    }
}
