//! The suite that every search index passes, over whichever store it is fed from.
//!
//! [`index_conformance!`](crate::index_conformance!) makes one test of each case.

use mnemon_core::embed::Embedder;
use mnemon_core::{
    Answer, Batch, Embedding, Filter, Grant, Id, IndexFilters, Kind, Match, Op, Owner, Probe,
    QueryTerm, Record, ScoreScale, Viewer, limits,
};

use crate::conformance::Subject;
use crate::fakes::HashEmbedder;
use crate::make::{Remade, at, grant, grant_on, id, ids, note};

/// Makes a module of tests, one per case; the expression gives a fresh [`Fixture`] for each. Vectors
/// are made by [`HashEmbedder::default`].
///
/// [`Fixture`]: crate::Fixture
#[macro_export]
macro_rules! index_conformance {
    ($name:ident, $fixture:expr) => {
        $crate::index_conformance!($name, $fixture, $crate::conformance::run);
    };
    // `$run` gets the fixture and a case; it may leave the case out.
    ($name:ident, $fixture:expr, $run:path) => {
        mod $name {
            #[allow(unused_imports, reason = "the fixture may be named by its full path")]
            use super::*;
            $crate::index_conformance_cases! { $fixture; $run;
                what_is_written_is_found_and_what_is_gone_is_not
                expired_records_are_not_found
                speakers_are_known_while_they_have_records
                nobody_finds_anothers_records
                a_probe_that_says_nothing_finds_the_newest
                each_arm_keeps_to_the_depth
                a_match_has_the_scores_of_its_arms
                a_vector_of_the_wrong_length_is_refused
                filters_that_are_declared_come_before_the_depth
                neighbours_count_if_that_is_declared
                statistics_fit_the_probe
            }
        }
    };
}

/// One test per case. Use [`index_conformance!`](crate::index_conformance!).
#[doc(hidden)]
#[macro_export]
macro_rules! index_conformance_cases {
    ($fixture:expr; $run:path; $($case:ident)+) => { $(
        #[test]
        fn $case() {
            $run($fixture, $crate::index_conformance::$case);
        }
    )+ };
}

fn words(query: &str) -> Probe {
    Probe {
        terms: QueryTerm::words_of(query),
        depth: limits::PAGE,
        ..Probe::new(Filter::all_of_tenant(), 0)
    }
}

async fn vector(text: &str) -> Option<Embedding> {
    let embedder = HashEmbedder::default();
    let made = embedder.embed(&[text]).await.unwrap().remove(0);
    made.map(|vector| Embedding {
        model: embedder.model().clone(),
        vector,
    })
}

async fn meaning(query: &str) -> Probe {
    Probe {
        vectors: vector(query).await.into_iter().collect(),
        depth: limits::PAGE,
        ..Probe::new(Filter::all_of_tenant(), 0)
    }
}

/// Puts the records with their vectors, one commit each.
async fn put(s: &Subject, g: &Grant, records: impl IntoIterator<Item = Record>) {
    for record in records {
        let made = vector(&record.content).await;
        let mut batch = Batch::of(Op::put(record.clone()));
        batch.vectors = made.map(|made| (record.id, made)).into_iter().collect();
        s.done(g, batch).await;
    }
}

async fn answer(s: &Subject, g: &Grant, probe: &Probe) -> Answer {
    s.index().find(g, probe).await.unwrap()
}

/// The matches that become hits, the best first.
async fn found(s: &Subject, g: &Grant, probe: &Probe) -> Vec<Id> {
    let mut found = answer(s, g, probe).await.matches;
    found.sort_by(|a, b| {
        let (a, b) = ((a.words, a.meaning), (b.words, b.meaning));
        b.partial_cmp(&a).unwrap()
    });
    let ids: Vec<Id> = found.into_iter().map(|found| found.id).collect();
    let records = s.store().get(g, &ids).await.unwrap();
    if s.index().capabilities().deletes_at_once {
        assert!(records.iter().all(Option::is_some), "{ids:?}");
    }
    let there = records.into_iter().flatten();
    there.map(|record| record.id).collect()
}

