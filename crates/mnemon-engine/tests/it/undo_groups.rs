//! One command is one commit, and one undo reverts it, however many batches it took and wherever
//! it is interrupted.

use std::collections::BTreeMap;
use std::sync::Arc;

use mnemon_core::ram::Ram;
use mnemon_core::{
    Cause, Changes, Ctx, ErrorKind, Expect, Filter, Id, Ids, Kind, Limits, Owner, Policy, Record,
    Scan, Scope,
};
use mnemon_engine::{Document, Draft, Memory};
use mnemon_testkit::faults::{Fault, Flaky};
use proptest::prelude::*;

use crate::{all, ctx, id, memory, named, wait};

/// One verb of a command.
#[derive(Debug, Clone)]
enum Verb {
    /// Writes records with their sources.
    Put(Vec<(usize, Vec<usize>, u8)>),
    Forget(Vec<usize>),
    ForgetSession,
    Ingest(u8),
}

const NAMES: usize = 12;

fn name(number: usize) -> Id {
    id(&format!("n{number:02}"))
}

fn verb() -> impl Strategy<Value = Verb> {
    let sources = proptest::collection::vec(0..NAMES, 0..3);
    let put = proptest::collection::vec((0..NAMES, sources, 0..6_u8), 1..6);
    prop_oneof![
        4 => put.prop_map(Verb::Put),
        3 => proptest::collection::vec(0..NAMES, 1..4).prop_map(Verb::Forget),
        1 => Just(Verb::ForgetSession),
        1 => (0..4_u8).prop_map(Verb::Ingest),
    ]
}

/// A memory over a store that fails where it is told to.
struct World {
    store: Arc<Flaky<Ram>>,
    memory: Memory,
}

impl World {
    fn new() -> Self {
        let store = Arc::new(Flaky::new(Ram::new(), 1, 0));
        let policy = Policy {
            limits: &Limits::TINY,
            ..Policy::default()
        };
        let memory = Memory::builder(store.clone(), Ids::new(7)).policy(policy);
        Self {
            store,
            memory: memory.build(),
        }
    }

    /// Runs the verbs as one command. What is refused changes nothing of the others.
    fn command(&self, verbs: &[Verb]) -> Ctx {
        let ctx = ctx().as_one_commit();
        for verb in verbs {
            self.run(&ctx, verb);
        }
        ctx
    }

    fn run(&self, ctx: &Ctx, verb: &Verb) {
        let records = self.memory.records();
        match verb {
            Verb::Put(drafts) => {
                let drafts = drafts.iter().map(|(number, sources, sort)| {
                    let sources = sources.iter().filter(|source| *source != number);
                    let draft = Draft {
                        kind: Some(match sort {
                            0 => Kind::Summary,
                            1 => Kind::Message,
                            _ => Kind::Note,
                        }),
                        owner: Owner {
                            user: Some("ann".to_owned()),
                            session: (*sort == 1).then(|| "s1".to_owned()),
                            ..Owner::default()
                        },
                        derived_from: sources.map(|source| name(*source)).collect(),
                        id: Some(name(*number)),
                        ..Draft::note(format!("{sort} of {number}"))
                    };
                    (draft, Expect::Anything)
                });
                let _ = wait(records.put(ctx, drafts.collect(), None));
            }
            Verb::Forget(ids) => {
                let ids: Vec<Id> = ids.iter().map(|number| name(*number)).collect();
                let _ = wait(records.forget(ctx, &ids, None));
            }
            Verb::ForgetSession => {
                let _ = wait(self.memory.delete_session(ctx, "ann", "s1", false));
            }
            Verb::Ingest(text) => {
                let document = Document {
                    uri: "file:a".to_owned(),
                    text: format!("number {text} of a text"),
                    ..Document::default()
                };
                let _ = wait(records.add_documents(ctx, vec![document]));
            }
        }
    }

    /// The commit of a command, if it changed anything.
    fn commit_of(&self, ctx: &Ctx, newest_before: u64) -> Option<u64> {
        let newest = wait(self.memory.records().stats(ctx)).unwrap().seq;
        let last = || wait(self.memory.records().last_commit(ctx, None)).unwrap();
        (newest > newest_before).then(last).flatten()
    }

