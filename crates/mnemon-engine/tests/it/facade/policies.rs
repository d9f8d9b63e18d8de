//! Every switch and every limit changes what is read or written.

use std::sync::Arc;

use mnemon_core::ram::Ram;
use mnemon_core::{ErrorKind, Fate, Ids, Scope};
use mnemon_engine::{Answer, Error, Memory, MemoryItem, MemoryPolicy, Policies, Whom};
use serde_json::{Value, json};

use super::{at, event, query, write};
use crate::{all, ctx, wait};

/// A memory with several entries in every scope, under the policies that the flow `buyer` has by
/// these lines.
fn memory(lines: &[(&str, &str)]) -> Memory {
    let store = Arc::new(Ram::new());
    let rich = Memory::builder(store.clone(), Ids::new(7)).build();
    let put = |scope, data: Value| {
        write(&rich, scope, data).unwrap();
    };
    put(Scope::Dialog, json!({"summary": "They spoke of tea."}));
    put(Scope::Dialog, json!({"fact": "Ann pays cash"}));
    for n in 0..30 {
        put(
            Scope::Dialog,
            json!({"role": "user", "content": format!("message {n}")}),
        );
    }
    put(Scope::State, json!({"state": {"cart": 1}}));
    let tasks: Vec<Value> = (0..12).map(|n| json!({"id": format!("t{n}")})).collect();
    put(Scope::State, json!({"tasks": tasks}));
    for n in 0..12 {
        let kinds = [
            "leaf", "bag", "powder", "cup", "pot", "hill", "rain", "sun", "shop", "box", "tin",
            "jar",
        ];
        put(
            Scope::Semantic,
            json!({"content": format!("green tea and its {}", kinds[n])}),
        );
        let steps = json!([{"tool": "shop", "action": "order"}]);
        let use_when = format!("buy green tea by the {}", kinds[n]);
        put(
            Scope::Procedural,
            json!({"use_when": use_when, "tool_sops": steps}),
        );
        put(Scope::Profile, json!({format!("key{n:02}"): "value"}));
        put(
            Scope::Experience,
            json!({"task_type": "shop", "tool": "pay", "error": "no"}),
        );
        put(
            Scope::Experience,
            json!({"task_type": "shop", "tool": "pay"}),
        );
    }
    let mut policies = Policies::default();
    for (key, value) in lines {
        policies.set(Whom::flow("buyer"), key, value).unwrap();
    }
    Memory::builder(store, Ids::new(8))
        .policies(policies)
        .build()
}

fn items(memory: &Memory) -> Vec<MemoryItem> {
    wait(memory.read(&ctx(), &query(Scope::ALL))).unwrap()
}

fn of(items: &[MemoryItem], scope: Scope) -> Value {
    let item = items.iter().find(|item| item.scope == scope).unwrap();
    serde_json::to_value(item).unwrap()
}

fn count(item: &Value, list: &str) -> usize {
    match &item["payload"][list] {
        Value::Array(list) => list.len(),
        Value::Object(map) => map.len(),
        other => panic!("{list}: {other}"),
    }
}

#[test]
fn the_defaults_are_held_to() {
    let items = items(&memory(&[]));
    assert_eq!(count(&of(&items, Scope::Dialog), "turns"), 20);
    assert_eq!(of(&items, Scope::Dialog)["payload"]["more"], true);
    assert_eq!(count(&of(&items, Scope::Semantic), "docs"), 5);
    assert_eq!(count(&of(&items, Scope::Procedural), "skills"), 3);
    assert_eq!(count(&of(&items, Scope::Experience), "failures"), 10);
    assert_eq!(count(&of(&items, Scope::State), "tasks"), 12);
    assert_eq!(count(&of(&items, Scope::Profile), "profile"), 12);
}

/// The lists of each scope that its counts are about.
const LISTS: [(Scope, &str); 6] = [
    (Scope::Dialog, "turns"),
    (Scope::State, "tasks"),
    (Scope::Semantic, "docs"),
    (Scope::Procedural, "skills"),
    (Scope::Profile, "profile"),
    (Scope::Experience, "failures"),
];

/// One test that goes through the whole list of keys, so that a key that is added without an
/// effect, or without a case here, fails.
#[test]
fn every_key_has_an_effect_on_its_own_scope_and_no_other() {
    let plain = items(&memory(&[]));
    for key in MemoryPolicy::keys() {
        if let Some(scope) = key.strip_prefix("writes_per_minute.") {
            limits_writes(&key, scope.parse().unwrap());
            continue;
        }
        if key == "write_experience" {
            continue; // It has a test of its own below.
        }
        if key == "learn" || key.starts_with("learn_") {
            continue; // They say what is learnt, not what is read: see `learn/agent.rs`.
        }
        let (value, scope) = match key.as_str() {
            "max_dialog_turns" => ("2", Scope::Dialog),
            "max_docs" => ("2", Scope::Semantic),
            "max_skills" => ("2", Scope::Procedural),
            "max_steps" => ("2", Scope::Experience),
            key => match key.split_once('.') {
                Some(("max_items", scope)) => ("2", scope.parse().unwrap()),
                Some(("max_tokens", scope)) => ("50", scope.parse().unwrap()),
                _ => {
                    let scope = key.strip_prefix("use_").unwrap();
                    ("false", scope.parse().unwrap())
                }
            },
        };
        let changed = items(&memory(&[(&key, value)]));
        for (before, after) in plain.iter().zip(&changed) {
            let same = before.answer == after.answer;
            assert_eq!(same, before.scope != scope, "{key} and {}", before.scope);
        }
        let item = of(&changed, scope);
        let (_, list) = LISTS.iter().find(|(known, _)| *known == scope).unwrap();
        if value == "false" {
            let reason = item["left_out"].as_str().unwrap();
            assert_eq!(reason, format!("the policy says {key} = false"));
            assert_eq!(item.get("payload"), None);
        } else if value == "2" {
            assert!(count(&item, list) <= 2, "{key}: {item}");
        } else {
            assert!(item["dropped"].as_u64().unwrap() > 0, "{key}: {item}");
            let text = serde_json::to_string(&item["payload"]).unwrap();
            assert!(text.len() < 50 * 4 + 200, "{key}: {text}");
        }
    }
}

