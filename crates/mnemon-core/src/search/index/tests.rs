use proptest::prelude::*;

use super::*;
use crate::model::{Ctx, Filter, Kind, Owner, Record, Tenant, Viewer};
use crate::ports::embed::ModelId;
use crate::ports::{Answer, Embedding, Features, Probe, QueryTerm, SimilarTerm};
use crate::search::vector::quantise;

fn now() -> Time {
    Time::from_millis(1_700_000_000_000).unwrap()
}

fn record(seq: u64, content: &str) -> Record {
    let ctx = Ctx::new(Tenant::default(), "test", now());
    let mut record = Record::note(format!("r{seq}").parse().unwrap(), &ctx, content);
    record.seq = seq;
    record
}

fn said(seq: u64, session: &str, content: &str) -> Record {
    let mut record = record(seq, content);
    record.kind = Kind::Message;
    record.owner.session = Some(session.to_owned());
    record
}

fn index(records: &[Record]) -> Index {
    let mut index = Index::new();
    for record in records {
        add(&mut index, record, None);
    }
    index
}

fn add(index: &mut Index, record: &Record, vector: Option<&[f32]>) {
    let vector = vector.map(|vector| stored("m", vector));
    let (doc, terms) = (Doc::of(record), Terms::of(record));
    index.add(&doc, &terms, vector.as_ref()).unwrap();
}

fn model(name: &str, dimension: usize) -> ModelId {
    ModelId {
        name: name.to_owned(),
        dimension,
    }
}

fn stored(name: &str, vector: &[f32]) -> StoredVector {
    StoredVector {
        model: model(name, vector.len()),
        vector: quantise(vector).unwrap(),
    }
}

fn nearest(vector: &[f32]) -> Probe {
    let embedding = Embedding {
        model: model("m", vector.len()),
        vector: vector.to_vec(),
    };
    Probe {
        vectors: vec![embedding],
        ..Probe::new(Filter::all_of_tenant(), 100)
    }
}

fn words(query: &str) -> Probe {
    Probe {
        terms: QueryTerm::words_of(query),
        ..Probe::new(Filter::all_of_tenant(), 100)
    }
}

fn best(answer: Answer) -> Vec<u64> {
    let mut found = answer.matches;
    found.sort_by(|a, b| b.words.partial_cmp(&a.words).unwrap());
    let found = found.into_iter();
    found.map(|found| found.features.unwrap().seq).collect()
}

#[test]
fn words_are_found_in_any_form() {
    let index = index(&[
        record(1, "We decided to use PostgreSQL for billing"),
        record(2, "Chúng tôi quyết định dùng SQLite"),
        record(3, "明日の会議は東京で開かれます"),
        record(4, "parseJSON panics on empty input"),
    ]);
    let first = |query: &str| {
        best(index.find(&words(query), now(), None).unwrap())
            .first()
            .copied()
    };
    assert_eq!(first("deciding on postgresql"), Some(1));
    assert_eq!(first("quyet dinh"), Some(2));
    assert_eq!(first("東京の会議"), Some(3));
    assert_eq!(first("json"), Some(4));
    assert_eq!(first("nothing of this"), None);
}

#[test]
fn only_the_rarest_terms_are_looked_for_if_they_are_enough() {
    let index = index(&[
        record(1, "tea kettle"),
        record(2, "tea garden"),
        record(3, "tea invoice"),
    ]);
    let found = |rarest| {
        let probe = Probe {
            rarest,
            ..words("tea garden unheard")
        };
        best(index.find(&probe, now(), None).unwrap())
    };
    assert_eq!(found(None).len(), 3);
    assert_eq!(found(Some(1)), [2]);
}

