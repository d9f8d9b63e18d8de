//! Who changed what when, before and after.

use mnemon_core::{Batch, Cause, Change, Changes, Fate, Grant, Op, Record, Right};

use super::Subject;
use crate::make::{Caller, Remade, at, fact, grant, id, limits, note};
use crate::observe::changes_all;

fn by(actor: &str, ms: i64) -> Grant {
    Caller::default()
        .named(actor)
        .at(at(ms))
        .grant(Right::Purge)
}

fn content(image: &Option<Record>) -> Option<&str> {
    image.as_ref().map(|record| record.content.as_str())
}

pub async fn a_put_an_update_and_a_delete_are_told(s: Subject) {
    s.put(&by("ann", 1), [note("a").saying("one")]).await;
    s.put(&by("bob", 2), [note("a").saying("two")]).await;
    s.delete(&by("cli:Nguyễn", 3), "a").await;
    let changes = s.changes(&grant(at(9)), "a").await;
    let told: Vec<_> = changes
        .iter()
        .map(|c| (c.version, content(&c.before), content(&c.after)))
        .collect();
    let expected = [
        (3, Some("two"), None),
        (2, Some("one"), Some("two")),
        (1, None, Some("one")),
    ];
    assert_eq!(told, expected);
    let told: Vec<_> = changes
        .iter()
        .map(|c| (c.actor.as_str(), c.at, c.cause.clone(), c.seq, c.commit))
        .collect();
    let expected = [
        ("cli:Nguyễn", at(3), Cause::Forgotten, 3, 3),
        ("bob", at(2), Cause::Written, 2, 2),
        ("ann", at(1), Cause::Written, 1, 1),
    ];
    assert_eq!(told, expected);
    let two = changes[0].before.as_ref().unwrap();
    assert_eq!((two.seq, two.version), (2, 2), "the whole record as it was");
}

pub async fn a_cascade_is_told(s: Subject) {
    let g = grant(at(0));
    let records = [
        note("a"),
        note("b").made_from(&["a"]),
        note("c").made_from(&["b"]),
    ];
    s.put(&g, records).await;
    let receipt = s.delete(&by("ann", 5), "a").await;
    for name in ["b", "c"] {
        let changes = s.changes(&grant(at(9)), name).await;
        let Change { before, after, .. } = &changes[0];
        assert_eq!(changes[0].cause, Cause::Cascaded(id("a")));
        assert_eq!((changes[0].actor.as_str(), changes[0].at), ("ann", at(5)));
        assert_eq!(Some(changes[0].commit), receipt.commit);
        assert!(before.is_some() && after.is_none());
    }
}

pub async fn an_undo_takes_nothing_along(s: Subject) {
    let g = grant(at(0));
    s.put(&g, [note("made").made_from(&["later"])]).await;
    s.put(&g, [note("later")]).await;
    let undo = Batch {
        undoes: Some(2),
        ..Batch::of(Op::delete(id("later")))
    };
    assert!(s.done(&g, undo).await.cascaded.is_empty());
    assert_eq!(s.names(&g).await, ["made"]);
}

pub async fn an_eviction_is_told(s: Subject) {
    s.put(&by("ann", 0), [note("a"), note("b")]).await;
    let capped = Caller::default()
        .named("bob")
        .at(at(5))
        .capped(None, Some(1));
    let new = note("c").worth(1.0);
    let receipt = s
        .done(&capped.grant(Right::Write), vec![Op::put(new)])
        .await;
    let change = &s.changes(&grant(at(9)), "b").await[0];
    assert_eq!((&change.cause, change.version), (&Cause::Evicted, 2));
    assert_eq!(content(&change.before), Some("content of b"));
    assert_eq!(Some(change.commit), receipt.commit);
    assert_eq!(change.actor, "bob");
}

