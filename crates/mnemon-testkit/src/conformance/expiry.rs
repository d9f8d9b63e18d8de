//! What has expired is not seen, and not kept.

use mnemon_core::{ErrorKind, Expect, Fate, Op, limits};

use super::Subject;
use crate::make::{Remade, at, grant, id, note};

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
    let count = limits::EXPIRED_PER_WRITE + 3;
    let ops = (0..count).map(|n| Op::put(note(&format!("r{n:02}")).until(at(5))));
    s.done(&grant(at(0)), ops.collect::<Vec<_>>()).await;
    let later = grant(at(6));
    s.put(&later, [note("a")]).await;
    assert_eq!(s.tally(&later).await.expired, 3);
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
