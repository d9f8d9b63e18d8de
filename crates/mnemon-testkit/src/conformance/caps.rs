//! No more notes than the cap.

use mnemon_core::{Expect, Fate, Grant, Op, Right};

use super::Subject;
use crate::make::{Caller, Remade, at, fact, grant, id, ids, limits, note};

fn capped(now: i64, short: Option<u64>, long: Option<u64>) -> Grant {
    let caller = Caller::default().at(at(now)).capped(short, long);
    caller.grant(Right::Purge)
}

pub async fn the_least_important_goes_first_then_the_oldest(s: Subject) {
    let g = grant(at(0));
    let records = [
        note("important").worth(0.9).created(at(-9)),
        note("young").worth(0.2).created(at(2)),
        note("old-later").worth(0.2).created(at(1)),
        note("least").worth(0.1).created(at(3)),
        note("old").worth(0.2).created(at(1)),
    ];
    s.put(&g, records).await;
    // Written again, `old-later` is the younger of the two that were created together.
    s.put(&g, [note("old-later").worth(0.2).created(at(1))])
        .await;
    let gone = ["least", "old", "old-later", "young", "important"];
    for (n, expected) in gone.iter().enumerate() {
        let newcomer = note(&format!("new{n}")).worth(1.0);
        let receipt = s
            .done(&capped(0, None, Some(5)), vec![Op::put(newcomer)])
            .await;
        assert_eq!(receipt.evicted, [id(expected)]);
        assert!(!s.has(&g, expected).await);
    }
    assert_eq!(s.tally(&g).await.records(), 5);
}

pub async fn expired_notes_go_before_all_others(s: Subject) {
    let g = grant(at(0));
    let records = [
        note("expired").worth(1.0).until(at(5)),
        note("weak").worth(0.1),
        fact("expired-fact").until(at(5)),
    ];
    s.put(&g, records).await;
    let later = capped(6, None, Some(2));
    let receipt = s.done(&later, vec![Op::put(note("new"))]).await;
    assert!(receipt.evicted.is_empty());
    assert_eq!(s.names(&g).await, ["weak", "new"]);
    assert!(
        s.changes(&g, "expired").await.is_empty(),
        "it leaves no trace"
    );
    let receipt = s.done(&later, vec![Op::put(note("newer"))]).await;
    assert_eq!(receipt.evicted, [id("new")]);
}

pub async fn only_notes_count(s: Subject) {
    let g = capped(0, None, Some(2));
    let facts = (0..5).map(|n| fact(&format!("f{n}")));
    s.put(&g, facts).await;
    s.put(&g, [note("a"), note("b")]).await;
    let receipt = s.done(&g, vec![Op::put(fact("f9"))]).await;
    assert!(receipt.evicted.is_empty());
    let receipt = s.done(&g, vec![Op::put(note("c"))]).await;
    assert_eq!(receipt.evicted, [id("a")]);
    assert_eq!(s.tally(&g).await.records(), 8);
    let lower = capped(0, None, Some(1));
    let receipt = s.done(&lower, vec![Op::put(fact("f10"))]).await;
    assert!(receipt.evicted.is_empty(), "no note came in");
}

pub async fn each_namespace_has_its_own_cap(s: Subject) {
    let g = capped(0, Some(1), Some(2));
    let records = [note("l1"), note("s1").short_term(), note("l2")];
    s.put(&g, records).await;
    let ops = vec![Op::put(note("s2").short_term()), Op::put(note("l3"))];
    let receipt = s.done(&g, ops).await;
    assert_eq!(receipt.evicted, ids(&["s1", "l1"]), "short-term first");
    assert_eq!(s.names(&g).await, ["l2", "s2", "l3"]);
    let uncapped = capped(0, None, Some(9));
    let receipt = s
        .done(&uncapped, vec![Op::put(note("s3").short_term())])
        .await;
    assert!(receipt.evicted.is_empty());
}

pub async fn expired_notes_make_room_in_their_own_namespace(s: Subject) {
    let records = [note("short").short_term().until(at(5)), note("weak")];
    s.put(&grant(at(0)), records).await;
    let later = capped(6, Some(1), Some(1));
    let receipt = s.done(&later, vec![Op::put(note("new"))]).await;
    assert_eq!(receipt.evicted, [id("weak")]);
}

pub async fn expired_notes_make_room_behind_other_expired_records(s: Subject) {
    let count = limits().page + limits().page.min(100);
    let facts = (0..count).map(|n| Op::put(fact(&format!("f{n}")).until(at(4))));
    for facts in facts.collect::<Vec<_>>().chunks(limits().batch_ops) {
        s.done(&grant(at(0)), facts.to_vec()).await;
    }
    let records = [note("expired").worth(1.0).until(at(5)), note("weak")];
    s.put(&grant(at(0)), records).await;
    let later = capped(6, None, Some(2));
    let receipt = s.done(&later, vec![Op::put(note("new"))]).await;
    assert!(receipt.evicted.is_empty());
    assert_eq!(s.names(&later).await, ["weak", "new"]);
    let left = s.tally(&later).await;
    assert!(
        left.expired <= (count - limits().page) as u64,
        "a page of the others goes as well"
    );
}

pub async fn an_update_evicts_nothing(s: Subject) {
    let g = capped(0, None, Some(2));
    s.put(&g, [note("a"), note("b")]).await;
    let update = Op::put_if(note("a").saying("again"), Expect::Version(1));
    let receipt = s.done(&g, vec![update]).await;
    assert!(receipt.evicted.is_empty());
    let receipt = s.delete(&capped(0, None, Some(0)), "a").await;
    assert!(receipt.evicted.is_empty(), "only what grows is cut");
    assert_eq!(s.names(&g).await, ["b"]);
}

pub async fn a_lower_cap_evicts_many(s: Subject) {
    s.put(&grant(at(0)), (0..9).map(|n| note(&format!("r{n}"))))
        .await;
    let g = capped(0, None, Some(3));
    let receipt = s.done(&g, vec![Op::put(note("new"))]).await;
    assert_eq!(receipt.evicted.len(), 7);
    assert_eq!(s.names(&g).await, ["r7", "r8", "new"]);
}

pub async fn a_weak_newcomer_goes_at_once(s: Subject) {
    let g = capped(0, None, Some(1));
    s.put(&g, [note("strong").worth(0.9)]).await;
    let receipt = s.done(&g, vec![Op::put(note("weak").worth(0.1))]).await;
    assert_eq!(receipt.items[0].fate, Fate::Stored { version: 1 });
    assert_eq!(receipt.evicted, [id("weak")]);
    assert_eq!(s.names(&g).await, ["strong"]);
}

pub async fn a_cap_of_nothing_keeps_nothing(s: Subject) {
    let g = capped(0, None, Some(0));
    let receipt = s
        .done(&g, vec![Op::put(note("a")), Op::put(note("b"))])
        .await;
    assert_eq!(receipt.evicted, ids(&["a", "b"]));
    assert!(s.names(&g).await.is_empty());
}

pub async fn what_becomes_a_note_counts(s: Subject) {
    let g = capped(0, Some(1), Some(1));
    s.put(&g, [note("a"), fact("b"), note("c").short_term()])
        .await;
    let receipt = s.done(&g, vec![Op::put(note("b"))]).await;
    assert_eq!(receipt.evicted, [id("a")]);
    let receipt = s.done(&g, vec![Op::put(note("c"))]).await;
    assert_eq!(receipt.evicted, [id("b")]);
    s.put(&g, [fact("c")]).await;
    let receipt = s.done(&g, vec![Op::put(note("d"))]).await;
    assert!(receipt.evicted.is_empty());
}