pub async fn speakers_are_known_while_they_have_records(mut s: Subject) {
    let g = grant(at(0));
    let said = |name: &str, speaker: &str| {
        let mut record = note(name);
        record.metadata.insert("speaker".to_owned(), speaker.into());
        record
    };
    let of = |user: &str, record: Record| Record {
        owner: Owner {
            user: Some(user.to_owned()),
            ..Owner::default()
        },
        ..record
    };
    let records = [
        said("a", "Ann Lee"),
        said("b", "Ann"),
        said("c", "Ann"),
        said("d", "Đức"),
        note("e"),
        of("bob", said("f", "Ann of Bob")),
    ];
    put(&s, &g, records).await;
    let everyone = Filter::seen_by(Viewer::ANYONE);
    let tenant = Filter::all_of_tenant();
    let bob = Filter {
        owner: Owner {
            user: Some("bob".to_owned()),
            ..Owner::default()
        },
        ..Filter::seen_by(Viewer::user("bob"))
    };
    let named = async |s: &Subject, g: &Grant, audience: &Filter, words: &[&str]| {
        s.index().speakers(g, audience, words).await.unwrap()
    };
    let all = named(&s, &g, &tenant, &["ann", "lee"]).await;
    assert_eq!(all, ["Ann", "Ann Lee", "Ann of Bob"]);
    let shared = named(&s, &g, &everyone, &["ann", "lee"]).await;
    assert_eq!(
        shared,
        ["Ann", "Ann Lee"],
        "nobody hears of another's speakers"
    );
    assert_eq!(named(&s, &g, &bob, &["ann"]).await, ["Ann of Bob"]);
    let odd = named(&s, &g, &tenant, &["đức", "", "nobody"]).await;
    assert_eq!(odd, ["Đức"]);
    assert!(named(&s, &g, &tenant, &["Ann", "lee"]).await.is_empty());
    assert!(named(&s, &g, &tenant, &[]).await.is_empty());
    let others = grant_on("other");
    assert!(named(&s, &others, &tenant, &["ann"]).await.is_empty());
    // A replaced, a deleted and a purged version speak no more, nor does one that has expired.
    put(&s, &g, [said("b", "Bob"), said("x", "Ann X").until(at(10))]).await;
    s.delete(&g, "c").await;
    s.purge(&g, "a").await;
    assert_eq!(named(&s, &g, &everyone, &["ann"]).await, ["Ann X"]);
    let later = grant(at(11));
    assert!(named(&s, &later, &everyone, &["ann"]).await.is_empty());
    put(&s, &g, [said("c", "Ann")]).await;
    s.reopen().await;
    let after = named(&s, &later, &everyone, &["ann", "bob", "đức"]).await;
    assert_eq!(after, ["Ann", "Bob", "Đức"]);
}

pub async fn what_is_written_is_found_and_what_is_gone_is_not(s: Subject) {
    let g = grant(at(0));
    let (tea, coffee) = (words("tea"), words("coffee"));
    let first = [
        note("a").saying("green tea"),
        note("b").saying("black coffee"),
    ];
    put(&s, &g, first).await;
    assert_eq!(found(&s, &g, &tea).await, [id("a")]);
    assert_eq!(found(&s, &g, &meaning("tea").await).await, [id("a")]);
    let second = [
        note("a").saying("black coffee, too"),
        note("c").saying("tea again"),
    ];
    put(&s, &g, second).await;
    assert_eq!(found(&s, &g, &tea).await, [id("c")]);
    assert_eq!(found(&s, &g, &coffee).await.len(), 2);
    s.apply(&g, vec![Op::delete(id("b"))]).await.unwrap();
    s.apply(&g, vec![Op::Purge { id: id("c") }]).await.unwrap();
    assert_eq!(found(&s, &g, &tea).await, Vec::<Id>::new());
    assert_eq!(found(&s, &g, &coffee).await, [id("a")]);
    let near = meaning("tea again").await;
    assert_eq!(found(&s, &g, &near).await, Vec::<Id>::new());
}

