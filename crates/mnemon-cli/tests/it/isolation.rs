//! What a user finds does not depend on private records of others: neither the hits, nor their
//! order, nor their scores to the bit. On RAM and on SQLite.

use std::sync::Arc;

use mnemon_adapters::Sqlite;
use mnemon_core::ram::Ram;
use mnemon_core::rank::Recipe;
use mnemon_core::{
    Backend, Ctx, Filter, Id, Ids, Kind, Limits, Owner, Policy, Tenant, Time, Viewer,
};
use mnemon_engine::{Draft, Hit, Memory, Query};
use mnemon_testkit::fakes::HashEmbedder;
use mnemon_testkit::talks::{Dice, cases};

const WORDS: [&str; 10] = [
    "tea", "garden", "train", "letter", "invoice", "river", "music", "winter", "bread", "island",
];
const SPEAKERS: [&str; 4] = ["Ann Lee", "Bob", "River Song", "Tea"];
/// Days that records name.
const DAYS: [&str; 6] = [
    "yesterday",
    "last weekend",
    "on 3 May",
    "on 3 May 2010",
    "two weeks ago",
    "in October",
];
const QUERIES: [&str; 10] = [
    "What happened on 3 May?",
    "what did I do yesterday",
    "the garden in October",
    "what did Ann say about the garden?",
    "River's letter and the invoice",
    "tea",
    "the train in November 2023",
    "music and bread on 14 November 2023",
    "bob island winter absent",
    "Who wrote a letter?",
];

static TINY: Limits = Limits {
    search_depth: 3,
    search_depth_most: 24,
    page: 3,
    ..Limits::DEFAULT
};

fn ctx() -> Ctx {
    let now = Time::from_millis(1_700_000_000_000).unwrap();
    Ctx::new(Tenant::default(), "test", now)
}

/// A record of this user, and whether it is deleted later.
fn draft(dice: &mut Dice, id: String, user: Option<&str>) -> (Draft, bool) {
    let words = (0..=dice.below(9)).map(|_| WORDS[dice.below(10).min(dice.below(10))]);
    let mut words: Vec<&str> = words.collect();
    if dice.once_in(3) {
        words.push(DAYS[dice.below(DAYS.len())]);
    }
    let mut draft = Draft {
        id: Some(id.parse().unwrap()),
        owner: Owner {
            user: user.map(str::to_owned),
            ..Owner::default()
        },
        created: Some(ctx().now.plus_days(match dice.once_in(10) {
            // Years ago.
            true => -400 * (1 + dice.below(20) as i64),
            false => -(dice.below(40) as i64),
        })),
        ..Draft::note(words.join(" "))
    };
    if dice.once_in(2) {
        draft.kind = Some(Kind::Message);
        draft.owner.session = Some(["s", "t"][dice.below(2)].to_owned());
    }
    if dice.once_in(2) {
        let speaker = SPEAKERS[dice.below(SPEAKERS.len())];
        draft.metadata.insert("speaker".to_owned(), speaker.into());
    }
    if dice.once_in(6) {
        draft.expires = Some(ctx().now.plus_millis(1 + dice.below(2) as i64));
    }
    (draft, dice.once_in(8))
}

/// Searches a millisecond later than everything was written, when some of it has expired.
fn search(memory: &Memory, query: &Query) -> Vec<String> {
    let ctx = Ctx {
        now: ctx().now.plus_millis(2),
        ..ctx()
    };
    let hits = wait(memory.records().search(&ctx, query)).unwrap();
    let told = |hit: &Hit| {
        let parts = hit.parts.unwrap();
        let numbers = [
            parts.words,
            parts.meaning,
            parts.told,
            parts.speaker,
            parts.date,
        ];
        let bits = (hit.score.to_bits(), numbers.map(f32::to_bits));
        format!("{} {bits:?} {:?}", hit.record.id, hit.matched)
    };
    hits.iter().map(told).collect()
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(future)
}

fn memory(
    backend: impl Into<Backend>,
    limits: &'static Limits,
    drafts: &[(Draft, bool)],
) -> Memory {
    let policy = Policy {
        limits,
        ..Policy::default()
    };
    let memory = Memory::builder(backend, Ids::new(1))
        .policy(policy)
        .embedder(Arc::new(HashEmbedder::new(32)))
        .build();
    for (draft, _) in drafts {
        let drafts = vec![draft.clone()];
        wait(memory.records().add(&ctx(), drafts, None)).unwrap();
    }
    for (draft, is_deleted) in drafts {
        if *is_deleted {
            let id: Id = draft.id.clone().unwrap();
            wait(memory.records().forget(&ctx(), &[id], None)).unwrap();
        }
    }
    memory
}

fn queries() -> Vec<Query> {
    let own = Filter {
        owner: Owner {
            user: Some("ann".to_owned()),
            ..Owner::default()
        },
        ..Filter::seen_by(Viewer::user("ann"))
    };
    let messages = Filter {
        kinds: vec![Kind::Message],
        ..Filter::seen_by(Viewer::user("ann"))
    };
    let filters = [
        Filter::seen_by(Viewer::user("ann")),
        own,
        messages,
        Filter::seen_by(Viewer::ANYONE),
    ];
    let recipes = [
        Recipe::Hybrid,
        Recipe::Words,
        Recipe::Meaning,
        Recipe::Recent,
    ];
    let mut queries = Vec::new();
    for (at, text) in QUERIES.iter().enumerate() {
        for (filter, limit) in filters.iter().zip([2, 10, 5, 10]) {
            queries.push(Query {
                recipe: recipes[(at + limit) % recipes.len()],
                limit,
                min_score: Some(0.0).filter(|_| at % 3 > 0),
                explain: true,
                ..Query::new(*text, filter.clone())
            });
        }
    }
    queries
}

#[test]
fn what_a_user_finds_does_not_depend_on_private_records_of_others() {
    let mut found = 0;
    for seed in 0..cases(4, 100) {
        let dice = &mut Dice::new(seed);
        let ours: Vec<(Draft, bool)> = (0..5 + dice.below(30))
            .map(|n| {
                let user = Some("ann").filter(|_| !dice.once_in(4));
                draft(dice, format!("ours{n}"), user)
            })
            .collect();
        let mut all = ours.clone();
        for n in 0..dice.below(60) {
            let at = dice.below(all.len() + 1);
            all.insert(at, draft(dice, format!("theirs{n}"), Some("bob")));
        }
        let limits = [&Limits::DEFAULT, &TINY][seed as usize % 2];
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| Arc::new(Sqlite::open(&folder.path().join(name)).unwrap());
        let alone = memory(Arc::new(Ram::new()), limits, &ours);
        let others = [
            memory(Arc::new(Ram::new()), limits, &all),
            memory(file("alone.db"), limits, &ours),
            memory(file("all.db"), limits, &all),
        ];
        for query in queries() {
            let expected = search(&alone, &query);
            found += expected.len();
            for other in &others {
                assert_eq!(search(other, &query), expected, "seed {seed}: {query:?}");
            }
        }
    }
    assert!(found > 200, "{found}");
}
