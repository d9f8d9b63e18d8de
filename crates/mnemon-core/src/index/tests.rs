use super::*;
use crate::embed::ModelId;
use crate::text::query_terms;
use crate::vector::quantise;
use crate::{Candidate, Ctx, Embedding, Filter, Kind, Owner, Probe, Record, Tenant};

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
        index
            .add(&Doc::of(record), &Terms::of(record), None)
            .unwrap();
    }
    index
}

fn words(query: &str) -> Probe {
    let terms = query_terms(query);
    Probe {
        terms: terms.iter().map(|t| (hash(&t.text), t.weight)).collect(),
        depth: 100,
        ..Probe::default()
    }
}

fn best(mut found: Vec<Candidate>) -> Vec<u64> {
    found.sort_by(|a, b| b.words.total_cmp(&a.words));
    found.into_iter().map(|candidate| candidate.seq).collect()
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
    index.add(&Doc::of(&late), &Terms::of(&late), None).unwrap();
    assert_eq!(index.chain.around(3), [NOBODY, NOBODY, 0, 1]);
    let mut last = said(5, "s", "four");
    last.created = now().plus_millis(30);
    index.add(&Doc::of(&last), &Terms::of(&last), None).unwrap();
    assert_eq!(index.chain.around(4), [0, 1, NOBODY, NOBODY]);
}

#[test]
fn filters_come_before_ranking() {
    let mut records: Vec<Record> = (1..=50).map(|seq| record(seq, "tea tea tea")).collect();
    let mine = &mut records[30];
    mine.content = "one cup of tea after a long day at the office".to_owned();
    mine.owner = Owner {
        user: Some("ann".to_owned()),
        ..Owner::default()
    };
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
        ..Filter::default()
    };
    assert_eq!(with(user("ann")), [31]);
    assert_eq!(with(user("bob")), Vec::<u64>::new());
    let tagged = Filter {
        tags: vec!["drinks".to_owned()],
        ..Filter::default()
    };
    assert_eq!(with(tagged), [31]);
    assert_eq!(with(Filter::default()).len(), 5);
    let seen = |user: &str, tag: &str| {
        with(Filter {
            seen_by: Some(user.to_owned()),
            tags: vec![tag.to_owned()],
            ..Filter::default()
        })
    };
    assert_eq!(seen("ann", "drinks"), [31]);
    assert!(seen("bob", "drinks").is_empty(), "it is Ann's");
    let others = with(Filter {
        seen_by: Some("bob".to_owned()),
        scopes: vec![crate::Scope::Semantic],
        ..Filter::default()
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
    let model = ModelId {
        name: "m".to_owned(),
        dimension: 4,
    };
    let vector = |values: [f32; 4]| StoredVector {
        model: model.clone(),
        vector: quantise(&values).unwrap(),
    };
    let mut index = Index::new();
    let places = [
        [1.0, 0.0, 0.0, 0.0],
        [0.0, 1.0, 0.0, 0.0],
        [0.6, 0.8, 0.0, 0.0],
    ];
    for (seq, place) in (1..).zip(places) {
        let record = said(seq, if seq == 3 { "t" } else { "s" }, "x");
        index
            .add(&Doc::of(&record), &Terms::of(&record), Some(&vector(place)))
            .unwrap();
    }
    let probe = Probe {
        vectors: vec![Embedding {
            model: model.clone(),
            vector: vec![1.0, 0.0, 0.0, 0.0],
        }],
        depth: 10,
        ..Probe::default()
    };
    let found = index.find(&probe, now(), None).unwrap();
    let of = |seq: u64| found.iter().find(|c| c.seq == seq);
    assert!((of(1).unwrap().cosine - 1.0).abs() < 0.01);
    assert!((of(3).unwrap().cosine - 0.6).abs() < 0.01);
    assert!(of(2).is_none(), "at a right angle");
    assert!(of(1).unwrap().meaning < 1.0, "its neighbour is far");
    assert_eq!(index.embedded(&model), (3, 0));
    let other = ModelId {
        name: "n".to_owned(),
        dimension: 2,
    };
    assert_eq!(index.lacking(&other, 0, 10), [1, 2, 3]);
    let new = StoredVector {
        model: other.clone(),
        vector: quantise(&[1.0, 0.0]).unwrap(),
    };
    index.embed(2, &new).unwrap();
    assert_eq!(index.lacking(&other, 0, 10), [1, 3]);
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
