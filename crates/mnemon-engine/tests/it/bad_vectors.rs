//! An embedder that goes wrong costs the meaning arm, and nothing else.

use std::sync::Arc;

use mnemon_core::embed::Embedder;
use mnemon_core::ram::Ram;
use mnemon_core::rank::Recipe;
use mnemon_core::{Ids, Policy, Right, Store};
use mnemon_engine::{Draft, Memory, Query};
use mnemon_testkit::fakes::{BadEmbedder, HashEmbedder, Mischief};

use crate::{ctx, wait};

fn memory(store: &Arc<Ram>, embedder: Arc<dyn Embedder>) -> Memory {
    Memory::builder(store.clone(), Ids::new(7))
        .embedder(embedder)
        .build()
}

fn found(memory: &Memory, recipe: Recipe) -> Vec<String> {
    let query = Query {
        recipe,
        min_score: Some(0.0),
        ..Query::new("green tea", mnemon_core::Filter::all_of_tenant())
    };
    let hits = wait(memory.records().search(&ctx(), &query)).unwrap();
    hits.into_iter().map(|hit| hit.record.content).collect()
}

#[test]
fn a_write_succeeds_and_is_found_by_words() {
    for mischief in Mischief::ALL {
        let (store, bad) = (Arc::new(Ram::new()), BadEmbedder::new(mischief));
        let model = bad.model().clone();
        let memory = memory(&store, Arc::new(bad));
        let drafts = vec![Draft::note("Ann drinks green tea"), Draft::note("Bob")];
        wait(memory.records().add(&ctx(), drafts, None)).unwrap();
        assert_eq!(
            found(&memory, Recipe::Hybrid),
            ["Ann drinks green tea"],
            "{mischief:?}"
        );
        assert!(found(&memory, Recipe::Meaning).is_empty(), "{mischief:?}");
        let grant = Policy::default().check(&ctx(), Right::Read).unwrap();
        let lacking = wait(store.lacking(&grant, &model, 0, 10)).unwrap();
        assert_eq!(lacking.len(), 2, "{mischief:?} was stored");
        // Upkeep either says what is wrong or finds nothing to do; it stores nothing.
        if let Ok(done) = wait(memory.records().embed_missing(&ctx(), 10)) {
            assert_eq!((done.embedded, mischief), (0, Mischief::Zeros));
        }
        assert_eq!(found(&memory, Recipe::Hybrid).len(), 1, "{mischief:?}");
    }
}

#[test]
fn the_vectors_of_a_good_one_stay() {
    for mischief in Mischief::ALL {
        let store = Arc::new(Ram::new());
        let good = Arc::new(HashEmbedder::default());
        let before = memory(&store, good.clone());
        wait(
            before
                .records()
                .add(&ctx(), vec![Draft::note("Ann drinks green tea")], None),
        )
        .unwrap();
        let after = Memory::builder(store.clone(), Ids::new(8))
            .embedder(Arc::new(BadEmbedder::new(mischief)))
            .embedder(good)
            .build();
        wait(
            after
                .records()
                .add(&ctx(), vec![Draft::note("Bob drinks tea")], None),
        )
        .unwrap();
        assert_eq!(found(&after, Recipe::Hybrid).len(), 2, "{mischief:?}");
        assert_eq!(found(&after, Recipe::Meaning), ["Ann drinks green tea"]);
        // When the embedder is well again, what it missed is made up for.
        assert_eq!(
            wait(before.records().embed_missing(&ctx(), 10))
                .unwrap()
                .embedded,
            1,
            "{mischief:?}"
        );
        assert_eq!(found(&before, Recipe::Meaning).len(), 2);
    }
}