#[test]
fn a_message_is_found_by_what_was_said_before_it() {
    let alone = said(9, "other", "Yes, last summer!");
    let records = [
        said(1, "s", "Have you ever been to Lisbon?"),
        said(2, "s", "Yes, last summer!"),
        said(3, "s", "Nice."),
        said(4, "s", "Anyway, dinner?"),
        alone,
    ];
    let index = index(&records);
    let found = best(index.find(&words("Lisbon"), now(), None).unwrap());
    assert_eq!(found[..2], [1, 2]);
    assert!(found.contains(&3) && !found.contains(&4) && !found.contains(&9));
}

#[test]
fn messages_that_come_late_take_their_place() {
    let mut records = vec![
        said(1, "s", "one"),
        said(2, "s", "three"),
        said(3, "s", "two"),
    ];
    records[1].created = now().plus_millis(20);
    records[2].created = now().plus_millis(10);
    let mut index = index(&records);
    assert_eq!(index.chain.around(2), [NOBODY, 0, 1, NOBODY]);
    index.remove(3);
    assert_eq!(index.chain.around(0), [NOBODY, NOBODY, 1, NOBODY]);
    let mut late = said(4, "s", "zero");
    late.created = now().plus_millis(-5);
    add(&mut index, &late, None);
    assert_eq!(index.chain.around(3), [NOBODY, NOBODY, 0, 1]);
    let mut last = said(5, "s", "four");
    last.created = now().plus_millis(30);
    add(&mut index, &last, None);
    assert_eq!(index.chain.around(4), [0, 1, NOBODY, NOBODY]);
}

fn said_at(seq: u64, session: &str, millis: i64) -> Record {
    Record {
        created: now().plus_millis(millis),
        ..said(seq, session, "x")
    }
}

#[test]
fn a_session_that_arrives_newest_first_costs_no_walk_per_record() {
    let count = 5_000;
    let newest_first: Vec<Record> = (1..=count)
        .map(|seq| said_at(seq, "s", -(seq as i64)))
        .collect();
    let index = index(&newest_first);
    assert_eq!(index.chain.around(2), [4, 3, 1, 0]);
    assert!(
        index.chain.steps < 3 * count as usize,
        "{} steps",
        index.chain.steps
    );
}

#[test]
fn edits_of_old_messages_cost_no_walk_per_edit() {
    let (count, edits) = (2_000, 500);
    let mut index = index(
        &(1..=count)
            .map(|seq| said_at(seq, "s", seq as i64))
            .collect::<Vec<_>>(),
    );
    for edit in 1..=edits {
        index.remove(edit);
        let edited = said_at(count + edit, "s", edit as i64);
        add(&mut index, &edited, None);
    }
    assert!(index.chain.steps < 2 * count as usize);
    let first = count as u32;
    assert_eq!(
        index.chain.around(first),
        [NOBODY, NOBODY, first + 1, first + 2]
    );
}

proptest! {
    /// Neighbours are those of a list sorted by time, whatever arrives and goes in which order.
    #[test]
    fn neighbours_are_those_of_a_sorted_list(
        moves in proptest::collection::vec((0..2_usize, 0..40_i64, 0..4_u8), 1..250),
        saved_after in 0..250_usize,
    ) {
        let mut index = Index::new();
        let mut sessions = [Vec::new(), Vec::new()];
        for (at, (session, millis, action)) in moves.into_iter().enumerate() {
            let list: &mut Vec<(i64, u32)> = &mut sessions[session];
            if action == 0 && !list.is_empty() {
                let (_, doc) = list.remove(millis as usize % list.len());
                index.remove(index.docs.seq(doc));
            } else {
                let doc = index.docs.len() as u32;
                let record = said_at(at as u64 + 1, ["s", "t"][session], millis);
                add(&mut index, &record, None);
                list.push((millis, doc));
                list.sort_unstable();
            }
            if at == saved_after && index.len() == index.docs.len() {
                let mut file = Vec::new();
                index.save(&mut file).unwrap();
                index = Index::load(&mut file.as_slice(), file.len() as u64).unwrap();
            }
        }
        for list in &sessions {
            let around = |at: usize, by: isize| {
                let at = at.checked_add_signed(by)?;
                list.get(at).map(|(_, doc)| *doc)
            };
            for (at, (_, doc)) in list.iter().enumerate() {
                let expected = [-2, -1, 1, 2].map(|by| around(at, by).unwrap_or(NOBODY));
                prop_assert_eq!(index.chain.around(*doc), expected);
            }
        }
    }
}

