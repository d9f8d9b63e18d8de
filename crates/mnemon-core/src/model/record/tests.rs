use serde_json::json;

use super::*;

fn now() -> Time {
    Time::from_millis(1_700_000_000_000).unwrap()
}

fn note(content: &str) -> Record {
    let ctx = Ctx::new(Tenant::default(), "test", now());
    Record::note("n1".parse().unwrap(), &ctx, content)
}

fn full() -> Record {
    let id = |text: &str| text.parse::<Id>().unwrap();
    Record {
        owner: Owner {
            user: Some("ann".into()),
            agent: Some("planner".into()),
            session: Some("s1".into()),
            flow: Some("buyer".into()),
            node: Some("plan".into()),
        },
        kind: Kind::Fact,
        summary: Some("tea".into()),
        body: Some(json!({"subject": "Ann", "object": "tea"})),
        tags: vec!["drinks".into(), "sở thích".into()],
        source: Some("file:notes.md".into()),
        origin: Origin::Derived,
        importance: 0.75,
        expires: Some(now().plus_days(14)),
        valid_from: Some(now().plus_days(-1)),
        valid_to: Some(now().plus_days(1)),
        seq: 12,
        version: 3,
        derived_from: vec![id("m1"), id("m2")],
        superseded_by: Some(id("n2")),
        metadata: json!({"lang": "vi"}).as_object().unwrap().clone(),
        ..note("Ann prefers tea")
    }
}

#[test]
fn canonical_json_of_a_full_record() {
    insta::assert_json_snapshot!(full());
}

#[test]
fn canonical_json_of_the_smallest_record() {
    insta::assert_json_snapshot!(note("Ann prefers tea"));
}

#[test]
fn canonical_json_reads_back() {
    for record in [full(), note("Ann prefers tea")] {
        let json = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&json).unwrap(), record);
    }
}

#[test]
fn unknown_fields_and_newer_formats_are_refused() {
    let with = |field: &str, value: Value| {
        let mut json = serde_json::to_value(note("x")).unwrap();
        json[field] = value;
        serde_json::from_value::<Record>(json)
            .unwrap_err()
            .to_string()
    };
    let unknown = with("contnet", json!("x"));
    assert!(unknown.contains("unknown field `contnet`"), "{unknown}");
    let newer = with("v", json!(2));
    assert!(newer.contains("record format 2 is not known"), "{newer}");
}

#[test]
fn each_rule_names_its_field() {
    type Spoil = fn(&mut Record);
    let cases: &[(&str, Spoil)] = &[
        ("content", |r| r.content = " \n".into()),
        ("content", |r| r.content = "a\0b".into()),
        ("content", |r| {
            r.content = "x".repeat(limits::CONTENT_BYTES + 1)
        }),
        ("summary", |r| {
            r.summary = Some("x".repeat(limits::SUMMARY_BYTES + 1))
        }),
        ("user", |r| r.owner.user = Some("a\nb".into())),
        ("session", |r| r.owner.session = Some(String::new())),
        ("tags", |r| r.tags = vec![String::new()]),
        ("tags", |r| r.tags = vec!["x".repeat(limits::TAG_CHARS + 1)]),
        ("tags", |r| r.tags = vec!["t".into(); limits::TAGS + 1]),
        ("source", |r| {
            r.source = Some("x".repeat(limits::SOURCE_CHARS + 1))
        }),
        ("importance", |r| r.importance = 1.01),
        ("importance", |r| r.importance = -0.1),
        ("importance", |r| r.importance = f64::NAN),
        ("valid_to", |r| {
            r.valid_from = Some(now());
            r.valid_to = Some(now().plus_days(-1));
        }),
        ("metadata", |r| {
            r.metadata.insert("a\0".into(), json!(1));
        }),
        ("metadata", |r| {
            let long = "x".repeat(limits::METADATA_BYTES);
            r.metadata.insert("a".into(), json!(long));
        }),
        ("body", |r| {
            let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
            r.body = Some(deep);
        }),
        ("body", |r| r.body = Some(Value::Null)),
        ("derived_from", |r| r.derived_from = vec![r.id.clone()]),
    ];
    for (field, spoil) in cases {
        let mut record = note("fine");
        record.check().unwrap();
        spoil(&mut record);
        let error = record.check().unwrap_err();
        assert_eq!(&error.field, field, "{error}");
    }
}

#[test]
fn content_may_be_empty_when_there_is_a_body() {
    let mut record = note("");
    assert!(record.check().is_err());
    record.body = Some(json!({"blocks": []}));
    record.check().unwrap();
}

#[test]
fn a_record_lives_through_the_moment_it_expires_at() {
    let mut record = note("x");
    assert!(record.is_live(now()));
    record.expires = Some(now());
    assert!(record.is_live(now()));
    assert!(!record.is_live(now().plus_millis(1)));
}
