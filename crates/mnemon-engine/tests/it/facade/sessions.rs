use std::sync::Arc;

use mnemon_core::ram::Ram;
use mnemon_core::{Ctx, ErrorKind, Id, Ids, Kind, Owner, Record, Role, Scope, Store};
use mnemon_engine::{Draft, Memory, Query, Utterance};
use proptest::prelude::*;
use serde_json::json;

use super::{event, payload, query, say, write};
use crate::{all, ctx, id, memory, named, wait};

fn forget(memory: &Memory) -> mnemon_engine::Forgotten {
    wait(memory.delete_session(&ctx(), "ann", "s1", false)).unwrap()
}

fn made_from(name: &str, sources: &[&Id]) -> Draft {
    Draft {
        derived_from: sources.iter().map(|&source| source.clone()).collect(),
        ..named(name, "green tea, derived")
    }
}

fn names(memory: &Memory) -> Vec<String> {
    let mut names: Vec<String> = all(memory).into_iter().map(|r| r.id.to_string()).collect();
    names.sort();
    names
}

fn found(memory: &Memory, text: &str) -> Vec<Record> {
    let hits = wait(memory.records().search(&ctx(), &Query::new(text))).unwrap();
    hits.into_iter().map(|hit| hit.record).collect()
}

#[test]
fn what_belongs_to_the_session_goes_and_what_outlives_it_stays() {
    let memory = memory();
    super::reading::fill(&memory);
    write(&memory, Scope::Dialog, json!({"summary": "of green tea"})).unwrap();
    write(&memory, Scope::State, json!({"tasks": [{"id": "a"}]})).unwrap();
    write(
        &memory,
        Scope::State,
        json!({"task_id": "a", "step": "b", "status": "done"}),
    )
    .unwrap();
    for (user, session) in [("ann", "s2"), ("bob", "s1")] {
        let mut other = event(
            Scope::Dialog,
            json!({"role": "user", "content": "green tea, too"}),
        );
        (other.user_id, other.session_id) = (user.to_owned(), session.to_owned());
        wait(memory.write(&ctx(), &other)).unwrap();
    }
    let gone = forget(&memory);
    assert_eq!((gone.records, gone.kept), (6, 0));
    let left: Vec<(Scope, Option<String>)> = all(&memory)
        .into_iter()
        .map(|record| (record.scope, record.owner.session))
        .collect();
    assert_eq!(left.len(), 5, "{left:?}");
    assert!(left.iter().all(|(scope, session)| match scope {
        Scope::Dialog => session.is_some(),
        Scope::State | Scope::Experience => false,
        Scope::Semantic | Scope::Procedural | Scope::Profile => session.is_none(),
    }));
    for record in found(&memory, "green tea") {
        let owner = &record.owner;
        assert!(!(owner.user.as_deref() == Some("ann") && owner.session.as_deref() == Some("s1")));
    }
    let items = wait(memory.read(&ctx(), &query(Scope::ALL))).unwrap();
    let shown = serde_json::to_value(items.iter().map(payload).collect::<Vec<_>>()).unwrap();
    assert_eq!(shown[0]["turns"], json!([]));
    assert_eq!(shown[0].get("summary"), None);
    assert_eq!(
        (&shown[1]["version"], &shown[1]["tasks"]),
        (&json!(0), &json!([]))
    );
    assert_eq!(shown[4]["profile"]["name"], "Ann");
    assert_eq!(shown[5]["failures"], json!([]));
    let again = forget(&memory);
    assert_eq!(again, mnemon_engine::Forgotten::default());
}

#[test]
fn what_has_another_source_stays_without_the_session() {
    let memory = memory();
    let said = say(&memory, 0, Role::User, "green tea").items[0].id.clone();
    let book = id("book");
    let records = memory.records();
    let drafts = vec![
        named("book", "a book of tea"),
        made_from("only", &[&said]),
        made_from("both", &[&said, &book]),
        made_from("of-only", &[&id("only")]),
        made_from("of-both", &[&id("both"), &id("only")]),
        made_from("circle-a", &[&said, &id("circle-b")]),
        made_from("circle-b", &[&id("circle-a")]),
    ];
    wait(records.add(&ctx(), drafts, None)).unwrap();
    let profile = Draft {
        scope: Some(Scope::Profile),
        kind: Some(Kind::Profile),
        ..made_from("profile", &[&said])
    };
    wait(records.add(&ctx(), vec![profile], None)).unwrap();
    let gone = forget(&memory);
    assert_eq!(names(&memory), ["book", "both", "of-both", "profile"]);
    assert_eq!((gone.records, gone.kept), (5, 3));
    let by_name = |name: &str| all(&memory).into_iter().find(|r| r.id == id(name)).unwrap();
    assert_eq!(by_name("both").derived_from, std::slice::from_ref(&book));
    assert_eq!(by_name("of-both").derived_from, [id("both")]);
    assert!(by_name("profile").derived_from.is_empty());
    // What is left hangs together as before.
    wait(records.forget(&ctx(), &[book], None)).unwrap();
    assert_eq!(names(&memory), ["profile"]);
}

