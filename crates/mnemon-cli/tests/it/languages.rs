//! Search in languages that the built-in model was not made for, and for what only machines say.
//!
//! Every question is asked of one store with all notes of its language, by the default recipe.

mod chinese;
mod code;
mod japanese;
mod vietnamese;

use std::sync::Arc;

use mnemon_adapters::embed::Builtin;
use mnemon_core::{Ctx, Ids, Tenant, Time};
use mnemon_engine::{Draft, Memory, Query};

/// A note must be among so many to count as found.
const TOP: usize = 3;

struct Language {
    name: &'static str,
    /// Questions, each with the note that answers it.
    pairs: &'static [(&'static str, &'static str)],
    /// Notes that answer none of them.
    others: &'static [&'static str],
}

fn ctx() -> Ctx {
    let now = Time::from_millis(1_700_000_000_000).unwrap();
    Ctx::new(Tenant::default(), "test", now)
}

async fn remember(notes: impl Iterator<Item = &'static str>) -> Memory {
    let opened = mnemon_adapters::open("ram:").unwrap();
    let memory = Memory::builder(opened.backend, Ids::new(3))
        .embedder(Arc::new(Builtin::new().unwrap()))
        .build();
    let drafts = notes.map(Draft::note).collect();
    memory.records().add(&ctx(), drafts, None).await.unwrap();
    memory
}

async fn contents(memory: &Memory, query: &str) -> Vec<String> {
    let hits = memory
        .records()
        .search(
            &ctx(),
            &Query {
                // This is about the order.
                min_score: Some(0.0),
                ..Query::new(query, mnemon_core::Filter::all_of_tenant())
            },
        )
        .await
        .unwrap();
    hits.into_iter().map(|hit| hit.record.content).collect()
}

async fn finds(language: &Language, at_least: usize) {
    assert!(language.pairs.len() >= at_least, "{}", language.name);
    assert!(language.others.len() >= 30, "{}", language.name);
    let answers = language.pairs.iter().map(|(_, note)| *note);
    let memory = remember(answers.chain(language.others.iter().copied())).await;
    let (mut missed, mut first) = (Vec::new(), 0);
    for (query, note) in language.pairs {
        let found = contents(&memory, query).await;
        match found.iter().position(|content| content == note) {
            Some(place) if place < TOP => first += usize::from(place == 0),
            place => missed.push(format!(
                "{query}\n  wanted {note}\n  which came at {place:?}, after {:#?}",
                &found[..TOP.min(found.len())]
            )),
        }
    }
    let asked = language.pairs.len();
    assert!(
        missed.is_empty(),
        "{}: {} of {asked} not in the first {TOP} ({first} came first)\n{}",
        language.name,
        missed.len(),
        missed.join("\n")
    );
}

#[tokio::test]
async fn vietnamese() {
    finds(&vietnamese::VIETNAMESE, 40).await;
    let bare = vietnamese::VIETNAMESE.pairs.iter();
    let bare = bare.filter(|(query, _)| query.is_ascii()).count();
    assert!(bare * 3 >= vietnamese::VIETNAMESE.pairs.len(), "{bare}");
}

#[tokio::test]
async fn japanese() {
    finds(&japanese::JAPANESE, 40).await;
}

#[tokio::test]
async fn chinese() {
    finds(&chinese::CHINESE, 15).await;
}

#[tokio::test]
async fn code_and_dates() {
    finds(&code::CODE, 15).await;
}

/// Who types the marks means them; who leaves them out finds both, the bare spelling first.
#[tokio::test]
async fn exact_diacritics_come_before_folded() {
    let with = "Quyết định về kiến trúc đã được ghi lại.";
    let without = "Quyet dinh ve kien truc da duoc ghi lai.";
    // Whichever was written first.
    for notes in [[with, without], [without, with]] {
        let others = vietnamese::VIETNAMESE.others.iter().copied();
        let memory = remember(notes.into_iter().chain(others)).await;
        assert_eq!(contents(&memory, "quyết định").await[..2], [with, without]);
        assert_eq!(contents(&memory, "QUYẾT ĐỊNH").await[..2], [with, without]);
        assert_eq!(contents(&memory, "quyet dinh").await[..2], [without, with]);
    }
}
