//! The optional last look at what was found.

use std::sync::Arc;

use async_trait::async_trait;
use mnemon_core::embed::EmbedError;
use mnemon_core::rerank::Reranker;
use mnemon_core::{Ids, ram::Ram};
use mnemon_engine::{Draft, Hit, Memory, Query};

use crate::{ctx, wait};

type Says = fn(&str) -> Result<f32, EmbedError>;

/// A model that says of a text what it is told to.
struct Likes(Says);

#[async_trait]
impl Reranker for Likes {
    async fn scores(&self, question: &str, texts: &[&str]) -> Result<Vec<f32>, EmbedError> {
        assert_eq!(
            question, "green tea",
            "it reads the question as it was asked"
        );
        texts.iter().map(|text| (self.0)(text)).collect()
    }
}

fn search(reranker: Option<Likes>, limit: usize) -> Vec<Hit> {
    let mut builder = Memory::builder(Arc::new(Ram::new()), Ids::new(7));
    if let Some(reranker) = reranker {
        builder = builder.reranker(Arc::new(reranker));
    }
    let memory = builder.build();
    let drafts = [
        "green tea",
        "green tea is what Ann drinks at four",
        "the tea in the green tin at the very back of the shelf is stale",
        "black coffee",
    ];
    let drafts = drafts.into_iter().map(Draft::note).collect();
    wait(memory.records().add(&ctx(), drafts, None)).unwrap();
    let query = Query {
        limit,
        ..Query::new("green tea", mnemon_core::Filter::all_of_tenant())
    };
    wait(memory.records().search(&ctx(), &query)).unwrap()
}

fn texts(hits: &[Hit]) -> Vec<&str> {
    hits.iter().map(|hit| hit.record.content.as_str()).collect()
}

#[test]
fn the_model_has_a_say_in_the_order() {
    let before = search(None, 10);
    assert_eq!(texts(&before)[0], "green tea");
    assert!(before[0].parts.unwrap().reread.is_none());

    let shelf = Likes(|text| Ok(if text.contains("shelf") { 9.0 } else { -9.0 }));
    let after = search(Some(shelf), 10);
    assert!(texts(&after)[0].contains("shelf"), "{:?}", texts(&after));
    assert_eq!(after[0].parts.unwrap().reread, Some(1.0));
    assert_eq!(after.len(), before.len(), "nothing is lost");
    assert!(after.windows(2).all(|two| two[0].score >= two[1].score));
}

#[test]
fn it_chooses_from_more_than_was_asked_for() {
    let shelf = Likes(|text| Ok(if text.contains("shelf") { 9.0 } else { -9.0 }));
    let hits = search(Some(shelf), 1);
    assert_eq!(hits.len(), 1);
    assert!(hits[0].record.content.contains("shelf"));
}

#[test]
fn a_model_that_fails_costs_nothing_but_its_word() {
    let plain = search(None, 10);
    let broken: [Says; 3] = [
        |_| {
            Err(EmbedError::BadAnswer {
                what: "broken".to_owned(),
                source: None,
            })
        },
        |_| Ok(f32::NAN),
        |_| Ok(1.0),
    ];
    for say in broken {
        let hits = search(Some(Likes(say)), 10);
        assert_eq!(texts(&hits), texts(&plain));
        assert!(hits.iter().all(|hit| hit.parts.unwrap().reread.is_none()));
    }
}
