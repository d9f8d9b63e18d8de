//! What has expired is not seen, and not kept.

use mnemon_core::{Batch, Change, ErrorKind, Expect, Fate, Grant, Op, Right};

use super::Subject;
use crate::make::{Caller, Remade, at, grant, id, key, limits, note};

pub async fn an_expired_record_is_invisible_at_once(s: Subject) {
    s.put(&grant(at(0)), [note("a").until(at(10)), note("b")])
        .await;
    let last = grant(at(10));
    assert!(s.has(&last, "a").await);
    assert_eq!(s.names(&last).await, ["a", "b"]);
    assert_eq!(s.changes(&last, "a").await.len(), 1);
    let after = grant(at(11));
    assert!(!s.has(&after, "a").await);
    let seen = s.seen(&after).await;
    assert_eq!(
        (seen.written.len(), seen.newest.len(), seen.oldest.len()),
        (1, 1, 1)
    );
    assert!(s.changes(&after, "a").await.is_empty());
    assert!(seen.changes.iter().all(|change| change.id == id("b")));
}

pub async fn the_tally_counts_what_upkeep_has_not_erased(s: Subject) {
    s.put(&grant(at(0)), [note("a").until(at(10)), note("b")])
        .await;
    let tally = s.tally(&grant(at(10))).await;
    assert_eq!((tally.records(), tally.expired), (2, 0));
    let tally = s.tally(&grant(at(11))).await;
    assert_eq!((tally.records(), tally.expired), (2, 1));
}

pub async fn upkeep_erases_what_expired(mut s: Subject) {
    let g = grant(at(0));
    let records = [note("a"), note("a").until(at(10)), note("b").until(at(20))];
    s.put(&g, records).await;
    assert_eq!(s.upkeep(&grant(at(10)), 10).await.expired, 0);
    let later = grant(at(11));
    assert_eq!(s.upkeep(&later, 10).await.expired, 1);
    let tally = s.tally(&later).await;
    assert_eq!((tally.records(), tally.expired, tally.history), (1, 0, 0));
    assert_eq!(tally.seq, 3);
    s.reopen().await;
    // Asked as of a moment before it expired, too: it is gone, not hidden.
    assert!(!s.has(&g, "a").await);
    assert!(s.changes(&g, "a").await.is_empty());
    assert_eq!(s.names(&g).await, ["b"]);
}

pub async fn upkeep_stops_at_its_limit(s: Subject) {
    let expiring = |n: i64| note(&format!("r{n}")).until(at(20 - n));
    let ops = (0..7).map(|n| Op::put(expiring(n)));
    s.done(&grant(at(0)), ops.collect::<Vec<_>>()).await;
    let later = grant(at(100));
    let first = s.upkeep(&later, 3).await;
    assert_eq!((first.expired, first.more), (3, true));
    // The longest expired went first.
    assert_eq!(s.names(&grant(at(0))).await, ["r0", "r1", "r2", "r3"]);
    let mut erased = 3;
    for _ in 0..9 {
        let upkept = s.upkeep(&later, 3).await;
        erased += upkept.expired;
        if !upkept.more {
            break;
        }
    }
    assert_eq!(erased, 7);
    assert!(!s.upkeep(&later, 3).await.more);
}

pub async fn writes_clear_a_little(s: Subject) {
    let rest = limits().expired_per_write.min(3);
    let count = limits().expired_per_write + rest;
    let ops = (0..count).map(|n| Op::put(note(&format!("r{n:02}")).until(at(5))));
    s.done(&grant(at(0)), ops.collect::<Vec<_>>()).await;
    let later = grant(at(6));
    s.put(&later, [note("a")]).await;
    assert_eq!(s.tally(&later).await.expired, rest as u64);
    s.put(&later, [note("a")]).await;
    assert_eq!(s.tally(&later).await.expired, 0);
    assert_eq!(s.names(&grant(at(0))).await, ["a"]);
}

pub async fn a_put_over_an_expired_record_starts_anew(s: Subject) {
    let g = grant(at(0));
    s.put(
        &g,
        [
            note("a").saying("older"),
            note("a").saying("old").until(at(5)),
        ],
    )
    .await;
    let later = grant(at(6));
    let receipt = s.done(&later, vec![Op::put(note("a").saying("new"))]).await;
    assert_eq!(receipt.items[0].fate, Fate::Stored { version: 3 });
    for as_of in [g, later] {
        let changes = s.changes(&as_of, "a").await;
        assert_eq!(changes.len(), 1);
        assert_eq!((changes[0].before.is_none(), changes[0].version), (true, 3));
    }
}