#[test]
fn expired_documents_do_not_crowd_out_live_ones() {
    let mut index = Index::new();
    for seq in 1..=401 {
        let mut record = record(seq, "x");
        let mut near = [1.0, 0.0, 0.0, 0.0];
        if seq == 200 {
            near = [0.8, 0.6, 0.0, 0.0];
        } else {
            record.expires = Some(now());
        }
        add(&mut index, &record, Some(&near));
    }
    let probe = nearest(&[1.0, 0.0, 0.0, 0.0]);
    let found = |at: Time| best(index.find(&probe, at, None).unwrap());
    assert_eq!(found(now()).len(), 100);
    assert_eq!(found(now().plus_millis(1)), [200]);
}

#[test]
fn a_query_that_says_nothing_finds_the_newest() {
    let mut records: Vec<Record> = (1..=300)
        .map(|seq| said_at(seq, "s", seq as i64 % 7))
        .collect();
    records[292].expires = Some(now());
    let index = index(&records);
    let probe = Probe::new(Filter::all_of_tenant(), 3);
    let found = index.find(&probe, now().plus_millis(1), None).unwrap();
    let features = found.matches.iter().flat_map(|found| &found.features);
    let seqs: Vec<u64> = features.map(|features| features.seq).collect();
    assert_eq!(seqs, [300, 286, 279]);
}

#[test]
fn filters_come_before_ranking() {
    let mut records: Vec<Record> = (1..=50).map(|seq| record(seq, "tea tea tea")).collect();
    let mine = &mut records[30];
    mine.content = "one cup of tea after a long day at the office".to_owned();
    mine.owner.user = Some("ann".to_owned());
    mine.tags = vec!["Drinks".to_owned()];
    let index = index(&records);
    let with = |filter: Filter| {
        let probe = Probe {
            filter,
            depth: 5,
            ..words("tea")
        };
        best(index.find(&probe, now(), None).unwrap())
    };
    let user = |user: &str| Filter {
        owner: Owner {
            user: Some(user.to_owned()),
            ..Owner::default()
        },
        ..Filter::all_of_tenant()
    };
    assert_eq!(with(user("ann")), [31]);
    assert_eq!(with(user("bob")), Vec::<u64>::new());
    let tagged = Filter {
        tags: vec!["drinks".to_owned()],
        ..Filter::all_of_tenant()
    };
    assert_eq!(with(tagged), [31]);
    assert_eq!(with(Filter::all_of_tenant()).len(), 5);
    let seen = |user: &str, tag: &str| {
        with(Filter {
            viewer: Viewer::user(user),
            tags: vec![tag.to_owned()],
            ..Filter::all_of_tenant()
        })
    };
    assert_eq!(seen("ann", "drinks"), [31]);
    assert!(seen("bob", "drinks").is_empty(), "it is Ann's");
    let others = with(Filter {
        viewer: Viewer::user("bob"),
        scopes: vec![crate::model::Scope::Semantic],
        ..Filter::all_of_tenant()
    });
    assert_eq!(others.len(), 5, "what is nobody's is everybody's");
}

#[test]
fn what_is_removed_or_expired_is_not_found() {
    let mut records: Vec<Record> = (1..=3).map(|seq| record(seq, "tea")).collect();
    records[1].expires = Some(now());
    let mut index = index(&records);
    index.remove(1);
    let found = |at: Time| best(index.find(&words("tea"), at, None).unwrap());
    assert_eq!(found(now()), [2, 3]);
    assert_eq!(found(now().plus_millis(1)), [3]);
    assert_eq!(index.len(), 2);
}