pub async fn an_undo_is_told(s: Subject) {
    let g = grant(at(0));
    s.put(&g, [note("a")]).await;
    let ops = vec![Op::put(note("a")), Op::put(note("b")), Op::delete(id("b"))];
    let batch = Batch {
        undoes: Some(1),
        ..Batch::from(ops)
    };
    s.done(&g, batch).await;
    assert_eq!(s.changes(&g, "a").await[0].cause, Cause::Undone(1));
    let causes = s.changes(&g, "b").await;
    assert!(causes.iter().all(|change| change.cause == Cause::Undone(1)));
    assert_eq!(causes.len(), 2);
}

async fn busy(s: &Subject) {
    let g = grant(at(0));
    for n in 0..5 {
        let text = format!("{n}");
        let ops = vec![
            Op::put(note("a").saying(&text)),
            Op::put(fact(&format!("b{n}")).made_from(&["a"])),
            Op::put(note("c").saying(&text)),
        ];
        s.done(&g, ops).await;
    }
    s.delete(&g, "a").await;
}

pub async fn pages_go_on_before(s: Subject) {
    busy(&s).await;
    let g = grant(at(0));
    for of in [None, Some(id("a")), Some(id("b2")), Some(id("none"))] {
        let wanted = Changes {
            id: of.clone(),
            ..Changes::all_of_tenant(0)
        };
        let store = &**s.store();
        let whole = changes_all(store, &g, &wanted, limits().changes)
            .await
            .unwrap();
        let newest_first = whole.windows(2).all(|two| two[0].seq > two[1].seq);
        assert!(newest_first, "{of:?}");
        let expected = match of.as_ref().map(|id| id.as_str()) {
            None => 21,
            Some("a") => 6,
            Some("b2") => 2,
            _ => 0,
        };
        assert_eq!(whole.len(), expected, "{of:?}");
        for page in [1, 2, 5, 20] {
            let paged = changes_all(store, &g, &wanted, page).await.unwrap();
            assert_eq!(paged, whole, "{of:?} in pages of {page}");
        }
    }
}

pub async fn a_commit_can_be_asked_for(s: Subject) {
    busy(&s).await;
    let g = grant(at(0));
    let of = async |commit, id| {
        let wanted = Changes {
            id,
            commit: Some(commit),
            ..Changes::all_of_tenant(0)
        };
        changes_all(&**s.store(), &g, &wanted, 2).await.unwrap()
    };
    let second: Vec<(u64, String)> = of(4, None)
        .await
        .iter()
        .map(|change| (change.seq, change.id.to_string()))
        .collect();
    let expected = [(6, "c"), (5, "b1"), (4, "a")];
    assert_eq!(second, expected.map(|(seq, id)| (seq, id.to_owned())));
    assert_eq!(of(16, None).await.len(), 6, "a delete and its cascade");
    let one = of(4, Some(id("a"))).await;
    assert_eq!((one.len(), one[0].version), (1, 2));
    assert!(of(5, None).await.is_empty(), "5 is no commit's number");
    assert!(of(4, Some(id("b0"))).await.is_empty());
}

fn continuing(commit: Option<u64>, ops: Vec<Op>) -> Batch {
    Batch {
        continues: commit,
        ..Batch::from(ops)
    }
}

