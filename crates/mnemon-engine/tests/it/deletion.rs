//! One rule for everything that is deleted.

mod closure;

use std::sync::Arc;

use mnemon_core::ram::Ram;
use mnemon_core::{Changes, Fate, Id, Ids, Kind, Limits, Policy, Scope};
use mnemon_engine::{Draft, Memory, Records};
use mnemon_testkit::faults::{Fault, Flaky};

use crate::{all, ctx, id, memory, named, wait};

fn made_from(name: &str, content: &str, sources: &[&str]) -> Draft {
    Draft {
        derived_from: sources.iter().map(|source| id(source)).collect(),
        ..named(name, content)
    }
}

fn of_kind(kind: Kind, draft: Draft) -> Draft {
    Draft {
        kind: Some(kind),
        ..draft
    }
}

fn names(memory: &Memory) -> Vec<String> {
    let mut names: Vec<String> = all(memory).into_iter().map(|r| r.id.to_string()).collect();
    names.sort();
    names
}

fn sources(memory: &Memory, name: &str) -> Vec<Id> {
    let mut found = all(memory).into_iter().filter(|r| r.id == id(name));
    found.next().unwrap().derived_from
}

/// `said` and `book` are sources; everything else was derived.
fn world() -> Memory {
    let memory = memory();
    let profile = Draft {
        scope: Some(Scope::Profile),
        ..of_kind(Kind::Profile, made_from("profile", "Ann", &["said"]))
    };
    let drafts = vec![
        named("said", "Ann drinks green tea every single morning at home"),
        named("book", "a book of tea"),
        made_from("only", "of one", &["said"]),
        made_from("both", "tea is green", &["said", "book"]),
        made_from("of-both", "through others", &["both"]),
        made_from(
            "quoting",
            "note: Ann drinks green tea every single morning!",
            &["said", "book"],
        ),
        of_kind(
            Kind::Summary,
            made_from("summary", "of two", &["said", "book"]),
        ),
        profile,
    ];
    wait(memory.records().add(&ctx(), drafts, None)).unwrap();
    memory
}

/// All that the history holds.
fn held(memory: &Memory) -> String {
    let changes = Changes {
        limit: 1000,
        ..Changes::all_of_tenant(0)
    };
    let held = wait(memory.records().history(&ctx(), &changes)).unwrap();
    serde_json::to_string(&held).unwrap()
}

#[test]
fn a_forgotten_source_leaves_what_has_another_one() {
    let memory = world();
    let gone = wait(memory.records().forget(&ctx(), &[id("said")], None)).unwrap();
    assert_eq!(gone.items.len(), 1);
    assert_eq!(gone.items[0].fate, Fate::Deleted);
    let mut cascaded = gone.cascaded.clone();
    cascaded.sort();
    assert_eq!(cascaded, [id("only"), id("summary")]);
    assert_eq!(
        names(&memory),
        ["book", "both", "of-both", "profile", "quoting"]
    );
    assert_eq!(sources(&memory, "both"), [id("book")]);
    assert_eq!(sources(&memory, "of-both"), [id("both")]);
    assert!(sources(&memory, "profile").is_empty());
    wait(memory.records().undo(&ctx(), gone.commit.unwrap())).unwrap();
    assert_eq!(names(&memory).len(), 8);
    assert_eq!(sources(&memory, "both"), [id("said"), id("book")]);
    assert_eq!(sources(&memory, "profile"), [id("said")]);
}

#[test]
fn a_purge_also_takes_what_quotes_the_text() {
    let memory = world();
    let gone = wait(memory.records().purge(&ctx(), &[id("said")], None)).unwrap();
    assert_eq!(
        (gone.items[0].fate.clone(), gone.commit),
        (Fate::Purged, None)
    );
    assert_eq!(names(&memory), ["book", "both", "of-both", "profile"]);
    let held = held(&memory);
    assert!(!held.contains("every single morning"), "{held}");
}