#[test]
fn what_has_expired_lends_nothing() {
    let mut records = [
        said(1, "s", "Have you ever been to Lisbon?"),
        said(2, "s", "Yes, last summer!"),
    ];
    records[0].expires = Some(now());
    let index = index(&records);
    let found = |at: Time| best(index.find(&words("Lisbon"), at, None).unwrap());
    assert_eq!(found(now()), [1, 2]);
    assert!(found(now().plus_millis(1)).is_empty());
}

#[test]
fn near_vectors_are_found_and_neighbours_lend() {
    let mut index = Index::new();
    let places = [
        [1.0, 0.0, 0.0, 0.0],
        [0.0, 1.0, 0.0, 0.0],
        [0.6, 0.8, 0.0, 0.0],
    ];
    for (seq, place) in (1..).zip(places) {
        let record = said(seq, if seq == 3 { "t" } else { "s" }, "x");
        add(&mut index, &record, Some(&place));
    }
    let probe = nearest(&[1.0, 0.0, 0.0, 0.0]);
    let found = index.find(&probe, now(), None).unwrap().matches;
    let features: Vec<&Features> = found.iter().flat_map(|one| &one.features).collect();
    let of = |seq: u64| features.iter().position(|one| one.seq == seq);
    let cosine = |seq: u64| features[of(seq).unwrap()].cosine;
    assert!((cosine(1) - 1.0).abs() < 0.01);
    assert!((cosine(3) - 0.6).abs() < 0.01);
    assert!(of(2).is_none(), "at a right angle");
    assert!(
        found[of(1).unwrap()].meaning.unwrap() < 1.0,
        "its neighbour is far"
    );
    let (model, other) = (model("m", 4), model("n", 2));
    assert!(index.lacking(&model, 0, 10).is_empty());
    assert_eq!(index.lacking(&other, 0, 10), [1, 2, 3]);
    index.embed(2, &stored("n", &[1.0, 0.0])).unwrap();
    assert_eq!(index.lacking(&other, 0, 10), [1, 3]);
    assert_eq!(
        index.lacking(&model, 0, 10),
        [2],
        "a document has one vector"
    );
}

#[test]
fn neighbours_of_the_nearest_are_found_without_words() {
    let mut index = Index::new();
    for (seq, vector) in [
        (1, [1.0, 0.1]),
        (2, [0.1, 1.0]),
        (3, [1.0, 0.2]),
        (4, [0.2, 1.0]),
        (5, [0.3, 1.0]),
        (6, [0.4, 1.0]),
    ] {
        let mut record = said(seq, "s", "one two");
        if seq == 2 {
            record.kind = Kind::Note;
        }
        add(&mut index, &record, Some(&vector));
    }
    let found = |probe: &Probe| {
        let found = index.find(probe, now(), None).unwrap().matches;
        let seqs = found.iter().map(|it| it.features.as_ref().unwrap().seq);
        seqs.collect::<Vec<_>>()
    };
    let two = Probe {
        depth: 2,
        ..nearest(&[1.0, 0.0])
    };
    assert_eq!(found(&two), [1, 2, 3, 4, 5], "two beside each of 1 and 3");
    let messages = Filter {
        kinds: vec![Kind::Message],
        ..Filter::all_of_tenant()
    };
    let filtered = Probe {
        filter: messages,
        ..two.clone()
    };
    assert_eq!(found(&filtered), [1, 3, 4, 5], "the filter holds for them");
    let with_words = Probe {
        terms: QueryTerm::words_of("absent"),
        ..two
    };
    assert_eq!(found(&with_words), [1, 3]);
}