pub async fn an_expired_record_is_absent_to_expectations(s: Subject) {
    s.put(
        &grant(at(0)),
        [note("a").until(at(5)), note("b").until(at(5))],
    )
    .await;
    let later = grant(at(6));
    let stale = Op::put_if(note("a"), Expect::Version(1));
    let error = s.refused(&later, vec![stale]).await;
    assert_eq!(error.kind(), ErrorKind::Conflict);
    let receipt = s
        .done(&later, vec![Op::append(note("a")), Op::delete(id("b"))])
        .await;
    assert_eq!(receipt.items[1].fate, Fate::Missing);
    assert_eq!(s.names(&later).await, ["a"]);
}

pub async fn at_its_last_moment_a_record_is_there(s: Subject) {
    let brief = |name| note(name).until(at(5));
    let records = [brief("a"), brief("b"), brief("c").made_from(&["b"])];
    s.put(&grant(at(0)), records).await;
    let ops = vec![
        Op::put_if(note("a"), Expect::Version(1)),
        Op::delete(id("b")),
    ];
    let receipt = s.done(&grant(at(5)), ops).await;
    let fates: Vec<&Fate> = receipt.items.iter().map(|item| &item.fate).collect();
    assert_eq!(fates, [&Fate::Updated { version: 2 }, &Fate::Deleted]);
    assert_eq!(receipt.cascaded, [id("c")]);
}

pub async fn a_later_expiry_keeps_the_record(s: Subject) {
    let g = grant(at(0));
    s.put(&g, [note("a").until(at(5)), note("b").until(at(5))])
        .await;
    s.put(&g, [note("a").until(at(50)), note("b")]).await;
    let later = grant(at(6));
    s.upkeep(&later, 10).await;
    assert_eq!(s.names(&later).await, ["a", "b"]);
    assert_eq!(s.names(&grant(at(51))).await, ["b"]);
}

pub async fn a_version_that_expired_is_not_shown_as_history(s: Subject) {
    let g = grant(at(0));
    s.put(&g, [note("a").until(at(5)), note("a").saying("kept")])
        .await;
    assert_eq!(s.changes(&grant(at(5)), "a").await.len(), 2);
    let changes = s.changes(&grant(at(6)), "a").await;
    assert_eq!(changes.len(), 1);
    assert_eq!((changes[0].version, &changes[0].before), (2, &None));
    assert!(!changes[0].before_known);
    // Nor is a deletion of what has expired since: it says what was there.
    s.put(&g, [note("b").until(at(5))]).await;
    s.delete(&g, "b").await;
    assert_eq!(s.changes(&grant(at(5)), "b").await.len(), 2);
    assert!(s.changes(&grant(at(6)), "b").await.is_empty());
}

pub async fn what_is_expired_when_written_is_never_seen(s: Subject) {
    let g = grant(at(10));
    let receipt = s.done(&g, vec![Op::put(note("a").until(at(9)))]).await;
    assert_eq!(receipt.items[0].fate, Fate::Stored { version: 1 });
    assert!(!s.has(&g, "a").await);
    assert!(s.changes(&g, "a").await.is_empty());
}

pub async fn a_cascade_keeps_nothing_expired(s: Subject) {
    let g = grant(at(0));
    let records = [
        note("a"),
        note("b").made_from(&["a"]).until(at(5)),
        note("c").made_from(&["b"]),
    ];
    s.put(&g, records).await;
    let receipt = s.delete(&grant(at(6)), "a").await;
    assert_eq!(
        receipt.cascaded,
        [id("c")],
        "what is not seen is not deleted"
    );
    // As of then: erased, not moved to the history.
    assert!(s.changes(&g, "b").await.is_empty());
    assert_eq!(s.tally(&grant(at(6))).await.history, 4);
}

/// What history holds of the record, newest first: versions, and what was before each if known.
async fn told(s: &Subject, ms: i64, name: &str) -> Vec<(u64, Option<Option<String>>)> {
    let changes = s.changes(&grant(at(ms)), name).await;
    let before = |change: &Change| change.before.as_ref().map(|record| record.content.clone());
    let told = changes
        .iter()
        .map(|change| (change.version, change.before_known.then(|| before(change))));
    told.collect()
}

