//! A caller that retries with an idempotency key, on a store that loses answers.

use std::collections::HashSet;

use mnemon_core::ram::Ram;
use mnemon_core::{Batch, ErrorKind, Op, Receipt, Store};
use mnemon_testkit::faults::Flaky;
use mnemon_testkit::make::{at, grant, id, key, note};
use mnemon_testkit::{block_on, observe};

async fn persistently(store: &dyn Store, batch: &Batch) -> Receipt {
    loop {
        match store.apply(&grant(at(0)), batch.clone()).await {
            Ok(receipt) => return receipt,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable),
        }
    }
}

#[test]
fn retries_with_a_key_store_everything_once() {
    block_on(async {
        for seed in 0..20 {
            let store = Flaky::new(Ram::new(), seed, 60);
            for n in 0..30 {
                // Without the key, the second try would find the record there: a conflict.
                let append = Op::append(note(&format!("r{n}")));
                let batch = Batch::of(append).with_key(key(&format!("k{n}"), "append"));
                let receipt = persistently(&store, &batch).await;
                assert_eq!(receipt.commit, Some(n + 1));
            }
            assert!(store.failed() > 10, "{} failures", store.failed());
            let seen = observe(store.inner(), &grant(at(0)), 100).await.unwrap();
            assert_eq!((seen.written.len(), seen.changes.len()), (30, 30));
        }
    });
}

#[test]
fn faults_strike_before_and_after() {
    block_on(async {
        let g = grant(at(0));
        let (mut done, mut undone) = (0, 0);
        for seed in 0..50 {
            let store = Flaky::new(Ram::new(), seed, 100);
            let batch = Batch::of(Op::put(note("a")));
            store.apply(&g, batch).await.unwrap_err();
            let found = store.inner().get(&g, &[id("a")]).await.unwrap();
            match &found[0] {
                Some(_) => done += 1,
                None => undone += 1,
            }
        }
        assert!(
            done > 10 && undone > 10,
            "{done} took effect, {undone} did not"
        );
    });
}

#[test]
fn the_same_seed_fails_the_same_calls() {
    let failures = |seed| {
        block_on(async {
            let store = Flaky::new(Ram::new(), seed, 30);
            let mut failed = Vec::new();
            for _ in 0..64 {
                failed.push(store.tally(&grant(at(0))).await.is_err());
            }
            failed
        })
    };
    assert_eq!(failures(1), failures(1));
    let different: HashSet<Vec<bool>> = (0..8).map(failures).collect();
    assert_eq!(different.len(), 8);
}
