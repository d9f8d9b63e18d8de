use mnemon_core::{ErrorKind, Kind, Limits, Owner, Role, Scope};
use mnemon_engine::{DialogContext, LIMIT_TURNS, Memory, Utterance};
use proptest::prelude::*;
use serde_json::json;

use super::{at, event, payload, read, say, write};
use crate::{all, ctx, memory, memory_under, wait};

fn context(memory: &Memory, turns: usize) -> DialogContext {
    wait(
        memory
            .dialog()
            .get_context(&at(1000), &mnemon_core::Viewer::Tenant, "ann", "s1", turns),
    )
    .unwrap()
}

fn texts(context: &DialogContext) -> Vec<Vec<String>> {
    let turns = context.turns.iter();
    let said =
        |turn: &mnemon_engine::Turn| turn.messages.iter().map(|m| m.content.clone()).collect();
    turns.map(said).collect()
}

#[test]
fn a_turn_begins_with_a_user_message() {
    let memory = memory();
    say(&memory, 0, Role::System, "be kind");
    say(&memory, 1, Role::User, "hello");
    say(&memory, 2, Role::Assistant, "let me look");
    say(&memory, 3, Role::Tool, "result");
    say(&memory, 4, Role::Assistant, "here it is");
    say(&memory, 5, Role::User, "thanks");
    let whole = context(&memory, LIMIT_TURNS);
    assert_eq!(
        texts(&whole),
        [
            vec!["be kind"],
            vec!["hello", "let me look", "result", "here it is"],
            vec!["thanks"]
        ]
    );
    assert!(!whole.more);
    let last = context(&memory, 2);
    assert_eq!(texts(&last), texts(&whole)[1..]);
    assert!(last.more);
    let none = context(&memory, 0);
    assert!(none.turns.is_empty() && none.more);
}

#[test]
fn messages_of_one_moment_keep_their_order() {
    let memory = memory();
    let owner = Owner {
        session: Some("s1".into()),
        ..super::ann()
    };
    let said = (0..5)
        .map(|n| Utterance::text(Role::User, format!("m{n}")))
        .collect();
    wait(memory.dialog().append_all(&ctx(), &owner, said, None)).unwrap();
    let flat: Vec<String> = texts(&context(&memory, 20)).concat();
    assert_eq!(flat, ["m0", "m1", "m2", "m3", "m4"]);
}

#[test]
fn sessions_and_users_do_not_mix() {
    let memory = memory();
    say(&memory, 0, Role::User, "mine");
    let dialog = memory.dialog();
    wait(dialog.append(&ctx(), "bob", "s1", Role::User, "bob's")).unwrap();
    wait(dialog.append(&ctx(), "ann", "s2", Role::User, "later")).unwrap();
    wait(dialog.update_summary(&ctx(), "bob", "s1", "bob spoke", vec![], None)).unwrap();
    let context = context(&memory, 20);
    assert_eq!(texts(&context).concat(), ["mine"]);
    assert_eq!(context.summary, None);
}

#[test]
fn a_summary_is_one_record_with_versions_and_falls_with_what_it_covers() {
    let memory = memory();
    let said = say(&memory, 0, Role::User, "hello").items[0].id.clone();
    let dialog = memory.dialog();
    let update = |text: &str, covers| {
        wait(dialog.update_summary(&ctx(), "ann", "s1", text, covers, None)).unwrap()
    };
    update("they met", vec![]);
    update("they met and spoke", vec![said.clone()]);
    let summary = context(&memory, 20).summary.unwrap();
    assert_eq!(
        (summary.text.as_str(), summary.version),
        ("they met and spoke", 2)
    );
    let summaries = all(&memory).into_iter().filter(|r| r.kind == Kind::Summary);
    assert_eq!(summaries.count(), 1);
    wait(memory.records().forget(&ctx(), &[said], None)).unwrap();
    assert_eq!(context(&memory, 20).summary, None);
    let empty = wait(dialog.update_summary(&ctx(), "ann", "s1", " ", vec![], None));
    assert_eq!(empty.unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn facts_come_by_importance() {
    let memory = memory();
    for (fact, importance) in [("likes tea", 0.3), ("allergic to nuts", 0.9)] {
        let data = json!({"fact": fact, "importance": importance});
        write(&memory, Scope::Dialog, data).unwrap();
    }
    let facts = context(&memory, 20).facts;
    let facts: Vec<&str> = facts.iter().map(|fact| fact.text.as_str()).collect();
    assert_eq!(facts, ["allergic to nuts", "likes tea"]);
}

#[test]
fn a_message_may_have_parts_and_a_time() {
    let memory = memory();
    let data = json!({"messages": [
        {"role": "user", "content": "look it up", "timestamp": "2023-01-01T00:00:00Z"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "grep"}]},
    ]});
    let mut told = event(Scope::Dialog, data);
    told.meta = super::map(json!({"channel": "web"}));
    wait(memory.write(&ctx(), &told)).unwrap();
    let shown = serde_json::to_value(payload(&read(&memory, Scope::Dialog))).unwrap();
    let messages = &shown["turns"][0]["messages"];
    assert_eq!(messages[0]["created"], "2023-01-01T00:00:00.000Z");
    assert_eq!(
        (&messages[0]["role"], &messages[0]["content"]),
        (&json!("user"), &json!("look it up"))
    );
    assert_eq!(messages[0].get("blocks"), None);
    assert_eq!(messages[1]["blocks"][0]["name"], "grep");
    assert!(
        all(&memory)
            .iter()
            .all(|record| record.metadata["channel"] == "web")
    );
    assert!(
        all(&memory)
            .iter()
            .all(|record| record.owner.flow.as_deref() == Some("buyer"))
    );
}