/// Batches under one number, with changes of others in between.
pub async fn a_continued_commit_is_listed_whole(mut s: Subject) {
    let g = by("ann", 1);
    let ops = vec![Op::put(note("a")), Op::put(note("b").made_from(&["a"]))];
    let first = s.done(&g, ops).await.commit;
    s.put(&by("bob", 2), [note("x"), note("y")]).await;
    let ops = vec![Op::put(note("a").saying("two")), Op::put(note("c"))];
    let second = s.done(&by("ann", 3), continuing(first, ops)).await;
    s.put(&by("bob", 4), [note("x").saying("two")]).await;
    let ops = vec![Op::delete(id("a")), Op::delete(id("none"))];
    let third = s.done(&by("ann", 5), continuing(first, ops)).await;
    assert_eq!([second.commit, third.commit], [first; 2]);
    let nothing = continuing(first, vec![Op::delete(id("none"))]);
    assert_eq!(s.done(&g, nothing).await.commit, None);

    let whole = [
        (9, "b", 2, 5),
        (8, "a", 3, 5),
        (6, "c", 1, 3),
        (5, "a", 2, 3),
        (2, "b", 1, 1),
        (1, "a", 1, 1),
    ];
    let whole = whole.map(|(seq, id, version, ms)| (seq, id.to_owned(), version, at(ms)));
    let wanted = Changes {
        commit: first,
        ..Changes::all_of_tenant(0)
    };
    for round in 0..3 {
        for page in 1..8 {
            let listed = changes_all(&**s.store(), &g, &wanted, page).await.unwrap();
            let listed: Vec<_> = listed
                .iter()
                .map(|c| (c.seq, c.id.to_string(), c.version, c.at))
                .collect();
            assert_eq!(listed, whole, "round {round}, pages of {page}");
        }
        // Then from the disk, and then after a purge of another record, which rewrites a log.
        if round == 1 {
            s.purge(&g, "y").await;
        }
        s.reopen().await;
    }
    let other = s.changes(&g, "x").await;
    let commits: Vec<u64> = other.iter().map(|change| change.commit).collect();
    assert_eq!(commits, [7, 3]);
}

pub async fn only_a_commit_that_has_begun_is_continued(s: Subject) {
    let g = by("ann", 1);
    let put = |name: &str| vec![Op::put(note(name))];
    s.refused(&g, continuing(Some(1), put("a"))).await;
    s.put(&g, [note("a")]).await;
    for commit in [0, 2, u64::MAX] {
        s.refused(&g, continuing(Some(commit), put("b"))).await;
    }
    assert_eq!(s.done(&g, put("b")).await.commit, Some(2));
}

pub async fn one_page_is_bounded(s: Subject) {
    let g = grant(at(0));
    let more = limits().changes.min(5);
    let count = limits().changes + more;
    let ops = (0..count).map(|n| Op::put(note("a").saying(&format!("{n}"))));
    s.done(&g, ops.collect::<Vec<_>>()).await;
    let wanted = |limit, before| Changes {
        limit,
        before,
        ..Changes::all_of_tenant(0)
    };
    let asked = wanted(usize::MAX, None);
    let first = s.store().changes(&g, &asked).await.unwrap();
    assert_eq!(first.len(), limits().changes);
    let asked = wanted(usize::MAX, first.last().map(|change| change.seq));
    let rest = s.store().changes(&g, &asked).await.unwrap();
    assert_eq!(rest.len(), more);
    let none = s.store().changes(&g, &wanted(0, None)).await.unwrap();
    assert!(none.is_empty());
}

pub async fn versions_go_on_after_a_delete(s: Subject) {
    let g = grant(at(0));
    s.put(&g, [note("a").saying("one")]).await;
    s.delete(&g, "a").await;
    let receipt = s.done(&g, vec![Op::put(note("a").saying("three"))]).await;
    assert_eq!(receipt.items[0].fate, Fate::Stored { version: 3 });
    let changes = s.changes(&g, "a").await;
    let told: Vec<_> = changes
        .iter()
        .map(|c| (c.version, content(&c.before), content(&c.after)))
        .collect();
    let expected = [
        (3, None, Some("three")),
        (2, Some("one"), None),
        (1, None, Some("one")),
    ];
    assert_eq!(told, expected);
    assert!(changes.iter().all(|change| change.before_known));
    assert_eq!(s.tally(&g).await.history, 2);
}

fn keeping(days: i64, now_days: i64) -> Grant {
    let now = at(0).plus_days(now_days);
    let caller = Caller::default().at(now).keeping_history(days);
    caller.grant(Right::Write).accept_clock()
}

fn on_day(day: i64) -> Grant {
    grant(at(0).plus_days(day))
}

