//! Every change can be taken back, and the taking back as well.

use mnemon_core::{Cause, Changes, Ctx, ErrorKind};
use mnemon_engine::{Draft, Error};

use crate::{all, contents, ctx, id, memory, named, wait};

#[test]
fn an_added_record_goes_and_comes_back() {
    let memory = memory();
    let added = wait(memory.records().add(&ctx(), vec![named("a", "tea")], None)).unwrap();
    let undone = wait(memory.records().undo(&ctx(), added.commit.unwrap())).unwrap();
    assert_eq!(contents(&memory), Vec::<String>::new());
    wait(memory.records().undo(&ctx(), undone.commit.unwrap())).unwrap();
    assert_eq!(contents(&memory), ["tea"]);
}

#[test]
fn an_update_goes_back_to_the_version_before() {
    let memory = memory();
    wait(memory.records().add(&ctx(), vec![named("a", "tea")], None)).unwrap();
    let mut record = all(&memory).remove(0);
    record.content = "coffee".to_owned();
    let updated = wait(memory.records().update(&ctx(), record)).unwrap();
    assert_eq!(contents(&memory), ["coffee"]);
    wait(memory.records().undo(&ctx(), updated.commit.unwrap())).unwrap();
    assert_eq!(contents(&memory), ["tea"]);
    let newest = wait(memory.records().history(
        &ctx(),
        &Changes {
            limit: 1,
            ..Changes::all_of_tenant(0)
        },
    ))
    .unwrap();
    assert_eq!(newest[0].cause, Cause::Undone(updated.commit.unwrap()));
}

#[test]
fn a_forgotten_source_comes_back_with_all_that_went_along_in_its_order() {
    let memory = memory();
    let mut drafts: Vec<Draft> = (0..20).map(|n| named(&format!("n{n}"), "x")).collect();
    for (number, draft) in drafts.iter_mut().enumerate().skip(1) {
        draft.derived_from = vec![id(&format!("n{}", number / 2))];
    }
    wait(memory.records().add(&ctx(), drafts, None)).unwrap();
    let before = all(&memory);
    let receipt = wait(memory.records().forget(&ctx(), &[id("n0")], None)).unwrap();
    assert_eq!(receipt.cascaded.len(), 19);
    assert!(all(&memory).is_empty());
    wait(memory.records().undo(&ctx(), receipt.commit.unwrap())).unwrap();
    let ids =
        |records: &[mnemon_core::Record]| records.iter().map(|r| r.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&all(&memory)), ids(&before));
}

#[test]
fn what_was_changed_since_is_not_overwritten() {
    let memory = memory();
    let added = wait(memory.records().add(&ctx(), vec![named("a", "tea")], None)).unwrap();
    let mut record = all(&memory).remove(0);
    record.content = "coffee".to_owned();
    wait(memory.records().update(&ctx(), record)).unwrap();
    let refused = wait(memory.records().undo(&ctx(), added.commit.unwrap())).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
    assert_eq!(contents(&memory), ["coffee"]);
}

#[test]
fn a_purged_commit_cannot_be_undone() {
    let memory = memory();
    let added = wait(memory.records().add(&ctx(), vec![named("a", "tea")], None)).unwrap();
    wait(memory.records().purge(&ctx(), &[id("a")], None)).unwrap();
    let refused = wait(memory.records().undo(&ctx(), added.commit.unwrap())).unwrap_err();
    assert!(matches!(refused, Error::NoCommit(_)), "{refused}");
}

#[test]
fn a_version_dropped_from_the_history_is_not_guessed() {
    use std::sync::Arc;

    use mnemon_core::{Ids, Policy, ram::Ram};

    let policy = Policy {
        history_days: Some(1),
        ..Policy::default()
    };
    let memory = mnemon_engine::Memory::builder(Arc::new(Ram::new()), Ids::new(7))
        .policy(policy)
        .build();
    wait(memory.records().add(&ctx(), vec![named("a", "tea")], None)).unwrap();
    let mut record = all(&memory).remove(0);
    record.content = "coffee".to_owned();
    let updated = wait(memory.records().update(&ctx(), record)).unwrap();
    let later = Ctx {
        now: ctx().now.plus_days(3),
        ..ctx()
    };
    assert_eq!(
        wait(memory.records().upkeep(&later, 100)).unwrap().history,
        1
    );
    let refused = wait(memory.records().undo(&later, updated.commit.unwrap())).unwrap_err();
    assert!(matches!(refused, Error::Lost { .. }), "{refused}");
    assert_eq!(contents(&memory), ["coffee"]);
}

/// A cascade may be larger than a batch.
#[test]
fn a_cascade_larger_than_a_batch_comes_back_whole() {
    let memory = memory();
    wait(
        memory
            .records()
            .add(&ctx(), vec![named("source", "x")], None),
    )
    .unwrap();
    for part in 0..2 {
        let drafts = (0..6000).map(|n| Draft {
            derived_from: vec![id("source")],
            ..named(&format!("n{part}-{n}"), "x")
        });
        wait(memory.records().add(&ctx(), drafts.collect(), None)).unwrap();
    }
    let count = || wait(memory.records().stats(&ctx())).unwrap().records();
    let gone = wait(memory.records().forget(&ctx(), &[id("source")], None)).unwrap();
    assert_eq!((gone.cascaded.len(), count()), (12_000, 0));
    let undone = wait(memory.records().undo(&ctx(), gone.commit.unwrap())).unwrap();
    assert_eq!((undone.items.len(), count()), (12_001, 12_001));
    wait(memory.records().undo(&ctx(), undone.commit.unwrap())).unwrap();
    assert_eq!(count(), 0, "the undo is undone as well");
}