#[test]
fn a_purge_takes_what_quotes_an_older_version() {
    let memory = world();
    let mut said = all(&memory)
        .into_iter()
        .find(|r| r.id == id("said"))
        .unwrap();
    said.content = "something else".to_owned();
    wait(memory.records().update(&ctx(), said)).unwrap();
    wait(memory.records().forget(&ctx(), &[id("said")], None)).unwrap();
    assert!(names(&memory).contains(&"quoting".to_owned()));
    let again = made_from(
        "again",
        "Ann drinks green tea every single morning",
        &["said", "book"],
    );
    wait(memory.records().add(&ctx(), vec![again], None)).unwrap();
    wait(memory.records().purge(&ctx(), &[id("said")], None)).unwrap();
    assert_eq!(names(&memory), ["book", "both", "of-both", "profile"]);
}

/// A copy has lost its link by then, and may have been forgotten as well.
#[test]
fn a_purge_of_what_was_forgotten_leaves_no_copy() {
    for is_forgotten in [false, true] {
        let memory = world();
        let records = memory.records();
        wait(records.forget(&ctx(), &[id("said")], None)).unwrap();
        if is_forgotten {
            wait(records.forget(&ctx(), &[id("quoting")], None)).unwrap();
        }
        wait(records.purge(&ctx(), &[id("said")], None)).unwrap();
        assert_eq!(names(&memory), ["book", "both", "of-both", "profile"]);
        let held = held(&memory);
        assert!(!held.contains("every single morning"), "{held}");
    }
}

/// A body, an earlier version and what lies further back count as well.
#[test]
fn a_quotation_is_found_wherever_it_stands() {
    let memory = memory();
    let records = memory.records();
    let secret = "the key of the safe lies below the mat";
    let drafts = vec![
        Draft {
            body: Some(serde_json::json!({ "steps": [secret] })),
            ..named("a", "a task")
        },
        named("b", "other"),
        made_from("direct", secret, &["a", "b"]),
        made_from("between", "nothing of it", &["a", "b"]),
        made_from("further", secret, &["between"]),
        made_from("edited", secret, &["a", "b"]),
    ];
    wait(records.add(&ctx(), drafts, None)).unwrap();
    let found = wait(records.get(&ctx(), &[id("edited")])).unwrap();
    let mut edited = found.into_iter().flatten().next().unwrap();
    edited.content = "without it".to_owned();
    wait(records.update(&ctx(), edited)).unwrap();
    wait(records.purge(&ctx(), &[id("a")], None)).unwrap();
    assert_eq!(names(&memory), ["b", "between"]);
    let held = held(&memory);
    assert!(!held.contains("below the mat"), "{held}");
}

#[test]
fn links_lead_through_what_was_deleted_earlier() {
    let memory = memory();
    let drafts = vec![
        named("a", "a"),
        made_from("b", "b", &["a"]),
        named("x", "x"),
    ];
    let records = memory.records();
    wait(records.add(&ctx(), drafts, None)).unwrap();
    wait(records.forget(&ctx(), &[id("b")], None)).unwrap();
    let later = vec![
        made_from("c", "c", &["b"]),
        made_from("d", "d", &["b", "x"]),
    ];
    wait(records.add(&ctx(), later, None)).unwrap();
    wait(records.forget(&ctx(), &[id("a")], None)).unwrap();
    assert_eq!(names(&memory), ["d", "x"]);
    assert_eq!(sources(&memory, "d"), [id("x")]);
}

/// The source lies on the first store, what was derived from it on another.
#[test]
fn it_reaches_other_stores() {
    let store = || Arc::new(Ram::new());
    for purge in [false, true] {
        let memory = Memory::builder(store(), Ids::new(7))
            .procedural(store())
            .build();
        let (first, other) = (memory.records(), memory.records_of(Scope::Procedural));
        wait(first.add(&ctx(), vec![named("a", "one"), named("b", "two")], None)).unwrap();
        let drafts = vec![
            made_from("only", "x", &["a"]),
            made_from("of-only", "x", &["only"]),
            made_from("both", "x", &["a", "b"]),
        ];
        wait(other.add(&ctx(), drafts, None)).unwrap();
        let ids = [id("a")];
        let gone = match purge {
            false => wait(first.forget(&ctx(), &ids, None)).unwrap(),
            true => wait(first.purge(&ctx(), &ids, None)).unwrap(),
        };
        assert_eq!((gone.items.len(), gone.cascaded.len()), (1, 2));
        let there = |records: &Records, name: &str| {
            let found = wait(records.get(&ctx(), &[id(name)])).unwrap();
            found.into_iter().next().unwrap()
        };
        assert!(there(other, "only").is_none() && there(other, "of-only").is_none());
        assert_eq!(there(other, "both").unwrap().derived_from, [id("b")]);
    }
}

