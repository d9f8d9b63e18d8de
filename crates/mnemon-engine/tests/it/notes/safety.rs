//! Secrets stay out.

use mnemon_core::ErrorKind;
use mnemon_core::secrets::SecretPolicy;
use mnemon_core::{Kind, Owner};
use mnemon_engine::{Draft, Knowledge};

use super::*;

/// Put together here so that no scanner takes this file for a leak.
fn key() -> String {
    format!("gh{}_a8Kd03LmQx7Zt5Rv1Yb9Nc2Ws4Ej6Hu0Pg8Fi3", "p")
}

fn with(secrets: SecretPolicy) -> Memory {
    memory_with(NotesConfig::default(), Safety { secrets })
}

#[test]
fn secrets_are_masked_with_the_reason() {
    let notes = with(SecretPolicy::Mask).notes();
    let new = NewNote {
        source: Some("https://ann:t0psecret@host/x".into()),
        metadata:
            serde_json::json!({"deep": [{"api_key": "9f86d081884c7d659a2feaa0c55ad015"}], "n": 1})
                .as_object()
                .unwrap()
                .clone(),
        ..NewNote::new(format!("deploy with {} from CI", key()))
    };
    let call = now();
    let added = add_at(&notes, &call, new);
    assert_eq!(
        added.summary,
        "deploy with [secret removed: repository token] from CI"
    );
    assert_eq!(
        call.notices.take(),
        [
            "A secret was found and taken out before it was stored: repository token, \
          password in an address, key or token."
        ]
    );
    let view = wait(notes.get(&now(), &mnemon_core::Viewer::Tenant, &added.id, Some(true)))
        .unwrap()
        .unwrap();
    let shown = serde_json::to_string(&view).unwrap();
    for secret in ["a8Kd03", "t0psecret"] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

#[test]
fn secrets_are_nowhere_in_the_record() {
    let memory = with(SecretPolicy::Mask);
    let new = NewNote {
        metadata: serde_json::json!({"token": key(), "plain": "tea"})
            .as_object()
            .unwrap()
            .clone(),
        ..NewNote::new(format!("{}\n{}", "x ".repeat(700), key()))
    };
    let id = add_at(&memory.notes(), &now(), new).id;
    let record = wait(memory.records().get(&now(), &[id])).unwrap();
    let json = serde_json::to_string(&record[0]).unwrap();
    assert!(!json.contains("a8Kd03"), "{json}");
    assert!(json.contains("\"plain\":\"tea\""), "{json}");
}

#[test]
fn or_refused_with_the_reason() {
    let notes = with(SecretPolicy::Refuse).notes();
    let new = NewNote::new(format!("line one\nuse {}", key()));
    let error = wait(notes.add(&now(), new, None)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let text = error.to_string();
    assert!(text.contains("line 2 (repository token)"), "{text}");
    assert!(!text.contains("a8Kd03"), "{text}");
    assert_eq!(wait(notes.count(&now(), None)).unwrap(), 0);
}

#[test]
fn or_kept_by_who_wants_that() {
    let notes = with(SecretPolicy::Allow).notes();
    let call = now();
    let added = add_at(&notes, &call, NewNote::new(key()));
    assert_eq!(added.summary, key());
    assert!(call.notices.take().is_empty());
}

#[test]
fn other_writes_of_knowledge_are_guarded_as_well() {
    let memory = with(SecretPolicy::Mask);
    let draft = Draft::note(format!("key {}", key()));
    let one = wait(memory.records().add(&now(), vec![draft], None)).unwrap();
    let knowledge = Knowledge {
        content: format!("token {}", key()),
        kind: Some(Kind::Fact),
        ..Knowledge::default()
    };
    let owner = Owner::default();
    let two = wait(memory.semantic().remember(&now(), &owner, knowledge, None)).unwrap();
    let ids = [one.items[0].id.clone(), two.items[0].id.clone()];
    for record in wait(memory.records().get(&now(), &ids)).unwrap() {
        let content = record.unwrap().content;
        assert!(content.contains("[secret removed: "), "{content}");
    }
}

#[test]
fn a_change_of_knowledge_is_guarded_as_well() {
    let memory = with(SecretPolicy::Mask);
    let id = add(&memory.notes(), "Ann prefers tea").id;
    let there = || {
        let found = wait(memory.records().get(&now(), std::slice::from_ref(&id))).unwrap();
        found.into_iter().flatten().next().unwrap()
    };
    let mut record = there();
    record.content = format!("her token is {}", key());
    wait(memory.records().update(&now(), record)).unwrap();
    assert_eq!(
        there().content,
        "her token is [secret removed: repository token]"
    );
}

#[test]
fn numbers_out_of_range_are_refused() {
    let wrong = |change: fn(&mut NotesConfig)| {
        let mut config = NotesConfig::default();
        change(&mut config);
        config.check().unwrap_err().to_string()
    };
    assert!(wrong(|config| config.top_k = 0).contains("top_k: is 0"));
    assert!(wrong(|config| config.top_k = 101).contains("between 1 and 100"));
    assert!(wrong(|config| config.min_score = Some(1.5)).contains("between 0 and 1"));
    assert!(wrong(|config| config.min_score = Some(f64::NAN)).contains("min_score"));
    assert!(wrong(|config| config.preview_chars = 0).contains("preview_chars"));
    assert!(wrong(|config| config.long_term.max_content_chars = 0).contains("max_content_chars"));
    assert!(wrong(|config| config.short_term.max_summary_chars = 70_000).contains("max_summary"));
    assert!(NotesConfig::default().check().is_ok());
}
