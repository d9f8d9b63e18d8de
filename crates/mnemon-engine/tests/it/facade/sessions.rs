use std::sync::Arc;

use mnemon_core::ram::Ram;
use mnemon_core::{Ctx, ErrorKind, Id, Ids, Kind, Owner, Record, Role, Scope, Store};
use mnemon_engine::{Draft, Memory, Query, Utterance};
use proptest::prelude::*;
use serde_json::json;

use super::{event, payload, query, say, write};
use crate::{all, ctx, id, memory, named, wait};

fn purge(memory: &Memory) -> mnemon_engine::Forgotten {
    wait(memory.delete_session(&ctx(), "ann", "s1", true)).unwrap()
}

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
    let hits = wait(memory.records().search(
        &ctx(),
        &Query::new(text, mnemon_core::Filter::all_of_tenant()),
    ))
    .unwrap();
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
    wait(memory.records().undo(&ctx(), gone.commit.unwrap())).unwrap();
    assert_eq!(names(&memory), [said.to_string()]);
    let gone = wait(memory.delete_session(&ctx(), "ann", "s1", true)).unwrap();
    assert_eq!((gone.records, gone.commit), (1, None));
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
    let store = || Arc::new(Ram::new());
    let memory = Memory::builder(store(), Ids::new(7))
        .dialog(store())
        .experience(store())
        .semantic(store())
        .build();
    super::reading::fill(&memory);
    let turn =
        wait(
            memory
                .dialog()
                .get_context(&ctx(), &mnemon_core::Viewer::Tenant, "ann", "s1", 1),
        )
        .unwrap();
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

/// Every content that records and history still hold.
fn held(memory: &Memory) -> String {
    let changes = mnemon_core::Changes {
        limit: 1000,
        ..mnemon_core::Changes::all_of_tenant(0)
    };
    let changes = wait(memory.records().history(&ctx(), &changes)).unwrap();
    serde_json::to_string(&changes).unwrap()
}

#[test]
fn a_purge_erases_what_was_forgotten_earlier() {
    let memory = memory();
    let first = say(&memory, 0, Role::User, "needle one").items[0]
        .id
        .clone();
    say(&memory, 1, Role::User, "needle two");
    let book = id("book");
    let drafts = vec![
        named("book", "a book of tea"),
        made_from("deleted", &[&first, &book]),
        made_from("kept", &[&first, &book]),
    ];
    wait(memory.records().add(&ctx(), drafts, None)).unwrap();
    wait(memory.records().forget(&ctx(), &[id("deleted")], None)).unwrap();
    wait(memory.records().forget(&ctx(), &[first], None)).unwrap();
    forget(&memory);
    assert!(held(&memory).contains("needle one"));
    let gone = purge(&memory);
    assert!(gone.is_whole() && gone.records >= 3, "{gone:?}");
    let held = held(&memory);
    assert!(
        !held.contains("needle") && !held.contains("\"deleted\""),
        "{held}"
    );
    let again = purge(&memory);
    assert!(again.is_nothing(true), "{again:?}");
}

#[test]
fn a_live_record_with_another_source_survives_a_purge_through_a_deleted_one() {
    let memory = memory();
    let said = say(&memory, 0, Role::User, "needle").items[0].id.clone();
    let drafts = vec![named("book", "of tea"), made_from("deleted", &[&said])];
    wait(memory.records().add(&ctx(), drafts, None)).unwrap();
    wait(memory.records().forget(&ctx(), &[id("deleted")], None)).unwrap();
    let both = Draft {
        content: "tea is green".to_owned(),
        ..made_from("both", &[&id("deleted"), &id("book")])
    };
    wait(memory.records().add(&ctx(), vec![both], None)).unwrap();
    let gone = purge(&memory);
    assert_eq!((gone.records, gone.kept), (2, 1));
    assert!(!held(&memory).contains("needle"));
    let both = all(&memory).into_iter().find(|r| r.id == id("both"));
    assert_eq!(both.unwrap().derived_from, [id("book")]);
}

fn unowned(name: &str) -> Draft {
    Draft {
        owner: Owner {
            session: Some("s1".to_owned()),
            ..Owner::default()
        },
        scope: Some(Scope::Dialog),
        kind: Some(Kind::Event),
        ..named(name, "needle of nobody")
    }
}

