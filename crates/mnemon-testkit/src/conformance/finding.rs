//! What is there is found, and nothing else.

use mnemon_core::embed::ModelId;
use mnemon_core::index::hash;
use mnemon_core::{Batch, Embedding, Filter, Grant, Id, Op, Probe, Record, limits};

use super::Subject;
use crate::make::{Remade, at, grant, grant_on, id, ids, note};

fn words(query: &str) -> Probe {
    let terms = mnemon_core::text::query_terms(query);
    Probe {
        terms: terms
            .iter()
            .map(|term| (hash(&term.text), term.weight))
            .collect(),
        depth: limits::PAGE,
        ..Probe::default()
    }
}

async fn found(s: &Subject, g: &Grant, probe: &Probe) -> Vec<Id> {
    let mut found = s.store().find(g, probe).await.unwrap();
    found.sort_by(|a, b| {
        b.words
            .total_cmp(&a.words)
            .then(b.meaning.total_cmp(&a.meaning))
    });
    found.into_iter().map(|candidate| candidate.id).collect()
}

pub async fn what_is_written_is_found_and_what_is_gone_is_not(s: Subject) {
    let g = grant(at(0));
    s.put(
        &g,
        [
            note("a").saying("green tea"),
            note("b").saying("black coffee"),
        ],
    )
    .await;
    assert_eq!(found(&s, &g, &words("tea")).await, [id("a")]);
    s.put(
        &g,
        [
            note("a").saying("black coffee, too"),
            note("c").saying("tea again"),
        ],
    )
    .await;
    assert_eq!(found(&s, &g, &words("tea")).await, [id("c")]);
    assert_eq!(found(&s, &g, &words("coffee")).await.len(), 2);
    s.apply(&g, vec![Op::delete(id("b"))]).await.unwrap();
    s.apply(&g, vec![Op::Purge { id: id("c") }]).await.unwrap();
    assert_eq!(found(&s, &g, &words("tea")).await, Vec::<Id>::new());
    assert_eq!(found(&s, &g, &words("coffee")).await, [id("a")]);
}

pub async fn nobody_finds_anothers_records(s: Subject) {
    let (ours, theirs) = (grant(at(0)), grant_on("other"));
    s.put(&ours, [note("a").saying("green tea")]).await;
    assert_eq!(found(&s, &theirs, &words("tea")).await, Vec::<Id>::new());
    s.put(&theirs, [note("a").saying("tea").on("other")]).await;
    assert_eq!(found(&s, &ours, &words("green")).await, [id("a")]);
    assert_eq!(found(&s, &theirs, &words("green")).await, Vec::<Id>::new());
}

pub async fn vectors_are_found_by_the_model_that_made_them(s: Subject) {
    let g = grant(at(0));
    let model = |name: &str, dimension| ModelId {
        name: name.to_owned(),
        dimension,
    };
    let place = |model: &ModelId, vector: &[f32]| Embedding {
        model: model.clone(),
        vector: vector.to_vec(),
    };
    let (one, two) = (model("one", 2), model("two", 3));
    let mut batch = Batch::from(vec![Op::put(note("a")), Op::put(note("b"))]);
    batch.vectors = vec![
        (id("a"), place(&one, &[1.0, 0.0])),
        (id("b"), place(&one, &[0.0, 1.0])),
    ];
    s.store().apply(&g, batch).await.unwrap();
    let near = |vectors: Vec<Embedding>| Probe {
        vectors,
        depth: 1,
        ..Probe::default()
    };
    let first = near(vec![place(&one, &[0.9, 0.1])]);
    assert_eq!(found(&s, &g, &first).await, [id("a")]);
    let lacking = s.store().lacking(&g, &two, 0, 10).await.unwrap();
    assert_eq!(lacking.len(), 2);
    let b = lacking.iter().find(|record| record.id == id("b")).unwrap();
    let new = vec![(b.seq, place(&two, &[0.0, 0.0, 1.0]))];
    assert_eq!(s.store().embed(&g, new).await.unwrap(), 1);
    let both = near(vec![
        place(&two, &[0.0, 0.1, 0.9]),
        place(&one, &[1.0, 0.0]),
    ]);
    let mut ids = found(&s, &g, &both).await;
    ids.sort();
    assert_eq!(
        ids,
        [id("a"), id("b")],
        "old and new vectors are served together"
    );
    let lacking = s.store().lacking(&g, &two, 0, 10).await.unwrap();
    assert_eq!(
        lacking.iter().map(|r| r.id.clone()).collect::<Vec<_>>(),
        [id("a")]
    );
    let wrong = near(vec![place(&model("one", 2), &[1.0])]);
    assert!(
        s.store().find(&g, &wrong).await.is_err(),
        "a wrong dimension is no match"
    );
    let stale = vec![(u64::MAX >> 30, place(&two, &[1.0, 0.0, 0.0]))];
    assert_eq!(s.store().embed(&g, stale).await.unwrap(), 0);
}

pub async fn a_probe_that_says_nothing_finds_the_newest(s: Subject) {
    let g = grant(at(0));
    let tagged = |name: &str, tag: &str, created: i64| Record {
        tags: vec![tag.to_owned()],
        ..note(name).created(at(created))
    };
    let records = [
        tagged("b", "Failed:build", 2),
        tagged("a", "failed:build", 3),
        tagged("c", "failed:build", 1),
        tagged("d", "done:build", 4),
    ];
    s.put(&g, records).await;
    let newest = async |depth| {
        let probe = Probe {
            filter: Filter {
                tags: vec!["failed:build".to_owned()],
                ..Filter::default()
            },
            depth,
            ..Probe::default()
        };
        let found = s.store().find(&g, &probe).await.unwrap();
        found.into_iter().map(|one| one.id).collect::<Vec<Id>>()
    };
    assert_eq!(newest(9).await, ids(&["a", "b", "c"]));
    assert_eq!(newest(2).await, ids(&["a", "b"]));
    s.delete(&g, "a").await;
    assert_eq!(newest(2).await, ids(&["b", "c"]));
}
