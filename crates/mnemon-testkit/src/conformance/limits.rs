//! What is too much, or not allowed, is refused and changes nothing.

use mnemon_core::{ErrorKind, Id, Op, Record, Right, limits};
use serde_json::json;

use super::Subject;
use crate::make::{Caller, Remade, at, grant, id, limits, note};

pub async fn too_many_ids_are_refused(s: Subject) {
    let g = grant(at(0));
    s.put(&g, [note("a")]).await;
    let mut asked: Vec<Id> = (1..limits().page).map(|n| id(&format!("r{n}"))).collect();
    asked.push(id("a"));
    let found = s.store().get(&g, &asked).await.unwrap();
    assert_eq!(found.len(), limits().page);
    assert!(found.last().unwrap().is_some());
    asked.push(id("b"));
    let error = s.store().get(&g, &asked).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
}

pub async fn too_many_ops_are_refused(s: Subject) {
    let g = grant(at(0));
    let ops = |count| (0..count).map(|_| Op::delete(id("a"))).collect::<Vec<_>>();
    s.done(&g, ops(limits().batch_ops)).await;
    let mut many = ops(limits().batch_ops);
    many.insert(0, Op::put(note("a")));
    let error = s.refused(&g, many).await;
    assert_eq!(error.kind(), ErrorKind::TooLarge);
}

pub async fn too_many_bytes_are_refused(s: Subject) {
    let g = grant(at(0));
    let bytes = limits::CONTENT_BYTES.min(limits().batch_bytes / 4);
    let most = "x".repeat(bytes);
    let count = limits().batch_bytes / bytes + 1;
    let ops = (0..count).map(|n| Op::put(note(&format!("r{n}")).saying(&most)));
    let error = s.refused(&g, ops.collect::<Vec<_>>()).await;
    assert_eq!(error.kind(), ErrorKind::TooLarge);
}

pub async fn a_broken_record_is_refused(s: Subject) {
    type Spoil = fn(&mut Record);
    let spoils: &[Spoil] = &[
        |r| r.content = " ".into(),
        |r| r.content = "a\0b".into(),
        |r| r.content = "x".repeat(limits::CONTENT_BYTES + 1),
        |r| r.summary = Some("a\0b".into()),
        |r| r.owner.user = Some(String::new()),
        |r| r.tags = vec!["x".repeat(limits::TAG_CHARS + 1)],
        |r| r.tags = vec!["t".into(); limits::TAGS + 1],
        |r| r.source = Some("a\nb".into()),
        |r| r.importance = f64::NAN,
        |r| r.importance = -0.01,
        |r| r.derived_from = vec![r.id.clone()],
        |r| r.body = Some((0..200).fold(json!(1), |inner, _| json!([inner]))),
        |r| r.body = Some(json!(null)),
    ];
    let g = grant(at(0));
    s.put(&g, [note("a")]).await;
    for (n, spoil) in spoils.iter().enumerate() {
        let mut record = note("b");
        spoil(&mut record);
        let error = s
            .refused(&g, vec![Op::put(note("a")), Op::put(record)])
            .await;
        assert_eq!(error.kind(), ErrorKind::Invalid, "spoil {n}: {error}");
    }
}

pub async fn a_large_record_is_kept(mut s: Subject) {
    let g = grant(at(0));
    let bytes = limits::CONTENT_BYTES.min(limits().batch_bytes / 2);
    let text = "đ".repeat(bytes / 2);
    let deep = (1..limits::JSON_DEPTH).fold(json!(1), |inner, _| json!([inner]));
    let record = Record {
        body: Some(deep),
        tags: (0..limits::TAGS).map(|n| format!("tag {n}")).collect(),
        derived_from: (0..limits::SOURCES).map(|n| id(&format!("s{n}"))).collect(),
        ..note(&"i".repeat(limits::ID_CHARS)).saying(&text)
    };
    let name = record.id.to_string();
    s.put(&g, [record.clone()]).await;
    s.reopen().await;
    let found = s.get(&g, &name).await.unwrap();
    assert!(found.content == text && found.body == record.body);
    assert_eq!(found.tags, record.tags);
    assert_eq!(s.delete(&g, "s999").await.cascaded, []);
}

pub async fn a_reader_cannot_write(s: Subject) {
    s.put(&grant(at(0)), [note("a").until(at(5))]).await;
    let reader = Caller::default().at(at(9)).grant(Right::Read);
    let batches = [
        vec![],
        vec![Op::put(note("b"))],
        vec![Op::delete(id("a"))],
        vec![Op::Purge { id: id("a") }],
    ];
    for ops in batches {
        let error = s.refused(&reader, ops).await;
        assert_eq!(error.kind(), ErrorKind::Denied);
    }
    let error = s.store().upkeep(&reader, 10).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(s.has(&grant(at(0)), "a").await);
}

pub async fn a_writer_can_read(s: Subject) {
    s.put(&Caller::default().grant(Right::Write), [note("a")])
        .await;
    for right in [Right::Read, Right::Write, Right::Purge] {
        let g = Caller::default().grant(right);
        assert!(s.has(&g, "a").await);
        assert_eq!(s.names(&g).await, ["a"]);
        assert_eq!(s.changes(&g, "a").await.len(), 1);
        assert_eq!(s.tally(&g).await.records(), 1);
    }
}
