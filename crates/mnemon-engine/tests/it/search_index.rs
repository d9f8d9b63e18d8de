//! Searches over indexes that leave work to the engine.

use std::sync::Arc;

use mnemon_core::ram::Ram;
use mnemon_core::rank::Recipe;
use mnemon_core::{Backend, Filter, Ids, Kind, Owner, Policy, Right, Store};
use mnemon_engine::{Draft, Hit, Memory, Query};
use mnemon_testkit::fakes::HashEmbedder;
use mnemon_testkit::plain_index::PlainIndex;
use mnemon_testkit::talks::Dice;

use crate::{ctx, named, wait};

/// Scores may differ by this share: how much neighbours add to the mean length of all records is
/// estimated from the matches.
const NEAR: f64 = 0.03;
/// The same where a filter leaves only the matches of one session to estimate it from.
const NEAR_FILTERED: f64 = 0.08;

const WORDS: [&str; 16] = [
    "tea", "coffee", "train", "garden", "invoice", "deploy", "summer", "letter", "window", "river",
    "piano", "salary", "bridge", "lantern", "harbour", "orchid",
];

fn embedder() -> Arc<HashEmbedder> {
    Arc::new(HashEmbedder::new(64))
}

fn over(backend: impl Into<Backend>) -> Memory {
    let builder = Memory::builder(backend, Ids::new(7));
    builder.embedder(embedder()).build()
}

fn plain(store: &Arc<Ram>) -> PlainIndex {
    PlainIndex::new(store.clone(), Some(embedder()))
}

fn search(memory: &Memory, query: &Query) -> Vec<Hit> {
    wait(memory.records().search(&ctx(), query)).unwrap()
}

fn ids(hits: &[Hit]) -> Vec<String> {
    hits.iter().map(|hit| hit.record.id.to_string()).collect()
}

/// Messages of a few sessions, which come mixed and some of them late, and notes of no session.
fn conversations(dice: &mut Dice) -> Vec<Draft> {
    let drafts = (0..80).map(|number| {
        let longest = if dice.once_in(8) { 70 } else { 9 };
        let words = (0..=dice.below(longest)).map(|_| WORDS[dice.below(WORDS.len())]);
        let text = format!("m{number} {}", words.collect::<Vec<_>>().join(" "));
        let session = dice.below(5);
        let said_at = number as i64 * 1000 - dice.below(3) as i64 * 1500;
        let mut draft = Draft {
            owner: Owner {
                session: (session > 0).then(|| format!("s{session}")),
                ..Owner::default()
            },
            created: Some(ctx().now.plus_millis(said_at - 100_000)),
            ..named(&format!("m{number:02}"), &text)
        };
        let speaker = ["Ann Lee", "Bob"][dice.below(2)];
        draft.metadata.insert("speaker".to_owned(), speaker.into());
        draft
    });
    drafts.collect()
}

fn queries(dice: &mut Dice) -> Vec<Query> {
    let queries = (0..12).map(|number| {
        let words = [0, 0, 0].map(|_| WORDS[dice.below(WORDS.len())]);
        let name = ["Ann and", "", "What did bob say about"][dice.below(3)];
        let recipes = [Recipe::Hybrid, Recipe::Words, Recipe::Meaning];
        let mut filter = Filter::all_of_tenant();
        if number % 4 == 3 {
            filter.owner.session = Some("s2".to_owned());
        }
        Query {
            recipe: recipes[number % 3],
            limit: 80,
            min_score: Some(0.0),
            filter,
            ..Query::new(
                format!("{name} {}", words.join(" ")),
                Filter::all_of_tenant(),
            )
        }
    });
    queries.collect()
}

/// Whether both found the same with about the same scores, and in the same order but for records
/// whose scores are about the same.
fn agree(query: &Query, ours: &[Hit], theirs: &[Hit]) -> Result<(), String> {
    let share = match query.filter.is_empty() {
        true => NEAR,
        false => NEAR_FILTERED,
    };
    let near = |one: f64, other: f64| (one - other).abs() <= share * one.max(other);
    if ours.len() != theirs.len() {
        return Err(format!("{:?}\n{:?}", ids(ours), ids(theirs)));
    }
    for (at, our) in ours.iter().enumerate() {
        let their = theirs.iter().find(|their| their.record.id == our.record.id);
        let their = their.ok_or_else(|| format!("{} is missing", our.record.id))?;
        // The order is by these; the score depends on the place, which equals may exchange.
        let fused = |hit: &Hit| f64::from(hit.parts.unwrap().score());
        if !near(fused(our), fused(their)) || !near(fused(our), fused(&theirs[at])) {
            return Err(format!("{at}: {our:?}\n{their:?}\n{:?}", theirs[at]));
        }
    }
    Ok(())
}