    fn newest(&self) -> u64 {
        wait(self.memory.records().stats(&ctx())).unwrap().seq
    }

    fn state(&self) -> BTreeMap<Id, Record> {
        let mut state = BTreeMap::new();
        let mut scan = Scan::new(Filter::all_of_tenant(), 100);
        loop {
            let page = wait(self.memory.records().list(&ctx(), &scan)).unwrap();
            for mut record in page.records {
                (record.seq, record.version) = (0, 0);
                state.insert(record.id.clone(), record);
            }
            match page.next {
                Some(next) => scan.after = Some(next),
                None => return state,
            }
        }
    }

    /// Under which numbers this commit was undone.
    fn undone_by(&self, commit: u64) -> Vec<u64> {
        let changes = Changes {
            limit: 1000,
            ..Changes::all_of_tenant(0)
        };
        let changes = wait(self.memory.records().history(&ctx(), &changes)).unwrap();
        let undone = changes.iter().filter(|c| c.cause == Cause::Undone(commit));
        let mut numbers: Vec<u64> = undone.map(|change| change.commit).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// Undo brings the state before back, and undoing the undo the state after; also if it is
    /// interrupted at any call of the store, before or after the call took effect.
    #[test]
    fn undo_of_a_command_restores_the_state_before(
        before in proptest::collection::vec(verb(), 0..4),
        command in proptest::collection::vec(verb(), 1..5),
    ) {
        for fault in [None, Some(Fault::Before), Some(Fault::After)] {
            for calls in 0.. {
                let world = World::new();
                world.command(&before);
                let (state, newest) = (world.state(), world.newest());
                let ctx = world.command(&command);
                let changed = world.state();
                let Some(commit) = world.commit_of(&ctx, newest) else {
                    break;
                };
                let records = world.memory.records();
                if let Some(fault) = fault {
                    world.store.arm(calls, fault);
                }
                let mut undone = wait(records.undo(&ctx, commit));
                let is_over = world.store.disarm() || fault.is_none();
                if !is_over {
                    prop_assert_eq!(undone.unwrap_err().kind(), ErrorKind::Unavailable);
                    undone = wait(records.undo(&ctx, commit));
                }
                let undone = undone.unwrap();
                prop_assert_eq!(&world.state(), &state);
                let numbers = world.undone_by(commit);
                prop_assert!(numbers.len() <= 1, "{:?}", numbers);
                prop_assert_eq!(numbers.first().copied(), undone.commit);
                if let Some(undo) = undone.commit {
                    wait(records.undo(&ctx, undo)).unwrap();
                    prop_assert_eq!(world.state(), changed);
                }
                if is_over {
                    break;
                }
            }
        }
    }
}

#[test]
fn a_refused_undo_changes_nothing() {
    let world = World::new();
    let records = world.memory.records();
    let ctx = ctx().as_one_commit();
    for number in 0..20 {
        wait(records.add(&ctx, vec![named(name(number).as_str(), "x")], None)).unwrap();
    }
    let mut last = wait(records.get(&ctx, &[name(0)]))
        .unwrap()
        .remove(0)
        .unwrap();
    last.content = "changed by another".to_owned();
    wait(records.update(&crate::ctx(), last)).unwrap();
    let before = world.state();
    let refused = wait(records.undo(&ctx, 1)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
    assert_eq!(world.state(), before);
    assert!(world.undone_by(1).is_empty());
}

#[test]
fn an_undo_never_takes_back_a_change_between_two_batches_of_the_commit() {
    let world = World::new();
    let records = world.memory.records();
    let grouped = ctx().as_one_commit();
    wait(records.add(&grouped, vec![named("shared", "first batch")], None)).unwrap();
    for (by, content) in [(&ctx(), "by another"), (&grouped, "second batch")] {
        let found = wait(records.get(by, &["shared".parse().unwrap()])).unwrap();
        let mut record = found.into_iter().flatten().next().unwrap();
        record.content = content.to_owned();
        wait(records.update(by, record)).unwrap();
    }
    let before = world.state();
    let refused = wait(records.undo(&ctx(), 1)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
    assert_eq!(world.state(), before);
}

#[test]
fn the_last_commit_of_an_interrupted_undo_is_what_it_undoes() {
    let mut interrupted = 0;
    for calls in 0.. {
        let world = World::new();
        let records = world.memory.records();
        let ctx = ctx().as_one_commit();
        let count = 2 * Limits::TINY.batch_ops;
        for number in 0..count {
            wait(records.add(&ctx, vec![named(name(number).as_str(), "x")], None)).unwrap();
        }
        world.store.arm(calls, Fault::Before);
        let undone = wait(records.undo(&ctx, 1));
        if world.store.disarm() {
            let last = wait(records.last_commit(&ctx, None)).unwrap();
            assert_eq!(last, undone.unwrap().commit);
            break;
        }
        if world.undone_by(1).is_empty() {
            continue;
        }
        interrupted += 1;
        let gone = name(count - 1);
        for id in [Some(&gone), None] {
            assert_eq!(wait(records.last_commit(&ctx, id)).unwrap(), Some(1));
        }
        wait(records.undo(&ctx, 1)).unwrap();
        assert!(world.state().is_empty());
    }
    assert!(interrupted > 0);
}

#[test]
fn undo_of_what_is_undone_changes_nothing() {
    let memory = memory();
    let added = wait(memory.records().add(&ctx(), vec![named("a", "tea")], None)).unwrap();
    let commit = added.commit.unwrap();
    let undone = wait(memory.records().undo(&ctx(), commit)).unwrap();
    let again = wait(memory.records().undo(&ctx(), commit)).unwrap();
    assert_eq!((again.commit, again.items.len()), (undone.commit, 0));
    assert!(all(&memory).is_empty());
}

/// What was derived since from something that an undo removes follows the rule of deletion.
#[test]
fn what_was_derived_since_goes_or_loses_its_source() {
    let memory = memory();
    let records = memory.records();
    let derived = |name: &str, sources: &[&str]| Draft {
        derived_from: sources.iter().map(|source| id(source)).collect(),
        ..named(name, "x")
    };
    wait(records.add(&ctx(), vec![named("old", "x")], None)).unwrap();
    let added = wait(records.add(&ctx(), vec![named("a", "x")], None)).unwrap();
    let since = vec![derived("only", &["a"]), derived("both", &["a", "old"])];
    wait(records.add(&ctx(), since, None)).unwrap();
    let undone = wait(records.undo(&ctx(), added.commit.unwrap())).unwrap();
    let mut left: Vec<String> = all(&memory).iter().map(|r| r.id.to_string()).collect();
    left.sort();
    assert_eq!(left, ["both", "old"]);
    wait(records.undo(&ctx(), undone.commit.unwrap())).unwrap();
    assert_eq!(all(&memory).len(), 4);
}

#[test]
fn a_forgotten_session_of_thousands_comes_back_with_one_undo() {
    let memory = memory();
    let records = memory.records();
    for part in 0..3 {
        let drafts = (0..5000).map(|n| Draft {
            owner: Owner {
                user: Some("ann".to_owned()),
                session: Some("s1".to_owned()),
                ..Owner::default()
            },
            scope: Some(Scope::Dialog),
            ..named(&format!("m{part}-{n}"), "said")
        });
        wait(records.add(&ctx(), drafts.collect(), None)).unwrap();
    }
    let gone = wait(memory.delete_session(&ctx(), "ann", "s1", false)).unwrap();
    let count = || wait(records.stats(&ctx())).unwrap().records();
    assert_eq!((gone.records, count()), (15_000, 0));
    let undone = wait(records.undo(&ctx(), gone.commit.unwrap())).unwrap();
    assert_eq!((undone.items.len(), count()), (15_000, 15_000));
}

/// Writers at the same time in one command share its number.
#[test]
fn writes_at_the_same_time_are_one_commit() {
    let memory = memory();
    let ctx = ctx().as_one_commit();
    let adds = (0..5).map(|number| {
        let drafts = vec![named(name(number).as_str(), "x")];
        memory.records().add(&ctx, drafts, None)
    });
    let added = wait(futures::future::try_join_all(adds)).unwrap();
    assert!(added.iter().all(|receipt| receipt.commit == Some(1)));
    wait(memory.records().undo(&ctx, 1)).unwrap();
    assert!(all(&memory).is_empty());
}
