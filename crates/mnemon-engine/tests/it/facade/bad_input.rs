//! What is wrong is refused with a clear word, and nothing is half-written.

use mnemon_core::{ErrorKind, Scope};
use mnemon_engine::{MemoryQuery, MemoryWriteEvent};
use serde_json::{Value, json};

use super::{event, query, write};
use crate::{all, ctx, memory, wait};

type Spoil = fn(&mut MemoryQuery, &str);

#[test]
fn a_question_that_cannot_be_answered_says_why() {
    let memory = memory();
    let long = "x".repeat(256);
    let cases: [(Spoil, &str); 8] = [
        (|q, _| q.user_id.clear(), "user_id: is empty"),
        (|q, _| q.session_id = " ".to_owned(), "session_id: is empty"),
        (|q, _| q.agent_id.clear(), "agent_id: is empty"),
        (|q, _| q.flow_id = Some(String::new()), "flow_id: is empty"),
        (
            |q, long| q.node_id = Some(long.to_owned()),
            "node_id: has 256 characters",
        ),
        (
            |q, _| q.user_id = "a\nb".to_owned(),
            "user_id: holds a control character",
        ),
        (
            |q, _| q.scopes.clear(),
            "scopes: is empty; name at least one of: dialog",
        ),
        (
            |q, long| q.task_type = Some(long.to_owned()),
            "task_type: has 256",
        ),
    ];
    for (spoil, expected) in cases {
        let mut asked = query(Scope::ALL);
        spoil(&mut asked, &long);
        let error = wait(memory.read(&ctx(), &asked)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn json_that_is_no_question_says_why() {
    let asked = |change: fn(&mut Value)| {
        let mut asked = serde_json::to_value(query(&[Scope::Dialog])).unwrap();
        change(&mut asked);
        serde_json::from_value::<MemoryQuery>(asked)
            .unwrap_err()
            .to_string()
    };
    let error = asked(|q| q["scopes"] = json!(["dialogue"]));
    assert!(
        error.contains("`dialogue`") && error.contains("`dialog`"),
        "{error}"
    );
    let error = asked(|q| drop(q.as_object_mut().unwrap().remove("user_id")));
    assert!(error.contains("missing field `user_id`"), "{error}");
    let error = asked(|q| q["user"] = json!("ann"));
    assert!(
        error.contains("unknown field `user`, expected one of `user_id`"),
        "{error}"
    );
    let mut told = serde_json::to_value(event(Scope::Dialog, json!({}))).unwrap();
    told["scope"] = json!("dreams");
    let error = serde_json::from_value::<MemoryWriteEvent>(told)
        .unwrap_err()
        .to_string();
    assert!(error.contains("`dreams`"), "{error}");
}

/// Data in its scope, and what is said about it.
type Bad = (Scope, Value, &'static str);

fn bad_dialogs() -> Vec<Bad> {
    vec![
        (
            Scope::Dialog,
            json!({}),
            "give one of: content, messages, summary, fact",
        ),
        (
            Scope::Dialog,
            json!({"content": "x"}),
            "data.role: is missing",
        ),
        (
            Scope::Dialog,
            json!({"role": "bot", "content": "x"}),
            "unknown variant `bot`",
        ),
        (
            Scope::Dialog,
            json!({"role": "user", "content": 3}),
            "content must be a text",
        ),
        (
            Scope::Dialog,
            json!({"role": "user", "content": " "}),
            "content: is empty",
        ),
        (
            Scope::Dialog,
            json!({"role": "user", "content": "x", "summary": "y"}),
            "has content and summary",
        ),
        (Scope::Dialog, json!({"messages": []}), "messages: is empty"),
        (
            Scope::Dialog,
            json!({"messages": [{"role": "user", "content": "ok"}, {"role": "user"}]}),
            "missing field `content`",
        ),
        (
            Scope::Dialog,
            json!({"messages": [{"role": "user", "content": "ok"}, {"role": "user", "content": ""}]}),
            "content: is empty",
        ),
        (
            Scope::Dialog,
            json!({"fact": "x", "importance": 3}),
            "importance",
        ),
        (
            Scope::Dialog,
            json!({"text": "x"}),
            "unknown field `text`, expected one of `role`",
        ),
    ]
}

fn other_bad_data() -> Vec<Bad> {
    vec![
        (
            Scope::State,
            json!({}),
            "give one of: state, tasks, task_id",
        ),
        (Scope::State, json!({"state": [1]}), "invalid type"),
        (
            Scope::State,
            json!({"task_id": "a"}),
            "task_id, step and status",
        ),
        (
            Scope::State,
            json!({"task_id": "a", "step": "b", "status": "finished"}),
            "unknown variant `finished`, expected one of `pending`",
        ),
        (
            Scope::State,
            json!({"tasks": [{"id": "a", "progress": 2}]}),
            "progress is 2",
        ),
        (Scope::State, json!({"tasks": []}), "tasks: is empty"),
        (Scope::Semantic, json!({}), "missing field `content`"),
        (Scope::Semantic, json!({"content": ""}), "content: is empty"),
        (
            Scope::Semantic,
            json!({"content": "x", "kind": "message"}),
            "note, fact, document, decision",
        ),
        (
            Scope::Semantic,
            json!({"content": "x", "title": "y"}),
            "unknown field `title`, expected one of `content`",
        ),
        (
            Scope::Procedural,
            json!({"use_when": "x"}),
            "missing field `tool_sops`",
        ),
        (
            Scope::Experience,
            json!({"tool": 3}),
            "does not fit scope experience",
        ),
    ]
}

#[test]
fn data_that_does_not_fit_its_scope_is_refused_and_nothing_is_written() {
    let memory = memory();
    let cases = [bad_dialogs(), other_bad_data()].concat();
    for (scope, data, expected) in cases {
        let error = write(&memory, scope, data.clone()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{data}: {error}");
        assert!(error.to_string().contains(expected), "{data}: {error}");
    }
    assert!(all(&memory).is_empty());
    let mut nameless = event(Scope::Profile, json!({"a": 1}));
    nameless.user_id.clear();
    let error = wait(memory.write(&ctx(), &nameless)).unwrap_err();
    assert!(error.to_string().contains("user_id: is empty"), "{error}");
}

#[test]
fn meta_that_would_be_lost_is_refused() {
    let memory = memory();
    let cases = [
        (
            Scope::State,
            json!({"state": {}}),
            json!({"x": 1}),
            "the fields are: idempotency_key, expected_version",
        ),
        (
            Scope::Profile,
            json!({"a": 1}),
            json!({"expected_version": "2"}),
            "must be a whole number",
        ),
        (
            Scope::Dialog,
            json!({"summary": "s"}),
            json!({"x": 1}),
            "`x` is not a field",
        ),
        (
            Scope::Experience,
            json!({"tool": "t"}),
            json!({"trace_id": 3}),
            "meta.trace_id: must be a text",
        ),
        (
            Scope::Semantic,
            json!({"content": "c"}),
            json!({"idempotency_key": 3}),
            "must be a text",
        ),
    ];
    for (scope, data, meta, expected) in cases {
        let mut told = event(scope, data);
        told.meta = super::map(meta);
        let error = wait(memory.write(&ctx(), &told)).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert!(all(&memory).is_empty());
}