#[test]
fn terms_survive_being_kept() {
    let terms = Terms::of(&record(
        1,
        "Did you see the parseJSON fix? It is in v1.2.3.",
    ));
    assert_eq!(Terms::from_bytes(&terms.to_bytes()), Some(terms));
    assert_eq!(Terms::from_bytes(&[1]), None);
    assert_eq!(Terms::from_bytes(&[1, 2, 3, 4]), None);
}

#[test]
fn terms_are_read_for_some_words_only() {
    let terms = Terms::of(&record(1, "Did you see the fix in Lisbon?"));
    let (fix, other) = (hash("fix"), hash("elephant"));
    let mut wanted = [fix, other];
    wanted.sort_unstable();
    let read = Terms::of_wanted(&terms.to_bytes(), &wanted).unwrap();
    assert_eq!(read.numbers().collect::<Vec<_>>(), [fix]);
    assert_eq!(read.occurs(fix), terms.occurs(fix));
    assert_eq!(
        (read.length(), read.asking(), read.traits()),
        (terms.length(), terms.asking(), terms.traits())
    );
    assert_eq!(Terms::of_wanted(&[1], &wanted), None);
}

#[test]
fn sessions_of_one_name_lend_nothing_across_users_and_audiences() {
    let of = |seq: u64, user: Option<&str>, audience: Option<&str>, content: &str| {
        let mut record = said(seq, "s", content);
        record.owner.user = user.map(str::to_owned);
        record.audience = audience.map(|text| text.parse().unwrap());
        record
    };
    let records = [
        of(1, Some("ann"), None, "Have you ever been to Lisbon?"),
        of(2, Some("bob"), None, "Yes, last summer!"),
        of(3, Some("ann"), Some("agent:planner"), "The plan is made."),
        of(4, None, None, "Shared words."),
        of(5, Some("ann"), None, "It was hot."),
    ];
    let index = index(&records);
    let found = best(index.find(&words("Lisbon"), now(), None).unwrap());
    assert_eq!(found, [1, 5], "Ann's own words lend, nobody else's");
}

#[test]
fn audiences_survive_saving() {
    let mut records: Vec<Record> = (1..=5).map(|seq| record(seq, "tea")).collect();
    for (record, audience) in records
        .iter_mut()
        .zip(["agent:a", "team:t", "user:u", "everyone"])
    {
        record.owner.user = Some("ann".to_owned());
        record.audience = Some(audience.parse().unwrap());
    }
    let mut before = index(&records);
    before.remove(2);
    let mut bytes = Vec::new();
    before.save(&mut bytes).unwrap();
    let after = Index::load(&mut bytes.as_slice(), bytes.len() as u64).unwrap();
    for index in [&before, &after] {
        let seen = |viewer: Viewer| {
            let filter = Filter::seen_by(viewer);
            let probe = Probe {
                filter,
                ..words("tea")
            };
            let mut seen = best(index.find(&probe, now(), None).unwrap());
            seen.sort_unstable();
            seen
        };
        assert_eq!(seen(Viewer::Tenant), [1, 3, 4, 5]);
        assert_eq!(seen(Viewer::ANYONE), [4, 5]);
        assert_eq!(
            seen(Viewer::user("ann")),
            [4, 5],
            "what is hers is for others"
        );
        assert_eq!(seen(Viewer::user("u")), [3, 4, 5]);
        assert_eq!(seen(Viewer::person(None, Some("a".to_owned()))), [1, 4, 5]);
        assert_eq!(
            seen(Viewer::user("agent:a")),
            [4, 5],
            "a user of that name is nobody else"
        );
    }
}