#[test]
fn a_retry_with_the_same_key_says_it_once() {
    let memory = memory();
    let mut told = event(Scope::Dialog, json!({"role": "user", "content": "hello"}));
    told.meta = super::map(json!({"idempotency_key": "k1"}));
    let first = wait(memory.write(&at(0), &told)).unwrap();
    let second = wait(memory.write(&at(5), &told)).unwrap();
    assert_eq!(first, second);
    assert_eq!(all(&memory).len(), 1);
    told.data["content"] = json!("something else");
    let other = wait(memory.write(&at(9), &told)).unwrap_err();
    assert_eq!(other.kind(), ErrorKind::Conflict);
}

#[test]
fn only_so_much_is_read() {
    let memory = memory();
    let too_many = wait(memory.dialog().get_context(
        &ctx(),
        &mnemon_core::Viewer::Tenant,
        "ann",
        "s1",
        Limits::DEFAULT.turns + 1,
    ));
    assert_eq!(too_many.unwrap_err().kind(), ErrorKind::Invalid);
    let owner = Owner {
        session: Some("s1".into()),
        ..super::ann()
    };
    for chunk in 0..3 {
        let said = (0..2000).map(|n| Utterance::text(Role::Assistant, format!("{chunk}.{n}")));
        wait(
            memory
                .dialog()
                .append_all(&at(chunk), &owner, said.collect(), None),
        )
        .unwrap();
    }
    let context = context(&memory, 1);
    assert_eq!(
        context.turns[0].messages.len(),
        Limits::DEFAULT.context_messages
    );
    assert!(context.more);
    assert_eq!(context.turns[0].messages.last().unwrap().content, "2.1999");
}

fn any_role() -> impl Strategy<Value = Role> {
    prop_oneof![
        Just(Role::User),
        Just(Role::Assistant),
        Just(Role::System),
        Just(Role::Tool)
    ]
}

proptest! {
    /// However it is cut, what is shown is the end of the conversation in its order, and every
    /// turn but the first of the conversation begins with a user message.
    #[test]
    fn turns_are_the_end_of_the_conversation(
        roles in proptest::collection::vec(any_role(), 0..40),
        limit in 0_usize..12,
        tiny: bool,
    ) {
        let limits = if tiny { &Limits::TINY } else { &Limits::DEFAULT };
        let memory = memory_under(limits);
        for (n, role) in roles.iter().enumerate() {
            say(&memory, n as i64 / 3, *role, &n.to_string());
        }
        let context = context(&memory, limit);
        let shown = texts(&context).concat();
        let first = roles.len() - shown.len();
        let expected: Vec<String> = (first..roles.len()).map(|n| n.to_string()).collect();
        prop_assert_eq!(&shown, &expected);
        prop_assert_eq!(context.more, first > 0);
        for (n, turn) in context.turns.iter().enumerate() {
            let begins = turn.messages[0].role == Role::User;
            let is_cut = shown.len() == limits.context_messages;
            prop_assert!(begins || (n == 0 && (is_cut || !context.more)));
            prop_assert!(turn.messages.iter().skip(1).all(|m| m.role != Role::User));
        }
        let users = roles.iter().filter(|role| **role == Role::User).count();
        let opening = usize::from(roles.first().is_some_and(|role| *role != Role::User));
        if shown.len() < limits.context_messages {
            prop_assert_eq!(context.turns.len(), limit.min(users + opening));
        }
    }
}
