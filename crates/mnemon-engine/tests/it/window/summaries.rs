use std::sync::Arc;

use mnemon_core::Role;
use mnemon_core::llm::LlmError;
use mnemon_core::window::{CompressionEvent, Plan, Prompts};
use mnemon_engine::SeenAs;
use mnemon_testkit::fakes::Scripted;
use mnemon_testkit::talks::Talk;

use super::{memory, say, small};
use crate::{ctx, wait};

fn asked_nothing(llm: &Scripted) -> bool {
    llm.asked().is_empty()
}

/// A plain talk of twenty messages, compressed once and then refined with this model.
fn compressed(llm: Arc<Scripted>) -> (CompressionEvent, String, Vec<String>) {
    let memory = memory();
    let window = memory
        .window("ann", "s1")
        .unwrap()
        .settings(small())
        .unwrap();
    let prompts = Prompts {
        history: Some("Tell it in short.".to_owned()),
        ..Prompts::default()
    };
    let plan = Plan {
        description: "drink tea".to_owned(),
        ..Plan::default()
    };
    let window = window.llm(llm.clone()).prompts(prompts).plan(plan);
    for n in 0..20 {
        let role = if n % 2 == 0 {
            Role::User
        } else {
            Role::Assistant
        };
        let text = format!("We decided number {n} of the long list of things to be done.");
        wait(window.add_message(&ctx(), say(role, &text))).unwrap();
    }
    let call = ctx();
    let events = wait(window.compress_if_needed(&call)).unwrap();
    assert_eq!(events[0].summariser(), Some("extractive, model pending"));
    assert!(asked_nothing(&llm) && call.notices.take().is_empty());
    assert!(
        wait(window.compress_if_needed(&ctx())).unwrap().is_empty(),
        "once is enough"
    );
    wait(window.refine_pending(&call)).unwrap();
    let mut events = wait(window.events(&ctx())).unwrap();
    assert_eq!(events.len(), 1);
    let shown = wait(window.show(&ctx())).unwrap();
    assert_eq!(shown.tier(SeenAs::Summarised).covers, 16);
    assert_eq!(shown.tier(SeenAs::Hot).messages, 4);
    let part = shown.clone().part(2, 1);
    assert_eq!(part.messages, shown.messages[2..4]);
    assert_eq!((part.earlier, part.later), (2, 1));
    assert_eq!((part.tiers, part.tokens), (shown.tiers, shown.tokens));
    let none = shown.clone().part(2, 99);
    assert_eq!((none.messages.len(), none.earlier, none.later), (0, 0, 5));
    let first = wait(window.get_messages(&ctx())).unwrap().remove(0);
    let notices = call.notices.take();
    (events.remove(0), first.text_content(), notices)
}

#[test]
fn a_model_writes_the_summary() {
    let llm = Arc::new(Scripted::answering(&["They decided sixteen things."]));
    let (event, text, notices) = compressed(llm.clone());
    assert!(notices.is_empty(), "{notices:?}");
    let (head, text) = text.split_once('\n').unwrap();
    assert!(head.starts_with("[16 earlier messages, 20"), "{head}");
    assert!(text.starts_with("They decided sixteen things.\n<!-- CONTEXT_OFFLOAD: uuid="));
    assert_eq!(event.metadata["summariser"], "scripted");
    assert_eq!(event.number("outputToken"), Some(4));
    assert_eq!(event.metadata["time"], 1.5);
    assert_eq!(event.timestamp, ctx().now.millis());
    assert!(event.number("tokenBefore") > event.number("tokenAfter"));
    assert_eq!(event.event_type, "HISTORY_SUMMARY");
    assert_eq!(event.compressed_message_count, 16);
    assert!(event.previous_message_id.is_none() && event.next_message_id.is_some());
    let asked = llm.asked().remove(0).messages;
    assert_eq!(asked[0].text_content(), "Tell it in short.");
    assert_eq!(asked.len(), 1 + 16 + 2);
    assert!(asked[18].text_content().contains("Goal: drink tea"));
}

#[test]
fn a_summary_that_cannot_be_used_is_replaced() {
    let long = "words ".repeat(1000);
    let cases = [
        (Ok(" \n".to_owned()), "empty"),
        (Ok("\0 ".to_owned()), "empty"),
        (Ok(long), "characters"),
        (
            Err(LlmError::Budget {
                what: "today".to_owned(),
            }),
            "the budget for today",
        ),
    ];
    for (answer, why) in cases {
        let llm = Arc::new(Scripted::default());
        llm.then(answer);
        let (event, text, notices) = compressed(llm);
        assert!(notices.concat().contains(why), "{notices:?}");
        let by = event.summariser().unwrap();
        assert!(by.starts_with("extractive"), "{by}");
        let refused = event.metadata["refused"].as_str().unwrap();
        assert!(refused.contains(why), "{refused}");
        assert!(text.contains("- user: We decided number"), "{text}");
    }
}

#[test]
fn a_model_that_does_not_answer_is_asked_once() {
    let memory = memory();
    let llm = Arc::new(Scripted::default());
    let window = memory.window("ann", "s1").unwrap().llm(llm.clone());
    let window = window.settings(small()).unwrap();
    let mut talk = Talk::new(3, 800);
    for _ in 0..20 {
        for message in talk.round() {
            wait(window.add_message(&ctx(), message)).unwrap();
        }
    }
    assert!(!wait(window.compress_if_needed(&ctx())).unwrap().is_empty());
    let refined = wait(window.refine_pending(&ctx())).unwrap();
    assert!(refined.pending > 1, "{refined:?}");
    assert_eq!((refined.written, llm.asked().len()), (0, 1));
}