#[test]
fn a_vector_that_is_refused_leaves_the_others_with_their_records() {
    let vector = |values: &[f32]| StoredVector {
        model: ModelId {
            name: "m".to_owned(),
            dimension: 2,
        },
        vector: quantise(values).unwrap(),
    };
    let mut index = Index::new();
    let mut add = |seq, values: &[f32]| {
        let record = record(seq, "x");
        index.add(
            &Doc::of(&record),
            &Terms::of(&record),
            Some(&vector(values)),
        )
    };
    assert!(add(1, &[1.0, 0.0, 0.0]).is_err(), "no set is there yet");
    add(2, &[1.0, 0.0]).unwrap();
    assert!(add(3, &[1.0, 0.0, 0.0]).is_err());
    add(4, &[0.0, 1.0]).unwrap();
    let probe = Probe {
        vectors: vec![Embedding {
            model: vector(&[0.0, 1.0]).model,
            vector: vec![0.0, 1.0],
        }],
        depth: 1,
        ..Probe::new(Filter::all_of_tenant(), 0)
    };
    assert_eq!(best(index.find(&probe, now(), None).unwrap()), [4]);
    assert_eq!(index.seqs(), [2, 4]);
}

#[test]
fn similar_terms_count_in_part_and_are_no_coverage() {
    let long = format!("puppy {}", "lorem ipsum dolor amet ".repeat(40));
    let texts = [
        "the dog sleeps",
        "the puppy sleeps",
        "the cat sleeps",
        &long,
    ];
    let records: Vec<Record> = (1..)
        .zip(texts)
        .map(|(seq, text)| record(seq, text))
        .collect();
    let index = index(&records);
    let similar = QueryTerm::words_of("puppy")
        .into_iter()
        .map(|term| SimilarTerm {
            of: "dog".to_owned(),
            text: term.text,
            similarity: 0.4,
        });
    let probe = Probe {
        similar: similar.collect(),
        ..words("dog")
    };
    let found = index.find(&probe, now(), None).unwrap().matches;
    let score = |id: &str| {
        let found = found.iter().find(|found| found.id.as_str() == id)?;
        Some((found.words?, found.features.as_ref()?.coverage))
    };
    let (own, covers) = score("r1").unwrap();
    let (puppy, covered) = score("r2").unwrap();
    let (long, _) = score("r4").unwrap();
    assert!(
        own > puppy && puppy > 3.0 * long && long > 0.0,
        "{own} {puppy} {long}"
    );
    assert_eq!((covers, covered, score("r3")), (1.0, 0.0, None));
    // A word that no record has is found by a similar one.
    let probe = Probe {
        terms: QueryTerm::words_of("hound"),
        similar: vec![SimilarTerm {
            of: "hound".to_owned(),
            ..probe.similar[0].clone()
        }],
        ..probe
    };
    let found = index.find(&probe, now(), None).unwrap().matches;
    let ids: Vec<&str> = found.iter().map(|found| found.id.as_str()).collect();
    assert_eq!(ids, ["r2", "r4"]);
}

/// As in the benchmark, at a size where lists that double would be half empty.
#[test]
fn a_record_takes_at_most_750_bytes() {
    const RECORDS: u64 = 4_200;
    let mut state = 5_u64;
    let mut random = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    let mut index = Index::new();
    for seq in 1..=RECORDS {
        let words = (0..10 + seq % 30).map(|_| {
            let below = 1 << random(12);
            let syllables = format!("{:04}", random(below)).into_bytes().into_iter();
            let syllables =
                syllables.map(|digit| ["ba", "do", "ku", "li", "mo"][usize::from(digit % 5)]);
            syllables.collect::<String>() + "k"
        });
        let words: Vec<String> = words.collect();
        let mut record = said(seq, &format!("s{}", seq / 40), &words.join(" "));
        record.owner.user = Some(format!("u{}", seq % 100));
        record.id = format!("00000000-0000-4000-8000-{seq:012}")
            .parse()
            .unwrap();
        let vector: Vec<f32> = (0..256).map(|_| random(2000) as f32 - 1000.0).collect();
        add(&mut index, &record, Some(&vector));
    }
    let bytes = index.bytes() as u64 / RECORDS;
    assert!(bytes <= 750, "{bytes}");
}