#[test]
fn an_index_without_neighbour_context_finds_the_same() {
    let mut without_context = 0;
    for seed in 0..6 {
        let mut dice = Dice::new(seed);
        let store = Arc::new(Ram::new());
        let built_in = over(store.clone());
        let drafts = conversations(&mut dice);
        wait(built_in.records().add(&ctx(), drafts, None)).unwrap();
        let engine = over(plain(&store).backend());
        let off = over(plain(&store).claiming_context().backend());
        for query in queries(&mut dice) {
            let expected = search(&built_in, &query);
            assert!(expected.len() > 2, "{query:?}");
            if let Err(differs) = agree(&query, &search(&engine, &query), &expected) {
                panic!("seed {seed}, {query:?}: {differs}");
            }
            without_context +=
                usize::from(agree(&query, &search(&off, &query), &expected).is_err());
        }
    }
    assert!(
        without_context > 60,
        "the neighbours decide: {without_context}"
    );
}

#[test]
fn without_statistics_they_are_estimated() {
    let mut same = 0;
    let mut dice = Dice::new(1);
    let store = Arc::new(Ram::new());
    let built_in = over(store.clone());
    let drafts = conversations(&mut dice);
    wait(built_in.records().add(&ctx(), drafts, None)).unwrap();
    let engine = over(plain(&store).without_statistics().backend());
    for query in queries(&mut dice) {
        let (ours, theirs) = (search(&engine, &query), search(&built_in, &query));
        assert_eq!(ours.len(), theirs.len());
        let top = ids(&theirs)[..3].to_vec();
        same += usize::from(top.contains(&ids(&ours)[0]));
    }
    assert!(same >= 11, "{same}");
}

#[test]
fn filters_that_the_index_does_not_apply_are_applied_to_the_records() {
    let store = Arc::new(Ram::new());
    let memory = over(plain(&store).without_filters().backend());
    let mut drafts: Vec<Draft> = (0..2000)
        .map(|number| {
            let mut draft = named(&format!("n{number}"), "tea tea tea");
            draft.content.push_str(&format!(" {number}"));
            draft
        })
        .collect();
    let mut wanted = named("wanted", "a cup of tea after a long day at the office");
    wanted.kind = Some(Kind::Fact);
    drafts.push(wanted);
    wait(memory.records().add(&ctx(), drafts, None)).unwrap();
    let filter = Filter {
        kinds: vec![Kind::Fact],
        ..Filter::all_of_tenant()
    };
    for recipe in [Recipe::Hybrid, Recipe::Words, Recipe::Meaning] {
        let query = Query {
            recipe,
            min_score: Some(0.0),
            filter: filter.clone(),
            ..Query::new("tea", Filter::all_of_tenant())
        };
        assert_eq!(ids(&search(&memory, &query)), ["wanted"], "{recipe:?}");
    }
    let latest = wait(memory.records().latest(&ctx(), filter, 5)).unwrap();
    assert_eq!(latest.len(), 1);
}

#[test]
fn an_index_that_lags_neither_shows_nor_crowds_out() {
    let store = Arc::new(Ram::new());
    let built_in = over(store.clone());
    let drafts = (0..300).map(|number| match number {
        0 => named("stays", "a cup of tea after a long day at the office"),
        _ => named(&format!("n{number}"), &format!("tea tea {number}")),
    });
    let drafts = drafts.collect();
    wait(built_in.records().add(&ctx(), drafts, None)).unwrap();
    let grant = Policy::default().check(&ctx(), Right::Purge).unwrap();
    let mut index = plain(&store);
    wait(index.lag(&grant));
    let gone: Vec<_> = (1..300).map(|n| format!("n{n}").parse().unwrap()).collect();
    wait(built_in.records().forget(&ctx(), &gone, None)).unwrap();
    assert_eq!(wait(store.tally(&grant)).unwrap().records(), 1);
    let memory = over(index.backend());
    assert_eq!(
        ids(&search(
            &memory,
            &Query::new("tea", Filter::all_of_tenant())
        )),
        ["stays"]
    );
    let latest = wait(memory.records().latest(&ctx(), Filter::all_of_tenant(), 5)).unwrap();
    assert_eq!(latest.len(), 1);
}

#[test]
fn scores_of_an_unknown_scale_are_fused_by_rank() {
    let store = Arc::new(Ram::new());
    let memory = over(plain(&store).claiming_context().without_scale().backend());
    let drafts = ["tea", "tea and milk", "tea and milk and sugar", "coffee"];
    let drafts = drafts.into_iter().map(Draft::note).collect();
    wait(memory.records().add(&ctx(), drafts, None)).unwrap();
    let hits = search(&memory, &Query::new("tea", Filter::all_of_tenant()));
    assert_eq!(hits.len(), 3);
    for (rank, hit) in hits.iter().enumerate() {
        let parts = hit.parts.unwrap();
        let expected = 0.5 * 61.0 / (61.0 + rank as f32);
        assert!((parts.words - expected).abs() < 1e-5, "{parts:?}");
        assert!((parts.meaning - expected).abs() < 1e-5, "{parts:?}");
    }
}
