//! A clock that is wrong for a moment erases nothing.

use mnemon_core::{Batch, Cause, Fate, Grant, Op, Right, limits};

use super::Subject;
use crate::make::{Caller, Remade, at, grant, id, key, note};

/// 20 years: what a clock is wrong by when its battery is empty or its year was mistyped.
const FAR: i64 = 20 * 365;

fn on_day(day: i64) -> Grant {
    let caller = Caller::default().at(at(0).plus_days(day));
    caller.keeping_history(10).grant(Right::Purge)
}

/// One thing of each sort that a clock can erase, and one that stays.
async fn furnish(s: &Subject) {
    let g = grant(at(0));
    let brief = || note("brief").until(at(0).plus_days(15));
    s.put(
        &g,
        [note("stays"), note("old"), note("old"), brief(), brief()],
    )
    .await;
    let keyed = Batch::of(Op::put(note("deleted").until(at(0).plus_days(15))));
    s.done(&g, keyed.with_key(key("k", "d"))).await;
    s.delete(&g, "deleted").await;
}

pub async fn a_clock_that_jumps_ahead_erases_nothing(s: Subject) {
    furnish(&s).await;
    let g = on_day(1);
    let before = s.seen(&g).await;
    let wrong = on_day(FAR);
    assert!(!s.has(&wrong, "brief").await, "hidden, as it should be");
    let upkept = s.upkeep(&wrong, 1000).await;
    assert_eq!(upkept.clock_days_ahead, Some(FAR));
    assert_eq!((upkept.expired, upkept.history, upkept.receipts), (0, 0, 0));
    assert!(!upkept.more, "nothing of it is due");
    let receipt = s.done(&wrong, vec![Op::put(note("late"))]).await;
    assert!(receipt.notices[0].contains("days ahead"), "{receipt:?}");
    s.upkeep(&wrong, 1000).await;
    // The clock is right again, and everything is there.
    let receipt = s.done(&g, vec![Op::Purge { id: id("late") }]).await;
    assert!(receipt.notices.is_empty(), "{receipt:?}");
    let mut after = s.seen(&g).await;
    after.tally.seq = before.tally.seq;
    let purge = after.feed.pop().unwrap();
    assert_eq!((purge.id, purge.cause), (id("late"), Cause::Purged));
    assert_eq!(after, before);
    let keyed = Batch::of(Op::put(note("other"))).with_key(key("k", "other"));
    s.refused(&g, keyed).await;
}

pub async fn a_jump_is_remembered_after_reopening(mut s: Subject) {
    furnish(&s).await;
    s.put(&on_day(FAR), [note("late")]).await;
    s.reopen().await;
    assert_eq!(s.upkeep(&on_day(FAR), 9).await.clock_days_ahead, Some(FAR));
    s.reopen().await;
    let upkept = s.upkeep(&on_day(FAR + 1), 1000).await;
    assert_eq!(upkept.clock_days_ahead, None);
    assert!(upkept.expired > 0);
    s.reopen().await;
    // What is believed now is the time to count from.
    let next = on_day(FAR + 1 + limits::CLOCK_STEP_DAYS);
    assert_eq!(s.upkeep(&next, 9).await.clock_days_ahead, None);
}

pub async fn a_clock_that_stays_ahead_is_believed_after_a_day(s: Subject) {
    furnish(&s).await;
    let unused = 200;
    let first = on_day(unused);
    s.put(&first, [note("again")]).await;
    assert!(s.upkeep(&first, 1000).await.clock_days_ahead.is_some());
    let almost = Caller::default().at(at(-1).plus_days(unused + 1));
    let almost = almost.keeping_history(10).grant(Right::Purge);
    assert!(s.upkeep(&almost, 1000).await.clock_days_ahead.is_some());
    let upkept = s.upkeep(&on_day(unused + 1), 1000).await;
    assert_eq!(upkept.clock_days_ahead, None);
    assert_eq!((upkept.expired, upkept.history, upkept.receipts), (2, 1, 1));
}