#[test]
fn it_can_be_undone_or_be_for_good() {
    let memory = memory();
    let said = say(&memory, 0, Role::User, "green tea").items[0].id.clone();
    let gone = forget(&memory);
    assert!(all(&memory).is_empty());
    for commit in gone.commits.iter().rev() {
        wait(memory.records().undo(&ctx(), *commit)).unwrap();
    }
    assert_eq!(names(&memory), [said.to_string()]);
    let gone = wait(memory.delete_session(&ctx(), "ann", "s1", true)).unwrap();
    assert_eq!((gone.records, gone.commits.len()), (1, 0));
    assert_eq!(wait(memory.records().stats(&ctx())).unwrap().history, 0);
}

#[test]
fn a_session_larger_than_a_page_or_a_batch_goes_whole() {
    let memory = memory();
    let owner = Owner {
        session: Some("s1".into()),
        ..super::ann()
    };
    for _ in 0..3 {
        let said = (0..4000).map(|n| Utterance::text(Role::User, format!("tea {n}")));
        wait(
            memory
                .dialog()
                .append_all(&ctx(), &owner, said.collect(), None),
        )
        .unwrap();
    }
    say(&memory, 9, Role::User, "and one more");
    assert_eq!(forget(&memory).records, 12_001);
    assert!(all(&memory).is_empty());
    assert!(found(&memory, "tea").is_empty());
}

/// The session's records and what was derived from them lie on different stores.
#[test]
fn it_reaches_every_store() {
    let store = || -> Arc<dyn Store> { Arc::new(Ram::new()) };
    let memory = Memory::builder(store(), Ids::new(7))
        .dialog(store())
        .experience(store())
        .semantic(store())
        .build();
    super::reading::fill(&memory);
    let turn = wait(memory.dialog().get_context(&ctx(), "ann", "s1", 1)).unwrap();
    let said = &turn.turns[0].messages[0].id;
    let semantic = memory.records_of(Scope::Semantic);
    let drafts = vec![
        named("book", "a book of tea"),
        made_from("only", &[said]),
        made_from("both", &[said, &id("book")]),
    ];
    wait(semantic.add(&ctx(), drafts, None)).unwrap();
    let gone = forget(&memory);
    assert_eq!((gone.records, gone.kept), (4, 1));
    let there = |id: &str| {
        let found = wait(semantic.get(&ctx(), &[id.parse().unwrap()])).unwrap();
        found[0].is_some()
    };
    assert_eq!(
        (there("only"), there("both"), there("book")),
        (false, true, true)
    );
    let items = wait(memory.read(&ctx(), &query(&[Scope::Dialog, Scope::Experience]))).unwrap();
    let shown = serde_json::to_value(items).unwrap();
    assert_eq!(shown[0]["payload"]["turns"], json!([]));
    assert_eq!(shown[1]["payload"]["failures"], json!([]));
}

#[test]
fn a_session_is_named_in_full() {
    let memory = memory();
    for (user, session) in [("", "s1"), ("ann", " "), ("ann", "a\nb")] {
        let refused = wait(memory.delete_session(&ctx(), user, session, false)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid);
    }
    let elsewhere = Ctx {
        tenant: "other".parse().unwrap(),
        ..ctx()
    };
    say(&memory, 0, Role::User, "hello");
    let gone = wait(memory.delete_session(&elsewhere, "ann", "s1", false)).unwrap();
    assert_eq!(gone.records, 0);
    assert_eq!(all(&memory).len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    /// Of random families exactly those stay that hang on something outside, through whatever
    /// they were derived from; and no source that is gone is named any more.
    #[test]
    fn exactly_what_hangs_on_nothing_else_goes(
        links in proptest::collection::vec((0..10_usize, 0..13_usize), 0..25)
    ) {
        let memory = memory();
        let session = Owner { session: Some("s1".into()), ..super::ann() };
        // 0 to 9 are derived, 10 and 11 are the session's, 12 is somebody's.
        let name = |n: usize| id(&format!("n{n:02}"));
        let sources = |n: usize| -> Vec<usize> {
            let mut sources: Vec<usize> = links.iter()
                .filter(|(derived, source)| *derived == n && *source != n)
                .map(|(_, source)| *source)
                .collect();
            sources.sort_unstable();
            sources.dedup();
            sources
        };
        let drafts = (0..13).map(|n| Draft {
            id: Some(name(n)),
            owner: if n == 10 || n == 11 { session.clone() } else { Owner::default() },
            scope: (n == 10 || n == 11).then_some(Scope::Dialog),
            derived_from: sources(n).into_iter().map(name).collect(),
            ..Draft::note("x")
        });
        wait(memory.records().add(&ctx(), drafts.collect(), None)).unwrap();
        forget(&memory);
        // From the session downwards …
        let mut touched = [false; 13];
        touched[10] = true;
        touched[11] = true;
        for _ in 0..13 {
            for n in 0..10 {
                touched[n] |= sources(n).iter().any(|source| touched[*source]);
            }
        }
        // … those stay that were not touched, or have a source that stays.
        let mut stays: Vec<bool> = touched.iter().map(|touched| !touched).collect();
        for _ in 0..13 {
            for n in 0..10 {
                stays[n] |= sources(n).iter().any(|source| stays[*source]);
            }
        }
        let expected: Vec<String> = (0..13).filter(|n| stays[*n]).map(|n| name(n).to_string()).collect();
        prop_assert_eq!(names(&memory), expected);
        for record in all(&memory) {
            let n: usize = record.id.as_str()[1..].parse().unwrap();
            let left: Vec<Id> = sources(n).into_iter().filter(|s| stays[*s]).map(name).collect();
            prop_assert_eq!(record.derived_from, left);
        }
    }
}
