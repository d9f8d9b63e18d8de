use std::sync::Arc;

use mnemon_core::ram::Ram;
use mnemon_core::{ErrorKind, Ids, Role, Scope};
use mnemon_engine::{Answer, Memory, MemoryWriteEvent};
use mnemon_testkit::faults::Flaky;
use serde_json::json;

use super::{event, payload, query, read, write};
use crate::{ctx, memory, wait};

/// Something in every scope.
pub(super) fn fill(memory: &Memory) {
    for event in everything() {
        wait(memory.write(&ctx(), &event)).unwrap();
    }
}

fn everything() -> Vec<MemoryWriteEvent> {
    vec![
        event(
            Scope::Dialog,
            json!({"role": "user", "content": "I want green tea"}),
        ),
        event(Scope::State, json!({"state": {"cart": 1}})),
        event(
            Scope::Semantic,
            json!({"content": "Green tea is sold in bags"}),
        ),
        event(
            Scope::Procedural,
            json!({"use_when": "buy green tea", "task_type": "shop",
                   "tool_sops": [{"tool": "shop", "action": "order"}]}),
        ),
        event(Scope::Profile, json!({"name": "Ann"})),
        event(
            Scope::Experience,
            json!({"task_type": "shop", "tool": "pay", "error": "no money"}),
        ),
    ]
}

#[test]
fn every_scope_answers_in_the_order_asked_and_once() {
    let memory = memory();
    fill(&memory);
    let mut scopes: Vec<Scope> = Scope::ALL.iter().rev().copied().collect();
    scopes.push(Scope::Dialog);
    let items = wait(memory.read(&ctx(), &query(&scopes))).unwrap();
    let answered: Vec<Scope> = items.iter().map(|item| item.scope).collect();
    assert_eq!(answered, scopes[..6]);
    let shown = serde_json::to_value(&items).unwrap();
    for (n, pointer, expected) in [
        (0, "/payload/failures/0/error", json!("no money")),
        (1, "/payload/profile/name", json!("Ann")),
        (2, "/payload/skills/0/use_when", json!("buy green tea")),
        (
            3,
            "/payload/docs/0/content",
            json!("Green tea is sold in bags"),
        ),
        (4, "/payload/state/cart", json!(1)),
        (
            5,
            "/payload/turns/0/messages/0/content",
            json!("I want green tea"),
        ),
    ] {
        assert_eq!(shown[n].pointer(pointer), Some(&expected), "{}", shown[n]);
        assert_eq!(
            shown[n].as_object().unwrap().len(),
            2,
            "scope and payload: {}",
            shown[n]
        );
    }
}

#[test]
fn an_empty_memory_answers_with_nothing() {
    let memory = memory();
    let items = wait(memory.read(&ctx(), &query(Scope::ALL))).unwrap();
    assert!(items.iter().all(|item| item.payload().is_some()));
}

#[test]
fn a_search_without_words_is_left_out_with_the_reason() {
    let memory = memory();
    fill(&memory);
    let mut asked = query(&[Scope::Semantic, Scope::Procedural, Scope::Dialog]);
    asked.query = Some("  ".to_owned());
    let items = wait(memory.read(&ctx(), &asked)).unwrap();
    assert!(matches!(&items[0].answer, Answer::LeftOut(why) if why.contains("no query")));
    assert!(items[1].payload().is_some(), "the task_type is enough");
    asked.task_type = None;
    let items = wait(memory.read(&ctx(), &asked)).unwrap();
    assert!(matches!(&items[1].answer, Answer::LeftOut(why) if why.contains("task_type")));
    assert!(items[2].payload().is_some());
    let shown = serde_json::to_value(&items[0]).unwrap();
    assert_eq!(
        shown,
        json!({"scope": "semantic", "left_out": "there is no query to search by"})
    );
}

#[test]
fn one_scope_that_fails_does_not_fail_the_others() {
    let broken = Arc::new(Flaky::new(Ram::new(), 1, 100));
    let memory = Memory::builder(Arc::new(Ram::new()), Ids::new(7))
        .profile(broken)
        .build();
    for event in everything() {
        let done = wait(memory.write(&ctx(), &event));
        assert_eq!(done.is_err(), event.scope == Scope::Profile);
    }
    let items = wait(memory.read(&ctx(), &query(Scope::ALL))).unwrap();
    for item in &items {
        match &item.answer {
            Answer::Error(failure) => {
                assert_eq!(item.scope, Scope::Profile);
                assert_eq!(failure.kind, ErrorKind::Unavailable);
                assert!(failure.message.contains("flaky"), "{}", failure.message);
            }
            _ => {
                assert_ne!(item.scope, Scope::Profile);
                payload(item);
            }
        }
    }
}

#[test]
fn each_scope_can_lie_on_a_store_of_its_own() {
    let stores: Vec<Arc<Ram>> = (0..6).map(|_| Arc::default()).collect();
    let mut builder = Memory::builder(Arc::new(Ram::new()), Ids::new(7));
    for (scope, store) in Scope::ALL.iter().zip(&stores) {
        builder = builder.scope(*scope, store.clone());
    }
    let memory = builder.build();
    fill(&memory);
    assert!(crate::all(&memory).is_empty(), "nothing on the first store");
    for (scope, store) in Scope::ALL.iter().zip(&stores) {
        let alone = Memory::builder(store.clone(), Ids::new(8)).build();
        let there = crate::all(&alone);
        assert_eq!(there.len(), 1, "{scope}");
        assert_eq!(there[0].scope, *scope);
        payload(&read(&memory, *scope));
    }
}

#[test]
fn scopes_on_one_store_share_it() {
    let (one, two) = (Arc::new(Ram::new()), Arc::new(Ram::new()));
    let memory = Memory::builder(one, Ids::new(7))
        .dialog(two.clone())
        .state(two.clone())
        .build();
    let same = |a: Scope, b: Scope| std::ptr::eq(memory.records_of(a), memory.records_of(b));
    assert!(same(Scope::Dialog, Scope::State));
    assert!(same(Scope::Semantic, Scope::Profile));
    assert!(!same(Scope::Dialog, Scope::Semantic));
    wait(
        memory
            .dialog()
            .append(&ctx(), "ann", "s1", Role::User, "hello"),
    )
    .unwrap();
    write(&memory, Scope::State, json!({"state": {}})).unwrap();
    let other = Memory::builder(two, Ids::new(9)).build();
    assert_eq!(crate::all(&other).len(), 2);
}