pub async fn expired_records_are_not_found(s: Subject) {
    let g = grant(at(0));
    let mut short = note("a").saying("green tea");
    short.expires = Some(at(10));
    put(&s, &g, [short, note("b").saying("tea")]).await;
    for probe in [
        words("tea"),
        meaning("tea").await,
        Probe {
            depth: 9,
            ..Probe::new(Filter::all_of_tenant(), 0)
        },
    ] {
        assert_eq!(found(&s, &g, &probe).await.len(), 2);
        assert_eq!(found(&s, &grant(at(11)), &probe).await, [id("b")]);
    }
}

pub async fn nobody_finds_anothers_records(s: Subject) {
    let (ours, theirs) = (grant(at(0)), grant_on("other"));
    put(&s, &ours, [note("a").saying("green tea")]).await;
    assert_eq!(found(&s, &theirs, &words("tea")).await, Vec::<Id>::new());
    put(&s, &theirs, [note("a").saying("tea").on("other")]).await;
    assert_eq!(found(&s, &ours, &words("green")).await, [id("a")]);
    assert_eq!(found(&s, &theirs, &words("green")).await, Vec::<Id>::new());
    let near = meaning("green").await;
    assert_eq!(found(&s, &theirs, &near).await, Vec::<Id>::new());
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
    put(&s, &g, records).await;
    let newest = async |tags: &[&str], depth| {
        let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        let filter = Filter {
            tags,
            ..Filter::all_of_tenant()
        };
        let probe = Probe {
            filter,
            depth,
            ..Probe::new(Filter::all_of_tenant(), 0)
        };
        let found = answer(&s, &g, &probe).await.matches.into_iter();
        found.map(|one| one.id).collect::<Vec<Id>>()
    };
    assert_eq!(newest(&[], 9).await, ids(&["d", "a", "b", "c"]));
    assert_eq!(newest(&[], 2).await, ids(&["d", "a"]));
    if s.index().capabilities().filters.tags {
        let failed = ["failed:build"];
        assert_eq!(newest(&failed, 9).await, ids(&["a", "b", "c"]));
        assert_eq!(newest(&failed, 2).await, ids(&["a", "b"]));
        s.delete(&g, "a").await;
        if s.index().capabilities().deletes_at_once {
            assert_eq!(newest(&failed, 2).await, ids(&["b", "c"]));
        }
    }
}

pub async fn each_arm_keeps_to_the_depth(s: Subject) {
    let g = grant(at(0));
    let records = (0..20).map(|n| note(&format!("n{n:02}")).saying(&format!("tea number {n}")));
    put(&s, &g, records).await;
    for depth in [1, 7, 20, 100] {
        let most = depth.min(20);
        for mut probe in [words("tea"), meaning("tea").await] {
            probe.depth = depth;
            assert_eq!(found(&s, &g, &probe).await.len(), most, "{probe:?}");
        }
    }
}

pub async fn a_match_has_the_scores_of_its_arms(s: Subject) {
    let g = grant(at(0));
    let records = [
        note("a").saying("tea with milk and sugar after a long day"),
        note("b").saying("tea"),
        note("c").saying("coffee"),
    ];
    put(&s, &g, records).await;
    let of = |matches: &[Match], name: &str| -> (Option<f32>, Option<f32>) {
        let found = matches.iter().find(|found| found.id == id(name)).unwrap();
        (found.words, found.meaning)
    };
    let matches = answer(&s, &g, &words("tea")).await.matches;
    assert_eq!(matches.len(), 2, "each once");
    let ((long, none), (short, _)) = (of(&matches, "a"), of(&matches, "b"));
    assert_eq!(none, None, "nobody asked for meaning");
    assert!(short.unwrap() > long.unwrap() && long.unwrap() > 0.0);
    let matches = answer(&s, &g, &meaning("tea").await).await.matches;
    let (words_arm, near) = of(&matches, "b");
    assert_eq!(words_arm, None, "nobody asked for words");
    if s.index().capabilities().meaning == ScoreScale::Cosine {
        assert!((near.unwrap() - 1.0).abs() < 0.01, "{near:?}");
    }
    let both = Probe {
        terms: words("tea").terms,
        ..meaning("tea").await
    };
    let matches = answer(&s, &g, &both).await.matches;
    assert!(matches!(of(&matches, "b"), (Some(_), Some(_))));
}

