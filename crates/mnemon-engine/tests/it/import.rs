//! Bringing records in.

use mnemon_core::{ErrorKind, Fate, Record};
use mnemon_engine::OnConflict;

use crate::{all, contents, ctx, memory, named, wait};

fn exported() -> Vec<Record> {
    let elsewhere = memory();
    let drafts = vec![named("a", "tea"), named("b", "rice")];
    wait(elsewhere.records().add(&ctx(), drafts, None)).unwrap();
    all(&elsewhere)
}

#[test]
fn an_import_can_be_run_again() {
    let memory = memory();
    for round in 0..2 {
        let receipt = wait(
            memory
                .records()
                .import(&ctx(), exported(), OnConflict::Fail),
        )
        .unwrap();
        let fresh = receipt
            .items
            .iter()
            .all(|item| matches!(item.fate, Fate::Stored { .. }));
        let known = receipt
            .items
            .iter()
            .all(|item| matches!(item.fate, Fate::Duplicate { .. }));
        assert!(if round == 0 { fresh } else { known }, "{receipt:?}");
    }
    assert_eq!(all(&memory).len(), 2);
}

#[test]
fn a_clash_is_decided_by_the_caller() {
    let mut changed = exported();
    changed[0].content = "coffee".to_owned();
    let outcome = |on_conflict| {
        let memory = memory();
        wait(
            memory
                .records()
                .import(&ctx(), exported(), OnConflict::Fail),
        )
        .unwrap();
        let result = wait(
            memory
                .records()
                .import(&ctx(), changed.clone(), on_conflict),
        );
        (result.map_err(|error| error.kind()), contents(&memory))
    };
    let (failed, kept) = outcome(OnConflict::Fail);
    assert_eq!(failed.unwrap_err(), ErrorKind::Conflict);
    assert!(!kept.contains(&"coffee".to_owned()));
    let (skipped, kept) = outcome(OnConflict::Skip);
    assert!(matches!(
        skipped.unwrap().items[0].fate,
        Fate::Rejected { .. }
    ));
    assert!(!kept.contains(&"coffee".to_owned()));
    let (replaced, kept) = outcome(OnConflict::Replace);
    assert_eq!(
        replaced.unwrap().items[0].fate,
        Fate::Updated { version: 2 }
    );
    assert!(kept.contains(&"coffee".to_owned()));
}

#[test]
fn an_id_may_come_twice() {
    let mut twice = exported();
    twice.push(Record {
        content: "later".to_owned(),
        ..twice[0].clone()
    });
    let memory = memory();
    let receipt = wait(memory.records().import(&ctx(), twice, OnConflict::Replace)).unwrap();
    assert_eq!(receipt.items[2].fate, Fate::Updated { version: 2 });
    assert!(contents(&memory).contains(&"later".to_owned()));
}