#[test]
fn records_without_a_user_go_with_the_session_unless_another_user_shares_it() {
    let memory = memory();
    wait(memory.records().add(&ctx(), vec![unowned("a")], None)).unwrap();
    let gone = purge(&memory);
    assert_eq!((gone.records, gone.left.len()), (1, 0));
    assert!(!held(&memory).contains("needle"));
    wait(memory.records().add(&ctx(), vec![unowned("b")], None)).unwrap();
    say(&memory, 0, Role::User, "what ann said");
    let mut other = event(Scope::Dialog, json!({"role": "user", "content": "bob's"}));
    other.user_id = "bob".to_owned();
    wait(memory.write(&ctx(), &other)).unwrap();
    let gone = purge(&memory);
    assert_eq!((gone.records, gone.is_whole()), (1, false));
    assert!(
        gone.left[0].path.contains("1 records of session s1"),
        "{gone:?}"
    );
    let left: Vec<String> = all(&memory).into_iter().map(|r| r.content).collect();
    assert!(left.contains(&"bob's".to_owned()), "{left:?}");
    assert!(left.contains(&"needle of nobody".to_owned()), "{left:?}");
}

#[test]
fn older_versions_of_a_record_that_moved_are_erased_or_listed() {
    let memory = memory();
    for name in ["alone", "source"] {
        let first = Draft {
            owner: Owner {
                session: Some("s1".to_owned()),
                ..super::ann()
            },
            ..unowned(name)
        };
        wait(memory.records().add(&ctx(), vec![first], None)).unwrap();
    }
    for mut record in all(&memory) {
        record.owner.session = Some("s2".to_owned());
        record.content = "moved".to_owned();
        wait(memory.records().update(&ctx(), record)).unwrap();
    }
    let derived = made_from("derived", &[&id("source")]);
    wait(memory.records().add(&ctx(), vec![derived], None)).unwrap();
    let gone = purge(&memory);
    assert_eq!(gone.left.len(), 1, "{gone:?}");
    assert!(gone.left[0].path.contains("record source"), "{gone:?}");
    let mut left = names(&memory);
    left.retain(|name| name.len() < 10);
    assert_eq!(left, ["alone", "derived", "source"]);
    assert_eq!(
        held(&memory).matches("needle").count(),
        2,
        "source: before and after"
    );
}

#[test]
fn snapshots_go_with_the_session_and_forks_are_listed() {
    use mnemon_engine::session::{SessionId, SessionState, Sessions, fork, snapshot};
    let memory = memory();
    let place = memory.sessions(Some("ann")).unwrap();
    let s1: SessionId = "s1".parse().unwrap();
    let mut state = SessionState::new(s1.clone());
    state
        .components
        .insert("a".to_owned(), json!({"x": "needle"}));
    wait(place.save(&ctx(), &state, None)).unwrap();
    wait(snapshot(&place, &ctx(), &s1, "lab")).unwrap();
    wait(snapshot(&place, &ctx(), &s1, "old")).unwrap();
    wait(place.delete(&ctx(), &"s1@old".parse().unwrap())).unwrap();
    wait(fork(&place, &ctx(), &s1, &"s2".parse().unwrap())).unwrap();
    wait(fork(&place, &ctx(), &s1, &"s3".parse().unwrap())).unwrap();
    wait(memory.delete_session(&ctx(), "ann", "s3", true)).unwrap();
    let window = memory.window("ann", "s1").unwrap();
    let said = mnemon_core::Message::text("m1", Role::User, "needle said");
    wait(window.add_message(&ctx(), said)).unwrap();
    wait(window.fork(&ctx(), "s4")).unwrap();
    let gone = purge(&memory);
    assert_eq!(gone.forks, ["s2", "s4"]);
    assert!(gone.is_whole());
    assert_eq!(wait(place.list(&ctx())).unwrap(), ["s2"]);
    for copy in ["s2", "s4"] {
        wait(memory.delete_session(&ctx(), "ann", copy, true)).unwrap();
    }
    assert!(!held(&memory).contains("needle"));
}