pub async fn a_vector_of_the_wrong_length_is_refused(s: Subject) {
    let g = grant(at(0));
    put(&s, &g, [note("a").saying("tea")]).await;
    let mut probe = meaning("tea").await;
    probe.vectors[0].vector.pop();
    assert!(s.index().find(&g, &probe).await.is_err());
}

/// A part of a filter, and whether an index applies it.
type FilterPart = (fn(&IndexFilters) -> bool, Filter);

fn filter_parts() -> [FilterPart; 6] {
    let any = Filter::all_of_tenant;
    [
        (
            |inside| inside.owner,
            Filter {
                owner: Owner {
                    agent: Some("helper".to_owned()),
                    ..Owner::default()
                },
                ..any()
            },
        ),
        (
            |inside| inside.viewer,
            Filter {
                viewer: mnemon_core::Viewer::user("ann"),
                ..any()
            },
        ),
        (
            |inside| inside.sorts,
            Filter {
                kinds: vec![Kind::Fact],
                ..any()
            },
        ),
        (
            |inside| inside.tags,
            Filter {
                tags: vec!["drinks".to_owned()],
                ..any()
            },
        ),
        (
            |inside| inside.time,
            Filter {
                until: Some(at(2)),
                ..any()
            },
        ),
        (
            |inside| inside.content,
            Filter {
                metadata: Some(r#"{"lang":"vi"}"#.parse().unwrap()),
                ..any()
            },
        ),
    ]
}

pub async fn filters_that_are_declared_come_before_the_depth(s: Subject) {
    let g = grant(at(100));
    let crowd = (0..30).map(|n| {
        let mut record = note(&format!("n{n:02}"))
            .saying("tea tea tea")
            .created(at(50));
        record.owner.user = Some("bob".to_owned());
        record
    });
    let mut wanted = note("wanted")
        .saying("one cup of tea after a long day at the office")
        .created(at(1));
    wanted.kind = Kind::Fact;
    wanted.tags = vec!["Drinks".to_owned()];
    wanted.owner.agent = Some("helper".to_owned());
    wanted.metadata.insert("lang".to_owned(), "vi".into());
    put(&s, &g, crowd.chain([wanted])).await;
    let inside = s.index().capabilities().filters;
    for (is_inside, filter) in filter_parts() {
        assert_eq!(is_inside(&inside), inside.cover(&filter), "{filter:?}");
        for probe in [
            words("tea"),
            meaning("tea").await,
            Probe::new(filter.clone(), 1),
        ] {
            let probe = Probe {
                filter: filter.clone(),
                depth: 1,
                ..probe
            };
            let found = found(&s, &g, &probe).await;
            let expected = if is_inside(&inside) { 1 } else { 0 };
            let wanted = found.iter().filter(|found| **found == id("wanted"));
            assert!(wanted.count() >= expected, "{probe:?}");
        }
    }
}

pub async fn neighbours_count_if_that_is_declared(s: Subject) {
    let g = grant(at(0));
    let said = |name: &str, content: &str| {
        let mut record = note(name).saying(content);
        record.owner.session = Some("s".to_owned());
        record
    };
    let records = [
        said("a", "Have you been to Lisbon?"),
        said("b", "Yes, last summer"),
    ];
    put(&s, &g, records).await;
    let found = found(&s, &g, &words("Lisbon")).await;
    let both = s.index().capabilities().neighbour_context;
    assert_eq!(found.len(), if both { 2 } else { 1 });
    assert_eq!(found[0], id("a"));
}

pub async fn statistics_fit_the_probe(s: Subject) {
    let g = grant(at(0));
    let records = [
        note("a").saying("tea"),
        note("b").saying("green tea leaves"),
    ];
    put(&s, &g, records).await;
    if let Some(known) = answer(&s, &g, &words("green tea")).await.statistics {
        assert_eq!(known.documents, 2);
        assert_eq!(known.mean_length, 2.0);
        let mut having = known.documents_with;
        having.sort_unstable();
        assert_eq!(having, [1, 2]);
    }
}