fn limits_writes(key: &str, scope: Scope) {
    let data = |scope| match scope {
        Scope::Dialog => json!({"role": "user", "content": "x"}),
        Scope::State => json!({"state": {"n": 1}}),
        Scope::Semantic => json!({"content": "x"}),
        Scope::Procedural => json!({"use_when": "x", "tool_sops": [{"tool": "t", "action": "a"}]}),
        Scope::Profile => json!({"x": 1}),
        Scope::Experience => json!({"tool": "x"}),
    };
    let memory = memory(&[(key, "2")]);
    for other in Scope::ALL {
        for _ in 0..2 {
            write(&memory, *other, data(*other)).unwrap();
        }
        let third = write(&memory, *other, data(*other));
        assert_eq!(third.is_err(), *other == scope, "{key}, {other}");
    }
    let refused = write(&memory, scope, data(scope)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::TooOften);
    let Error::TooOften { retry, .. } = refused else {
        panic!("{refused}");
    };
    assert!(
        refused.to_string().contains(&retry.to_string()),
        "{refused}"
    );
    let later = at(retry.millis() - ctx().now.millis());
    wait(memory.write(&later, &event(scope, data(scope)))).unwrap();
    // Another agent has a rate of its own.
    let mut other = event(scope, data(scope));
    other.agent_id = "worker".to_owned();
    wait(memory.write(&ctx(), &other)).unwrap();
}

#[test]
fn experience_that_nobody_wants_is_rejected_in_the_receipt() {
    let memory = memory(&[("write_experience", "false")]);
    let before = all(&memory).len();
    let receipt = write(&memory, Scope::Experience, json!({"tool": "x"})).unwrap();
    let Fate::Rejected { why } = &receipt.items[0].fate else {
        panic!("{receipt:?}");
    };
    assert!(why.contains("write_experience = false"), "{why}");
    assert_eq!(receipt.commit, None);
    assert_eq!(all(&memory).len(), before);
    write(
        &memory,
        Scope::Dialog,
        json!({"role": "user", "content": "x"}),
    )
    .unwrap();
    assert_eq!(all(&memory).len(), before + 1);
}

#[test]
fn of_a_dialog_the_summary_and_the_newest_turns_stay() {
    let items = items(&memory(&[("max_items.dialog", "3")]));
    let item = of(&items, Scope::Dialog);
    assert_eq!(item["payload"]["summary"]["text"], "They spoke of tea.");
    let turns = &item["payload"]["turns"];
    assert_eq!(turns[0]["messages"][0]["content"], "message 28");
    assert_eq!(turns[1]["messages"][0]["content"], "message 29");
    assert_eq!(count(&item, "facts"), 0);
    assert_eq!(item["dropped"], 19);
    let nothing = items_with_no_room();
    assert_eq!(count(&nothing, "turns"), 0);
    assert_eq!(nothing["dropped"], 22);
}

fn items_with_no_room() -> Value {
    of(
        &items(&memory(&[("max_tokens.dialog", "0")])),
        Scope::Dialog,
    )
}

#[test]
fn nothing_at_all_can_be_asked_for() {
    let lines = [
        ("max_docs", "0"),
        ("max_skills", "0"),
        ("max_steps", "0"),
        ("max_dialog_turns", "0"),
    ];
    let items = items(&memory(&lines));
    for (scope, list) in LISTS {
        let item = of(&items, scope);
        let emptied = !matches!(scope, Scope::State | Scope::Profile);
        assert_eq!(count(&item, list) == 0, emptied, "{item}");
        assert_eq!(item.get("left_out"), None);
    }
}

#[test]
fn the_most_specific_wins_and_others_are_not_touched() {
    let store = Arc::new(Ram::new());
    let mut policies = Policies::default();
    policies.set(Whom::all(), "use_profile", "false").unwrap();
    policies
        .set(Whom::flow("buyer"), "use_profile", "true")
        .unwrap();
    policies
        .set(Whom::both("buyer", "worker"), "use_profile", "false")
        .unwrap();
    let memory = Memory::builder(store, Ids::new(8))
        .policies(policies)
        .build();
    let seen = |flow: Option<&str>, agent: &str| {
        let mut asked = query(&[Scope::Profile]);
        asked.flow_id = flow.map(str::to_owned);
        asked.agent_id = agent.to_owned();
        let items = wait(memory.read(&ctx(), &asked)).unwrap();
        !matches!(items[0].answer, Answer::LeftOut(_))
    };
    assert!(!seen(None, "planner"));
    assert!(!seen(Some("unknown"), "planner"));
    assert!(seen(Some("buyer"), "planner"));
    assert!(!seen(Some("buyer"), "worker"));
}
