//! One command is one commit on every store: one undo reverts it, however many batches it took.

use std::collections::BTreeMap;

use mnemon_core::{Ctx, Expect, Filter, Id, Ids, Limits, Policy, Record, Scan, Tenant, Time};
use mnemon_engine::{Draft, Memory};
use mnemon_testkit::block_on;
use proptest::prelude::*;
use tempfile::TempDir;

/// Records to write, with their sources, or to forget.
type Step = (bool, Vec<(usize, Vec<usize>)>);

fn steps(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Step>> {
    let sources = proptest::collection::vec(0..10_usize, 0..3);
    let records = proptest::collection::vec((0..10_usize, sources), 1..7);
    proptest::collection::vec((any::<bool>(), records), count)
}

fn name(number: usize) -> Id {
    format!("n{number}").parse().unwrap()
}

fn ctx() -> Ctx {
    let now = Time::from_millis(1_700_000_000_000).unwrap();
    Ctx::new(Tenant::default(), "test", now)
}

fn open(url: &str) -> Memory {
    let policy = Policy {
        limits: &Limits::TINY,
        ..Policy::default()
    };
    let backend = mnemon_adapters::open(url).unwrap().backend;
    Memory::builder(backend, Ids::new(7)).policy(policy).build()
}

/// Another writer works between any two batches of the command.
async fn command(memory: &Memory, steps: &[Step]) -> Option<u64> {
    let ctx = ctx().as_one_commit();
    let mut commit = None;
    for (number, (forget, items)) in steps.iter().enumerate() {
        let ids: Vec<Id> = items.iter().map(|(number, _)| name(*number)).collect();
        let drafts = items.iter().map(|(number, sources)| {
            let sources = sources.iter().filter(|source| *source != number);
            let draft = Draft {
                id: Some(name(*number)),
                derived_from: sources.map(|source| name(*source)).collect(),
                ..Draft::note(format!("one of {}", items.len()))
            };
            (draft, Expect::Anything)
        });
        let done = match forget {
            true => memory.records().forget(&ctx, &ids, None).await,
            false => memory.records().put(&ctx, drafts.collect(), None).await,
        };
        commit = commit.or(done.ok().and_then(|receipt| receipt.commit));
        let other = Draft {
            id: Some(format!("other{number}").parse().unwrap()),
            ..Draft::note("of another")
        };
        let other = vec![(other, Expect::Anything)];
        memory
            .records()
            .put(&self::ctx(), other, None)
            .await
            .unwrap();
    }
    commit
}

async fn state(memory: &Memory) -> BTreeMap<Id, Record> {
    let mut state = BTreeMap::new();
    let mut scan = Scan::new(Filter::all_of_tenant(), 3);
    loop {
        let page = memory.records().list(&ctx(), &scan).await.unwrap();
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

fn without_others(mut state: BTreeMap<Id, Record>) -> BTreeMap<Id, Record> {
    state.retain(|id, _| !id.as_str().starts_with("other"));
    state
}

fn check(scheme: &str, before: &[Step], steps: &[Step]) {
    let folder = TempDir::new().unwrap();
    let url = match scheme {
        "ram" => "ram:".to_owned(),
        _ => format!("{scheme}:{}", folder.path().join("store").display()),
    };
    block_on(async {
        let mut memory = open(&url);
        command(&memory, before).await;
        let first = state(&memory).await;
        let Some(commit) = command(&memory, steps).await else {
            return;
        };
        let changed = state(&memory).await;
        if scheme != "ram" {
            drop(memory);
            memory = open(&url);
        }
        let undone = memory.records().undo(&ctx(), commit).await.unwrap();
        assert_eq!(without_others(state(&memory).await), without_others(first));
        if let Some(undo) = undone.commit {
            memory.records().undo(&ctx(), undo).await.unwrap();
            assert_eq!(state(&memory).await, changed);
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn one_undo_reverts_a_command_on_every_store(before in steps(0..3), command in steps(1..4)) {
        for scheme in ["ram", "jsonl", "sqlite"] {
            check(scheme, &before, &command);
        }
    }
}