pub async fn upkeep_prunes_by_the_policy(mut s: Subject) {
    s.put(&on_day(0), [note("a").saying("one"), note("b")])
        .await;
    s.put(&on_day(10), [note("a").saying("two")]).await;
    s.put(&on_day(20), [note("a").saying("three")]).await;
    assert_eq!(
        s.upkeep(&on_day(999).accept_clock(), 10).await.history,
        0,
        "no policy"
    );
    // What was replaced on day 10 was still there until then: it counts from day 10.
    assert_eq!(s.upkeep(&keeping(5, 15), 10).await.history, 0);
    let upkept = s.upkeep(&keeping(5, 16), 10).await;
    assert_eq!((upkept.history, upkept.more), (1, false));
    s.reopen().await;
    let changes = s.changes(&on_day(30), "a").await;
    let told: Vec<_> = changes
        .iter()
        .map(|c| (c.version, content(&c.before), content(&c.after)))
        .collect();
    assert_eq!(
        told,
        [(3, Some("two"), Some("three")), (2, None, Some("two"))]
    );
    let known: Vec<bool> = changes.iter().map(|change| change.before_known).collect();
    assert_eq!(known, [true, false], "the history was cut short there");
    assert_eq!(s.upkeep(&keeping(5, 999), 10).await.history, 1);
    assert_eq!(
        s.names(&on_day(999)).await,
        ["b", "a"],
        "what is current stays"
    );
    assert_eq!(s.tally(&on_day(999)).await.history, 0);
}

pub async fn pruning_is_limited_and_starts_with_the_oldest(s: Subject) {
    let versions = (0..6).map(|n| note("a").saying(&format!("v{n}")));
    s.put(&on_day(0), versions).await;
    let upkept = s.upkeep(&keeping(1, 9), 2).await;
    assert_eq!((upkept.history, upkept.more), (2, true));
    let left: Vec<u64> = s
        .changes(&on_day(9), "a")
        .await
        .iter()
        .map(|c| c.seq)
        .collect();
    assert_eq!(left, [6, 5, 4, 3]);
    let upkept = s.upkeep(&keeping(1, 9), 100).await;
    assert_eq!((upkept.history, upkept.more), (3, false));
}

pub async fn pruning_takes_deleted_records_whole(s: Subject) {
    s.put(&on_day(0), [note("a"), note("b")]).await;
    s.delete(&on_day(1), "a").await;
    assert_eq!(s.upkeep(&keeping(5, 6), 10).await.history, 0);
    assert_eq!(s.upkeep(&keeping(5, 7), 10).await.history, 2);
    assert!(s.changes(&on_day(7), "a").await.is_empty());
    assert_eq!(s.tally(&on_day(7)).await.history, 0);
    let receipt = s.done(&on_day(7), vec![Op::put(note("a"))]).await;
    assert_eq!(receipt.items[0].fate, Fate::Stored { version: 1 });
}

pub async fn pruned_links_are_gone(s: Subject) {
    s.put(&on_day(0), [note("a"), note("b").made_from(&["a"])])
        .await;
    s.delete(&on_day(0), "b").await;
    // One at a time, so that the old version goes before the deletion does.
    s.upkeep(&keeping(1, 9), 1).await;
    s.upkeep(&keeping(1, 9), 1).await;
    s.put(&on_day(9), [note("b").saying("on its own")]).await;
    assert!(s.delete(&on_day(9), "a").await.cascaded.is_empty());
    assert!(s.has(&on_day(9), "b").await);
}

pub async fn pruning_keeps_the_links_of_what_is_left(s: Subject) {
    let twice = |name| [note(name).made_from(&["a"]), note(name).made_from(&["a"])];
    s.put(&on_day(0), [note("a")]).await;
    s.put(&on_day(0), twice("live")).await;
    s.put(&on_day(0), twice("gone")).await;
    s.delete(&on_day(0), "gone").await;
    // The first version of each; of the deleted one the second is left.
    assert_eq!(s.upkeep(&keeping(1, 9), 2).await.history, 2);
    assert_eq!(s.delete(&on_day(9), "a").await.cascaded, [id("live")]);
    let receipt = s.purge(&on_day(9), "a").await;
    assert_eq!(receipt.cascaded, [id("gone"), id("live")]);
}