#[test]
fn a_retry_with_a_key_answers_the_same() {
    let memory = world();
    let ids = [id("said")];
    let first = wait(memory.records().forget(&ctx(), &ids, Some("k"))).unwrap();
    let again = wait(memory.records().forget(&ctx(), &ids, Some("k"))).unwrap();
    assert_eq!(first, again);
}

/// The first try writes records that lose a source, the second finds none of them.
#[test]
fn a_retry_with_a_key_takes_all_after_an_interruption() {
    for calls in 0.. {
        let store = Arc::new(Flaky::new(Ram::new(), 1, 0));
        let policy = Policy {
            limits: &Limits::TINY,
            ..Policy::default()
        };
        let memory = Memory::builder(store.clone(), Ids::new(7)).policy(policy);
        let memory = memory.build();
        let records = memory.records();
        let ids: Vec<Id> = (0..20).map(|n| id(&format!("s{n:02}"))).collect();
        let draft = |id: &Id| named(id.as_str(), "said");
        for ids in ids.chunks(10) {
            wait(records.add(&ctx(), ids.iter().map(draft).collect(), None)).unwrap();
        }
        let both = |n: usize| made_from(&format!("both{n}"), "of two", &["s00", "book"]);
        let derived = std::iter::once(named("book", "stays")).chain((0..9).map(both));
        wait(records.add(&ctx(), derived.collect(), None)).unwrap();
        store.arm(calls, Fault::Before);
        let first = wait(records.forget(&ctx(), &ids, Some("k")));
        let is_over = store.disarm();
        if first.is_err() {
            wait(records.forget(&ctx(), &ids, Some("k"))).unwrap();
        }
        for ids in ids.chunks(3) {
            let left = wait(records.get(&ctx(), ids)).unwrap();
            assert!(left.iter().all(Option::is_none), "{calls}: {left:?}");
        }
        if is_over {
            break;
        }
    }
}

#[test]
fn a_chunk_that_is_replaced_leaves_what_has_another_source() {
    use mnemon_engine::Document;
    let memory = memory();
    let records = memory.records();
    let document = |text: &str| Document {
        uri: "file:a".to_owned(),
        text: text.to_owned(),
        ..Document::default()
    };
    wait(records.add_documents(&ctx(), vec![document("tea is green")])).unwrap();
    let chunk = all(&memory)
        .into_iter()
        .find(|r| r.kind == Kind::Chunk)
        .unwrap();
    let drafts = vec![
        named("book", "of tea"),
        made_from("only", "fact", &[chunk.id.as_str()]),
        made_from("both", "fact", &[chunk.id.as_str(), "book"]),
    ];
    wait(records.add(&ctx(), drafts, None)).unwrap();
    let done = wait(records.add_documents(&ctx(), vec![document("tea is black")])).unwrap();
    let mut left = names(&memory);
    left.retain(|name| name.len() < 10);
    assert_eq!(left, ["book", "both"]);
    assert_eq!(sources(&memory, "both"), [id("book")]);
    wait(records.undo(&ctx(), done[0].commit.unwrap())).unwrap();
    assert_eq!(sources(&memory, "both"), [chunk.id, id("book")]);
}

/// More ids than one page of records are checked, as many as can be forgotten at once.
#[test]
fn entries_of_files_are_looked_for_among_many_ids() {
    let memory = memory();
    let ids: Vec<Id> = (0..2500).map(|n| id(&format!("n{n}"))).collect();
    assert!(ids.len() > Limits::DEFAULT.page);
    wait(memory.records().check_no_file_entries(&ctx(), &ids)).unwrap();
}