pub async fn upkeep_erases_replaced_versions_that_expired(mut s: Subject) {
    let g = grant(at(0));
    s.put(&g, [note("a").until(at(5)), note("a"), note("b")])
        .await;
    assert_eq!(s.upkeep(&grant(at(5)), 10).await.expired, 0);
    let upkept = s.upkeep(&grant(at(6)), 10).await;
    assert_eq!((upkept.expired, upkept.history), (1, 0));
    assert_eq!(s.tally(&g).await.history, 0);
    for _ in 0..2 {
        // Asked as of a moment before it expired, too: it is gone, not hidden.
        assert_eq!(told(&s, 0, "a").await, [(2, None)]);
        assert_eq!(s.names(&g).await, ["a", "b"]);
        s.reopen().await;
    }
}

pub async fn upkeep_erases_deleted_records_that_expired(mut s: Subject) {
    let g = grant(at(0));
    let brief = |name| note(name).until(at(5));
    s.put(&g, [note("a"), brief("a"), brief("b"), note("c")])
        .await;
    for name in ["a", "b", "c"] {
        s.delete(&g, name).await;
    }
    assert_eq!(s.upkeep(&grant(at(5)), 10).await.expired, 0);
    // With all its versions, as if it had not been deleted: each record is one piece.
    assert_eq!(s.upkeep(&grant(at(6)), 10).await.expired, 2);
    s.reopen().await;
    assert!(s.changes(&g, "a").await.is_empty());
    assert!(s.changes(&g, "b").await.is_empty());
    assert_eq!(s.changes(&g, "c").await.len(), 2);
    let tally = s.tally(&g).await;
    assert_eq!((tally.history, tally.seq), (2, 7));
    let receipt = s.done(&grant(at(6)), vec![Op::append(note("a"))]).await;
    assert_eq!(receipt.items[0].fate, Fate::Stored { version: 1 });
}

pub async fn a_deletion_expires_with_what_it_deleted(mut s: Subject) {
    let g = grant(at(0));
    s.put(&g, [note("a").until(at(5))]).await;
    s.delete(&g, "a").await;
    s.put(&g, [note("a").saying("new")]).await;
    let alive = told(&s, 5, "a").await;
    let one = Some(Some("content of a".to_owned()));
    assert_eq!(alive, [(3, Some(None)), (2, one), (1, Some(None))]);
    // Seen from outside it makes no difference whether upkeep came by, or half-way.
    for more in [true, false] {
        assert_eq!(told(&s, 6, "a").await, [(3, None)]);
        let upkept = s.upkeep(&grant(at(6)), 1).await;
        assert_eq!((upkept.expired, upkept.more), (1, more));
        s.reopen().await;
    }
    assert_eq!(told(&s, 0, "a").await, [(3, None)]);
    assert_eq!(s.tally(&g).await.history, 0);
}

pub async fn expired_history_goes_by_expiry_then_number(s: Subject) {
    let g = grant(at(0));
    for (name, ms) in [("a", 9), ("b", 5), ("c", 7), ("d", 5)] {
        s.put(&g, [note(name).until(at(ms)), note(name)]).await;
    }
    s.put(&g, [note("current").until(at(30))]).await;
    let later = grant(at(31));
    let mut left = vec!["a", "b", "c", "d"];
    assert_eq!(s.upkeep(&later, 1).await.expired, 1);
    assert!(!s.has(&g, "current").await, "what is current goes first");
    for name in ["b", "d", "c", "a"] {
        assert_eq!(s.tally(&g).await.history, left.len() as u64);
        let upkept = s.upkeep(&later, 1).await;
        left.retain(|other| *other != name);
        assert_eq!((upkept.expired, upkept.more), (1, !left.is_empty()));
        assert_eq!(told(&s, 0, name).await, [(2, None)]);
        for name in &left {
            assert_eq!(told(&s, 0, name).await.len(), 2);
        }
    }
}

pub async fn erased_history_takes_its_links_along(s: Subject) {
    let g = grant(at(0));
    s.put(&g, [note("a"), note("b").made_from(&["a"]).until(at(5))])
        .await;
    s.delete(&g, "b").await;
    s.put(&g, [note("c").made_from(&["b"])]).await;
    assert_eq!(s.upkeep(&grant(at(6)), 10).await.expired, 1);
    assert!(s.delete(&grant(at(6)), "a").await.cascaded.is_empty());
    assert!(s.has(&g, "c").await);
}