#[test]
fn the_mark_of_a_purge_is_not_undone() {
    let memory = memory();
    say(&memory, 0, Role::User, "green tea");
    purge(&memory);
    let newest = wait(memory.records().last_commit(&ctx(), None))
        .unwrap()
        .unwrap();
    let refused = wait(memory.records().undo(&ctx(), newest)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.to_string().contains("was purged"), "{refused}");
}

mod endless {
    //! A session that is written as fast as it is forgotten.

    use std::sync::atomic::{AtomicU64, Ordering};

    use async_trait::async_trait;
    use mnemon_core::embed::ModelId;
    use mnemon_core::{
        Answer, Batch, Capabilities, Change, Changes, Embedding, Grant, Hidden, HiddenScan,
        IndexCapabilities, Op, Page, Probe, Receipt, Scan, SearchIndex, StoreError, Tally, Upkept,
    };

    use super::*;

    /// Answers every deletion with a new message of the same session.
    #[derive(Default)]
    struct Restless {
        ram: Ram,
        count: AtomicU64,
    }

    #[async_trait]
    impl SearchIndex for Restless {
        fn capabilities(&self) -> IndexCapabilities {
            IndexCapabilities::BUILT_IN
        }

        async fn find(&self, grant: &Grant, probe: &Probe) -> Result<Answer, StoreError> {
            self.ram.find(grant, probe).await
        }
    }

    #[async_trait]
    impl Store for Restless {
        fn capabilities(&self) -> Capabilities {
            Store::capabilities(&self.ram)
        }

        async fn apply(&self, grant: &Grant, batch: Batch) -> Result<Receipt, StoreError> {
            let deletes = |op: &Op| matches!(op, Op::Delete { .. } | Op::Purge { .. });
            let is_deletion = batch.ops.iter().any(deletes);
            let receipt = self.ram.apply(grant, batch).await?;
            if is_deletion {
                let number = self.count.fetch_add(1, Ordering::Relaxed);
                let name = id(&format!("late-{number}"));
                let mut late = Record::new(name, &ctx(), Kind::Message, "late");
                late.owner = super::super::ann();
                late.owner.session = Some("s1".to_owned());
                self.ram.apply(grant, Batch::of(Op::put(late))).await?;
            }
            Ok(receipt)
        }

        async fn get(&self, grant: &Grant, ids: &[Id]) -> Result<Vec<Option<Record>>, StoreError> {
            self.ram.get(grant, ids).await
        }

        async fn scan(&self, grant: &Grant, scan: &Scan) -> Result<Page, StoreError> {
            self.ram.scan(grant, scan).await
        }

        async fn hidden(&self, grant: &Grant, s: &HiddenScan) -> Result<Vec<Hidden>, StoreError> {
            self.ram.hidden(grant, s).await
        }

        async fn changes(&self, grant: &Grant, c: &Changes) -> Result<Vec<Change>, StoreError> {
            self.ram.changes(grant, c).await
        }

        async fn tally(&self, grant: &Grant) -> Result<Tally, StoreError> {
            self.ram.tally(grant).await
        }

        async fn upkeep(&self, grant: &Grant, limit: usize) -> Result<Upkept, StoreError> {
            self.ram.upkeep(grant, limit).await
        }

        async fn lacking(
            &self,
            grant: &Grant,
            model: &ModelId,
            after: u64,
            limit: usize,
        ) -> Result<Vec<Record>, StoreError> {
            self.ram.lacking(grant, model, after, limit).await
        }

        async fn embed(
            &self,
            grant: &Grant,
            vectors: Vec<(u64, Embedding)>,
        ) -> Result<usize, StoreError> {
            self.ram.embed(grant, vectors).await
        }
    }

    #[test]
    fn a_session_that_never_ends_is_reported_as_not_whole() {
        for purge in [false, true] {
            let store = Arc::new(Restless::default());
            let memory = Memory::builder(store, Ids::new(7)).build();
            say(&memory, 0, Role::User, "green tea");
            let gone = wait(memory.delete_session(&ctx(), "ann", "s1", purge)).unwrap();
            assert!(gone.more && !gone.is_whole(), "{gone:?}");
            assert_eq!(gone.records, 16);
        }
    }
}