pub async fn upkeep_alone_keeps_up_with_the_clock(mut s: Subject) {
    furnish(&s).await;
    // Nobody writes, but somebody comes by every month.
    for month in 1..5 {
        let upkept = s.upkeep(&grant(at(0).plus_days(30 * month)), 0).await;
        assert_eq!(upkept.clock_days_ahead, None, "month {month}");
        s.reopen().await;
    }
    // A jump that only upkeep has met is remembered, too.
    assert!(s.upkeep(&on_day(FAR), 9).await.clock_days_ahead.is_some());
    s.reopen().await;
    assert_eq!(s.upkeep(&on_day(FAR + 1), 9).await.clock_days_ahead, None);
}

pub async fn an_accepted_clock_erases_at_once(mut s: Subject) {
    furnish(&s).await;
    let far = on_day(FAR);
    assert!(s.upkeep(&far, 1000).await.clock_days_ahead.is_some());
    let upkept = s.upkeep(&far.clone().accept_clock(), 1000).await;
    assert_eq!(upkept.clock_days_ahead, None);
    assert_eq!((upkept.expired, upkept.history, upkept.receipts), (2, 1, 1));
    s.reopen().await;
    // It stays accepted, also where there was nothing to erase.
    assert_eq!(s.upkeep(&far, 9).await.clock_days_ahead, None);
    s.upkeep(&on_day(2 * FAR).accept_clock(), 9).await;
    s.reopen().await;
    assert_eq!(s.upkeep(&on_day(2 * FAR), 9).await.clock_days_ahead, None);
}

pub async fn what_a_wrong_clock_replaced_is_in_the_history(s: Subject) {
    let g = grant(at(0));
    s.put(&g, [note("a").saying("mine").until(at(0).plus_days(15))])
        .await;
    let wrong = on_day(FAR);
    let receipt = s
        .done(&wrong, vec![Op::append(note("a").saying("new"))])
        .await;
    assert_eq!(receipt.items[0].fate, Fate::Stored { version: 2 });
    let before = s.changes(&on_day(1), "a").await;
    let before = before[0].before.as_ref().unwrap();
    assert_eq!(before.content, "mine");
}

pub async fn what_a_wrong_clock_cascades_to_can_be_undone(s: Subject) {
    let g = grant(at(0));
    let brief = note("b").made_from(&["a"]).until(at(0).plus_days(15));
    s.put(&g, [note("a"), brief]).await;
    let receipt = s.delete(&on_day(FAR), "a").await;
    assert_eq!(receipt.cascaded, [id("b")]);
    let changes = s.changes(&on_day(1), "b").await;
    assert!(changes[0].before.is_some() && changes[0].after.is_none());
}

pub async fn a_full_namespace_gives_up_the_weakest_while_the_clock_is_wrong(s: Subject) {
    let capped = |day: i64| {
        let caller = Caller::default().at(at(0).plus_days(day));
        caller.capped(None, Some(2)).grant(Right::Purge)
    };
    let brief = note("brief").worth(0.9).until(at(0).plus_days(15));
    s.put(&capped(0), [note("weak").worth(0.1), brief]).await;
    let receipt = s
        .done(&capped(FAR), vec![Op::put(note("new").worth(0.5))])
        .await;
    assert_eq!(receipt.evicted, [id("weak")], "which undo can bring back");
    assert!(s.has(&capped(1), "brief").await);
}

pub async fn each_tenant_has_its_own_clock(s: Subject) {
    let far = |tenant| {
        let caller = Caller::default().on(tenant).at(at(0).plus_days(FAR));
        caller.grant(Right::Purge)
    };
    s.put(&grant(at(0)), [note("a").until(at(5))]).await;
    s.put(&far("new"), [note("b").on("new").until(at(5))]).await;
    assert_eq!(s.upkeep(&far("new"), 9).await.clock_days_ahead, None);
    assert_eq!(
        s.upkeep(&far("default"), 9).await.clock_days_ahead,
        Some(FAR)
    );
    assert!(s.has(&grant(at(0)), "a").await);
}