pub async fn erasing_history_keeps_the_links_of_what_is_left(mut s: Subject) {
    let g = grant(at(0));
    let twice = |name| {
        let first = note(name).made_from(&["x"]).until(at(5));
        [first, note(name).made_from(&["a"])]
    };
    s.put(&g, [note("a"), note("x")]).await;
    s.put(&g, twice("live")).await;
    s.put(&g, twice("gone")).await;
    s.delete(&g, "gone").await;
    assert_eq!(s.upkeep(&grant(at(6)), 10).await.expired, 2);
    s.reopen().await;
    assert!(s.delete(&grant(at(6)), "x").await.cascaded.is_empty());
    assert_eq!(
        s.purge(&grant(at(6)), "a").await.cascaded,
        [id("gone"), id("live")]
    );
}

pub async fn what_was_before_is_the_version_right_before(s: Subject) {
    let g = grant(at(0));
    let versions = [
        note("a").saying("one"),
        note("a").saying("two").until(at(5)),
        note("a").saying("three"),
        note("a").saying("four"),
    ];
    s.put(&g, versions).await;
    let cut = [
        (4, Some(Some("three".to_owned()))),
        (3, None),
        (1, Some(None)),
    ];
    assert_eq!(told(&s, 6, "a").await, cut);
    assert_eq!(s.upkeep(&grant(at(6)), 10).await.expired, 1);
    assert_eq!(told(&s, 6, "a").await, cut);
    assert_eq!(told(&s, 0, "a").await, cut);
}

pub async fn what_is_left_counts_from_the_next_change(s: Subject) {
    let on = |day: i64| at(0).plus_days(day);
    let keeping = |now| Caller::default().at(now).keeping_history(5);
    s.put(&grant(on(0)), [note("a")]).await;
    s.put(&grant(on(1)), [note("a").until(on(12))]).await;
    s.put(&grant(on(10)), [note("a")]).await;
    assert_eq!(s.upkeep(&grant(on(13)), 10).await.expired, 1);
    let upkept = s.upkeep(&keeping(on(15)).grant(Right::Write), 10).await;
    assert_eq!(upkept.history, 0);
    let upkept = s.upkeep(&keeping(on(16)).grant(Right::Write), 10).await;
    assert_eq!(upkept.history, 1);
}

/// One thing of each sort that upkeep does, due on day 40: a record, an old version that expired,
/// one that is old, and a receipt.
async fn one_of_each(s: &Subject) -> Grant {
    let g = grant(at(0));
    s.put(&g, [note("old"), note("old")]).await;
    s.put(&g, [note("brief").until(at(5)), note("brief")]).await;
    let keyed = Batch::from(vec![Op::put(note("current").until(at(9)))]);
    s.done(&g, keyed.with_key(key("k", "d"))).await;
    let later = Caller::default().at(at(0).plus_days(40));
    let later = later.keeping_history(10).grant(Right::Write);
    later.accept_clock()
}

pub async fn upkeep_goes_in_order(s: Subject) {
    let later = one_of_each(&s).await;
    let mut counts = Vec::new();
    for _ in 0..5 {
        let upkept = s.upkeep(&later, 1).await;
        let history = s.tally(&later).await.history;
        counts.push((upkept.expired, upkept.history, upkept.receipts, history));
    }
    let expected = [
        (1, 0, 0, 2),
        (1, 0, 0, 1),
        (0, 1, 0, 0),
        (0, 0, 1, 0),
        (0, 0, 0, 0),
    ];
    assert_eq!(counts, expected);
}

pub async fn upkeep_knows_whether_there_is_more(s: Subject) {
    let nothing_yet = s.upkeep(&grant(at(0)), 0).await;
    assert!(!nothing_yet.more);
    let later = one_of_each(&s).await;
    for left in (1..=4).rev() {
        assert!(s.upkeep(&later, 0).await.more, "{left} are left");
        assert_eq!(s.upkeep(&later, 1).await.more, left > 1, "of {left}");
    }
    assert!(!s.upkeep(&later, 0).await.more);
    // What is not due does not count.
    s.put(&later, [note("old"), note("brief").until(later.now())])
        .await;
    assert!(!s.upkeep(&later, 0).await.more);
}
