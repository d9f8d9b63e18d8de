use mnemon_core::{Ctx, Message, Role};
use mnemon_engine::InMemory;

use super::{memory, say, small};
use crate::{ctx, wait};

fn texts(messages: &[Message]) -> Vec<String> {
    messages.iter().map(Message::text_content).collect()
}

#[test]
fn messages_are_added_deleted_and_cleared() {
    let memory = memory();
    let window = memory.window("ann", "s1").unwrap();
    for text in ["one", "two", "three"] {
        wait(window.add_message(&ctx(), say(Role::User, text))).unwrap();
    }
    let messages = wait(window.get_messages(&ctx())).unwrap();
    assert_eq!(texts(&messages), ["one", "two", "three"]);
    assert!(!messages[0].id.is_empty() && messages[0].timestamp.is_some());
    for out in [-1, 3, i64::MAX, i64::MIN] {
        assert!(!wait(window.delete_message(&ctx(), out)).unwrap());
    }
    assert!(wait(window.delete_message(&ctx(), 1)).unwrap());
    wait(window.add_message(&ctx(), say(Role::User, "four"))).unwrap();
    let messages = wait(window.get_messages(&ctx())).unwrap();
    assert_eq!(texts(&messages), ["one", "three", "four"]);
    // The original has them all, and the dialog sees the same conversation.
    let (original, next) = wait(window.original(&ctx(), None, 10)).unwrap();
    assert_eq!(texts(&original), ["one", "two", "three", "four"]);
    assert!(next.is_none());
    let dialog =
        wait(
            memory
                .dialog()
                .get_context(&ctx(), &mnemon_core::Viewer::Tenant, "ann", "s1", 10),
        )
        .unwrap();
    assert_eq!(dialog.turns.len(), 4);
    wait(window.clear(&ctx())).unwrap();
    assert!(wait(window.get_messages(&ctx())).unwrap().is_empty());
    wait(window.add_message(&ctx(), say(Role::User, "five"))).unwrap();
    let messages = wait(window.get_messages(&ctx())).unwrap();
    assert_eq!(texts(&messages), ["five"]);
    assert_eq!(
        texts(&wait(window.tail(&ctx(), None, 2)).unwrap().0),
        ["four", "five"]
    );
    let other = memory.window("ann", "s2").unwrap();
    assert!(wait(other.get_messages(&ctx())).unwrap().is_empty());
}

#[test]
fn messages_keep_their_order_when_a_clock_is_behind() {
    let memory = memory();
    let window = memory.window("ann", "s1").unwrap();
    let ahead = Ctx {
        now: ctx().now.plus_millis(3_600_000),
        ..ctx()
    };
    wait(window.add_message(&ahead, say(Role::User, "first"))).unwrap();
    wait(window.add_message(&ctx(), say(Role::User, "second"))).unwrap();
    let messages = wait(window.get_messages(&ctx())).unwrap();
    assert_eq!(texts(&messages), ["first", "second"]);
}

#[test]
fn what_the_dialog_hears_is_in_the_window() {
    let memory = memory();
    let window = memory.window("ann", "s1").unwrap();
    wait(
        memory
            .dialog()
            .append(&ctx(), "ann", "s1", Role::User, "hello"),
    )
    .unwrap();
    let messages = wait(window.get_messages(&ctx())).unwrap();
    assert_eq!(texts(&messages), ["hello"]);
}

#[test]
fn a_clock_that_goes_back_hides_nothing() {
    let memory = memory();
    let window = memory.window("ann", "s1").unwrap();
    let window = window.settings(small()).unwrap();
    for n in 0..20 {
        let text = format!("we decided number {n} of the long list of things to be done");
        wait(window.add_message(&ctx(), say(Role::User, &text))).unwrap();
    }
    assert!(!wait(window.compress_if_needed(&ctx())).unwrap().is_empty());
    let earlier = Ctx {
        now: ctx().now.plus_millis(-60_000),
        ..ctx()
    };
    wait(window.add_message(&earlier, say(Role::User, "late"))).unwrap();
    let messages = wait(window.get_messages(&earlier)).unwrap();
    assert_eq!(messages.last().unwrap().text_content(), "late");
}

#[test]
fn a_retry_with_a_key_says_it_once() {
    let memory = memory();
    let window = memory.window("ann", "s1").unwrap();
    for _ in 0..2 {
        let said = vec![say(Role::User, "one"), say(Role::Assistant, "two")];
        wait(window.add_messages(&ctx(), said, Some("k"))).unwrap();
    }
    assert_eq!(wait(window.get_messages(&ctx())).unwrap().len(), 2);
}

