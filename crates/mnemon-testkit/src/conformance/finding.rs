//! Vectors and neighbours, which a store keeps for searches.

use mnemon_core::embed::ModelId;
use mnemon_core::{
    Batch, Embedding, Filter, Grant, Id, Kind, Op, Probe, SessionCount, sessions_by_scan,
};

use super::Subject;
use crate::make::{Remade, at, grant, grant_on, id, ids, note};

async fn found(s: &Subject, g: &Grant, probe: &Probe) -> Vec<Id> {
    let mut found = s.index().find(g, probe).await.unwrap().matches;
    found.sort_by(|a, b| {
        let (a, b) = ((a.words, a.meaning), (b.words, b.meaning));
        b.partial_cmp(&a).unwrap()
    });
    found.into_iter().map(|found| found.id).collect()
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
        ..Probe::new(mnemon_core::Filter::all_of_tenant(), 0)
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
        s.index().find(&g, &wrong).await.is_err(),
        "a wrong dimension is no match"
    );
    let stale = vec![(u64::MAX >> 30, place(&two, &[1.0, 0.0, 0.0]))];
    assert_eq!(s.store().embed(&g, stale).await.unwrap(), 0);
}

pub async fn neighbours_stand_beside_each_other_in_their_session(s: Subject) {
    let g = grant(at(0));
    let said = |name: &str, session: &str, created: i64| {
        let mut record = note(name).created(at(created));
        record.owner.session = Some(session.to_owned());
        record
    };
    let records = [
        said("c", "s", 3),
        said("a", "s", 1),
        said("x", "t", 2),
        said("b", "s", 2),
        said("d", "s", 3),
        said("e", "s", 5),
        note("alone"),
    ];
    s.put(&g, records).await;
    s.put(&g, [said("y", "s", 4)]).await;
    s.delete(&g, "y").await;
    let asked = ids(&["c", "alone", "missing", "a"]);
    let mut windows = Vec::new();
    for asked in asked.chunks(g.limits().page) {
        windows.extend(s.store().neighbours(&g, asked, 2).await.unwrap());
    }
    let told: Vec<Option<(Vec<String>, usize)>> = windows
        .into_iter()
        .map(|window| {
            let window = window?;
            let ids = window.records.iter().map(|record| record.id.to_string());
            Some((ids.collect(), window.at))
        })
        .collect();
    let window = |ids: &[&str], at| Some((ids.iter().map(|id| (*id).to_owned()).collect(), at));
    assert_eq!(
        told,
        [
            window(&["a", "b", "c", "d", "e"], 2),
            window(&["alone"], 0),
            None,
            window(&["a", "b", "c"], 0),
        ]
    );
}

pub async fn sessions_are_counted_the_last_used_first(s: Subject) {
    let g = grant(at(10));
    let said = |name: &str, user: &str, session: &str, created: i64| {
        let mut record = note(name).created(at(created));
        record.kind = Kind::Message;
        record.owner.user = Some(user.to_owned());
        record.owner.session = Some(session.to_owned());
        record
    };
    let mut expired = said("old", "ann", "gone", 1);
    expired.expires = Some(at(5));
    let mut fact = said("fact", "ann", "s", 9);
    fact.kind = Kind::Fact;
    let records = [
        said("a", "ann", "s", 1),
        said("b", "ann", "t", 4),
        said("c", "ann", "s", 3),
        said("d", "bob", "s", 4),
        note("alone"),
        fact,
    ];
    s.put(&grant(at(0)), [expired]).await;
    s.put(&g, records).await;
    s.put(&g, [said("y", "ann", "deleted", 7)]).await;
    s.delete(&g, "y").await;
    let mut filter = Filter {
        kinds: vec![Kind::Message],
        ..Filter::all_of_tenant()
    };
    let counted = async |filter: &Filter| {
        let sessions = s.store().sessions(&g, filter).await.unwrap();
        assert_eq!(
            sessions,
            sessions_by_scan(&**s.store(), &g, filter).await.unwrap()
        );
        let row = |one: SessionCount| format!("{:?} {} {}", one.user, one.session, one.records);
        sessions.into_iter().map(row).collect::<Vec<_>>()
    };
    let (ann_t, bob_s, ann_s) = (
        r#"Some("ann") t 1"#,
        r#"Some("bob") s 1"#,
        r#"Some("ann") s 2"#,
    );
    assert_eq!(counted(&filter).await, [ann_t, bob_s, ann_s]);
    filter.owner.user = Some("ann".to_owned());
    assert_eq!(counted(&filter).await, [ann_t, ann_s]);
    filter.tags = vec!["none".to_owned()];
    assert!(counted(&filter).await.is_empty());
    let theirs = s.store().sessions(&grant_on("other"), &filter).await;
    assert!(theirs.unwrap().is_empty());
}
