//! Random operations on a store, for tests of indexes that follow it.

use mnemon_core::embed::Embedder;
use mnemon_core::{Answer, Batch, Embedding, Filter, Id, Op, Probe, QueryTerm, Store, limits};

use crate::fakes::HashEmbedder;
use crate::make::{Remade, at, grant, id, note};

const WORDS: [&str; 6] = ["tea", "coffee", "milk", "cup", "morning", "train"];

/// Numbers that look random and are the same in every run.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, most: u64) -> u64 {
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// A probe for these words.
pub fn words(query: &str) -> Probe {
    Probe {
        terms: QueryTerm::words_of(query),
        depth: limits::PAGE,
        ..Probe::new(Filter::all_of_tenant(), 0)
    }
}

/// The ids of the matches, in order.
pub fn ids_of(answer: Answer) -> std::collections::BTreeSet<Id> {
    let ids = answer.matches.into_iter().map(|found| found.id);
    ids.collect()
}

/// Puts a record with its vector.
pub async fn put(store: &dyn Store, name: &str, content: &str) {
    let embedder = HashEmbedder::default();
    let mut vectors = embedder.embed(&[content]).await.unwrap();
    let vector = vectors.remove(0);
    let mut batch = Batch::of(Op::put(note(name).saying(content)));
    batch.vectors = vector
        .map(|vector| {
            let model = embedder.model().clone();
            (id(name), Embedding { model, vector })
        })
        .into_iter()
        .collect();
    store.apply(&grant(at(0)), batch).await.unwrap();
}

/// One operation: a record is put, expires, is deleted or purged, or gets its vector late. The answer
/// is the time after it.
pub async fn operate(store: &dyn Store, random: &mut Random, now: i64) -> i64 {
    let name = format!("n{}", random.below(40));
    let word = |random: &mut Random| WORDS[random.below(6) as usize];
    let text = format!("{} {}", word(random), word(random));
    let g = grant(at(now));
    match random.below(20) {
        0..9 => put(store, &name, &text).await,
        9..11 => {
            let record = note(&name).saying(&text).until(at(now + 5));
            store.apply(&g, Batch::of(Op::put(record))).await.unwrap();
        }
        11..14 => drop(store.apply(&g, Batch::of(Op::delete(id(&name)))).await),
        14..16 => {
            let purge = Op::Purge { id: id(&name) };
            drop(store.apply(&g, Batch::of(purge)).await);
        }
        16 => drop(store.upkeep(&g, 10).await.unwrap()),
        17 => embed_some(store, now).await,
        _ => return now + 1,
    }
    now
}

/// Embeds a few of the records that lack a vector.
async fn embed_some(store: &dyn Store, now: i64) {
    let g = grant(at(now));
    let embedder = HashEmbedder::default();
    let model = embedder.model().clone();
    for record in store.lacking(&g, &model, 0, 3).await.unwrap() {
        let mut made = embedder.embed(&[&record.content]).await.unwrap();
        if let Some(vector) = made.remove(0) {
            let model = model.clone();
            let vectors = vec![(record.seq, Embedding { model, vector })];
            store.embed(&g, vectors).await.unwrap();
        }
    }
}