#[test]
fn reloading_says_what_is_wrong_in_the_words_of_the_tool() {
    let memory = memory();
    let window = memory.window("ann", "s1").unwrap();
    let say = |uuid: Option<&str>| texts(&wait(window.context_reload(&ctx(), uuid)));
    for blank in [None, Some(""), Some("  ")] {
        assert_eq!(say(blank), ["Error: UUID cannot be null or empty."]);
    }
    assert_eq!(
        say(Some("nope")),
        [
            "No messages found for UUID: nope, The context may have been cleared or the UUID is invalid."
        ]
    );
    let mut plain = InMemory::default();
    plain.add_message(Message::text("m", Role::User, "x"));
    assert!(!plain.delete_message(-1) && !plain.delete_message(1));
    assert_eq!(
        texts(&plain.context_reload(Some("u"))),
        ["Error: Context offloader is not available. Cannot reload context with UUID: u"]
    );
    assert!(plain.delete_message(0));
    assert!(plain.get_messages().is_empty());
}

#[test]
fn another_session_cannot_reload() {
    let memory = memory();
    let window = memory
        .window("ann", "s1")
        .unwrap()
        .settings(small())
        .unwrap();
    for n in 0..20 {
        let text = format!("we decided number {n} of the long list of things to be done");
        wait(window.add_message(&ctx(), say(Role::User, &text))).unwrap();
    }
    assert!(!wait(window.compress_if_needed(&ctx())).unwrap().is_empty());
    let shown = wait(window.show(&ctx())).unwrap();
    let uuid = shown.messages[0].uuid.clone().unwrap();
    assert!(wait(window.reload(&ctx(), &uuid)).unwrap().is_some());
    let other = memory.window("bob", "s1").unwrap();
    assert!(wait(other.reload(&ctx(), &uuid)).unwrap().is_none());
}

#[test]
fn forgetting_a_message_forgets_its_summary_and_nothing_else() {
    let memory = memory();
    let window = memory
        .window("ann", "s1")
        .unwrap()
        .settings(small())
        .unwrap();
    let mut ids = Vec::new();
    for n in 0..20 {
        let text = format!("we decided number {n} of the long list of things to be done");
        let receipt = wait(window.add_message(&ctx(), say(Role::User, &text))).unwrap();
        ids.push(receipt.items[0].id.clone());
    }
    assert!(!wait(window.compress_if_needed(&ctx())).unwrap().is_empty());
    assert!(wait(window.get_messages(&ctx())).unwrap().len() < 12);
    wait(memory.records().forget(&ctx(), &ids[2..3], None)).unwrap();
    let messages = wait(window.get_messages(&ctx())).unwrap();
    assert_eq!(messages.len(), 19, "what is left is seen again");
    assert!(!texts(&messages).join("\n").contains("number 2 "));
    // Another session's forgetting takes all of it.
    wait(memory.delete_session(&ctx(), "ann", "s1", false)).unwrap();
    assert!(wait(window.get_messages(&ctx())).unwrap().is_empty());
    assert!(wait(window.events(&ctx())).unwrap().is_empty());
}

#[test]
fn names_of_sessions_are_checked() {
    let memory = memory();
    let long = "x".repeat(256);
    for bad in ["", "  ", "a/b", "a\\b", "..", "a..b", "a\nb", "a\0b", &long] {
        let Err(error) = memory.window("ann", bad) else {
            panic!("{bad:?} was taken");
        };
        assert!(error.to_string().starts_with("session:"), "{error}");
    }
    assert!(memory.window("ann", &"x".repeat(255)).is_ok());
    assert!(memory.window("ann", "phiên số 1.2").is_ok());
    assert!(memory.window(" ", "s1").is_err());
}

/// An orphan is kept as it was said, shown as text, and reported.
#[test]
fn a_result_without_its_call_is_shown_as_text() {
    let memory = memory();
    let window = memory.window("ann", "s1").unwrap();
    let json = r#"{"id":"m1","role":"TOOL","content":[{"type":"tool_result","id":"w","name":"weather","output":[{"type":"text","text":"Sunny"}]}]}"#;
    let result: Message = serde_json::from_str(json).unwrap();
    let call = ctx();
    wait(window.add_message(&call, result)).unwrap();
    let notices = call.notices.take().concat();
    assert!(
        notices.contains("whose call is not in this conversation"),
        "{notices}"
    );
    let shown = wait(window.get_messages(&call)).unwrap();
    assert_eq!(
        texts(&shown),
        ["[Result of weather, whose call is gone: Sunny]"]
    );
    assert_eq!(shown[0].role, Role::Assistant);
    assert!(call.notices.take().concat().contains("as text"));
    let kept = wait(window.original(&ctx(), None, 10)).unwrap().0;
    assert_eq!(kept[0].role, Role::Tool);
}
