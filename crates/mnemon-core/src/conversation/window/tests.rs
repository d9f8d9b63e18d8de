use serde_json::{Map, Value, json};

use super::*;
use crate::model::{Block, Id, Message, Role};

fn say(id: usize, role: Role, text: &str) -> Message {
    Message::text(format!("m{id}"), role, text)
}

fn call(id: usize, calls: &[(&str, &str)]) -> Message {
    let uses = calls.iter().map(|(call, name)| Block::ToolUse {
        id: (*call).to_owned(),
        name: (*name).to_owned(),
        input: Map::new(),
        content: None,
        metadata: Map::new(),
    });
    Message {
        content: uses.collect(),
        ..say(id, Role::Assistant, "")
    }
}

fn answer(id: usize, call: &str, name: &str, output: &str) -> Message {
    Message {
        content: vec![Block::ToolResult {
            id: call.to_owned(),
            name: name.to_owned(),
            output: vec![Block::Text {
                text: output.to_owned(),
            }],
            metadata: Map::new(),
        }],
        ..say(id, Role::Tool, "")
    }
}

fn uuid() -> Id {
    "u1".parse().unwrap()
}

/// A question, `calls` calls with their results, and an answer; ids from `from` on.
fn round(from: usize, calls: usize, output: &str) -> Vec<Message> {
    let mut talk = vec![say(from, Role::User, "what is in the files?")];
    for n in 0..calls {
        let name = format!("c{from}-{n}");
        talk.push(call(from + 1 + 2 * n, &[(&name, "read")]));
        talk.push(answer(from + 2 + 2 * n, &name, "read", output));
    }
    talk.push(say(from + 1 + 2 * calls, Role::Assistant, "they hold tea"));
    talk
}

fn plans(strategy: Strategy, talk: &[Message], settings: &Settings) -> Vec<(usize, usize)> {
    let changes = plan(strategy, talk, settings, &estimate);
    let ranges = changes.iter().map(|c| (c.replaced.start, c.replaced.end));
    ranges.collect()
}

fn eager() -> Settings {
    Settings {
        msg_threshold: Some(10),
        last_keep: Some(2),
        large_payload_threshold: 100,
        min_compression_token_threshold: 0,
        ..Settings::default()
    }
}

fn changed(settings: Settings, change: impl FnOnce(&mut Settings)) -> Settings {
    let mut settings = settings;
    change(&mut settings);
    settings
}

#[test]
fn estimates_are_those_of_the_spec() {
    let mut hello = say(0, Role::User, "Hello World");
    hello.name = Some("user".to_owned());
    assert_eq!(message_tokens(&hello, &estimate), 14);
    // A character outside the basic plane has two units.
    assert_eq!(estimate("😀😀"), 2);
    let mut uses = call(1, &[("c1", "grep")]);
    // 5 + ASSISTANT 4, then 10 + grep 2 + c1 1.
    assert_eq!(message_tokens(&uses, &estimate), 22);
    if let Some(Block::ToolUse { input, content, .. }) = uses.content.first_mut() {
        let nested = json!({"k": "v", "n": 5, "o": {"a": [1, "x"]}});
        *input = nested.as_object().unwrap().clone();
        *content = Some("12345".to_owned());
    }
    // {"k":"v","n":5,"o":{a=[1, x]}} has 30 units: 12 tokens; the raw text 2.
    assert_eq!(message_tokens(&uses, &estimate), 36);
    // 5 + TOOL 2, then 8 + grep 2 + c1 1 + 12345 2.
    let result = answer(2, "c1", "grep", "12345");
    assert_eq!(message_tokens(&result, &estimate), 20);
    let thinking = Message {
        content: vec![Block::Thinking {
            thinking: "hm ".repeat(100),
            metadata: Map::new(),
        }],
        ..say(3, Role::Assistant, "")
    };
    assert_eq!(message_tokens(&thinking, &estimate), 14);
    let exact = |text: &str| text.len();
    assert_eq!(message_tokens(&say(4, Role::User, "abc"), &exact), 12);
}

#[test]
fn messages_are_told_apart() {
    let user = say(0, Role::User, "x");
    let (uses, result) = (call(1, &[("a", "t")]), answer(2, "a", "t", "x"));
    let last = say(3, Role::Assistant, "done");
    assert!(!is_tool(&user) && is_tool(&uses) && is_tool(&result) && !is_tool(&last));
    assert!(is_tool_use(&uses) && !is_tool_use(&result));
    assert!(is_tool_result(&result) && !is_tool_result(&uses));
    assert!(is_final_assistant(&last) && !is_final_assistant(&uses));
    let mut in_users_name = result;
    in_users_name.role = Role::User;
    assert!(!is_user(&in_users_name) && is_user(&user));
    let mut round = last;
    let meta = json!({"offloaduuid": "u", "compressed_current_round": true});
    round.metadata.insert(COMPRESS_META.to_owned(), meta);
    assert!(is_compressed(&round) && !is_final_assistant(&round));
}

#[test]
fn tool_runs_of_earlier_rounds_become_one_message() {
    let mut talk = round(0, 4, "tea");
    talk.extend(round(10, 1, "tea"));
    let settings = eager();
    // Eight tool messages are more than six; the two of the last round are not.
    assert_eq!(plans(Strategy::ToolInvocations, &talk, &settings), [(1, 9)]);
    let more = changed(settings, |s| s.min_consecutive_tool_messages = 8);
    assert!(plans(Strategy::ToolInvocations, &talk, &more).is_empty());
    let dear = changed(settings, |s| s.min_compression_token_threshold = 5000);
    assert!(plans(Strategy::ToolInvocations, &talk, &dear).is_empty());
    // The last ones are protected, and a run that reaches into them is cut after a whole call.
    let keep = Settings {
        last_keep: Some(talk.len() - 8),
        min_consecutive_tool_messages: 3,
        ..settings
    };
    assert_eq!(plans(Strategy::ToolInvocations, &talk, &keep), [(1, 7)]);
    // Without an answer after it there is nothing earlier.
    assert!(plans(Strategy::ToolInvocations, &talk[..9], &settings).is_empty());
    let made = plan(Strategy::ToolInvocations, &talk, &settings, &estimate);
    let message = made[0].replacement(&talk, "read four files", &uuid(), &settings);
    assert_eq!(
        message.text_content(),
        "read four files\n<!-- CONTEXT_OFFLOAD: uuid=u1 -->"
    );
    assert_eq!(message.name.as_deref(), Some("assistant"));
    assert_eq!(message.metadata[COMPRESS_META]["offloaduuid"], "u1");
}

#[test]
fn at_most_five_groups_at_a_time() {
    let talk: Vec<Message> = (0..9).flat_map(|n| round(n * 20, 4, "tea")).collect();
    let found = plans(Strategy::ToolInvocations, &talk, &eager());
    assert_eq!(found.len(), 5);
    assert_eq!(found.last(), Some(&(1, 9)), "the oldest first");
}

#[test]
fn parallel_calls_are_not_parted_from_their_results() {
    let mut talk = vec![say(0, Role::User, "go")];
    for n in 0..4 {
        let (a, b) = (format!("a{n}"), format!("b{n}"));
        talk.push(call(1, &[(&a, "read"), (&b, "read")]));
        talk.push(answer(2, &b, "read", "x"));
        talk.push(answer(3, &a, "read", "y"));
    }
    talk.push(say(9, Role::Assistant, "done"));
    let settings = changed(eager(), |s| s.last_keep = Some(3));
    // Twelve tool messages, of which the last result is protected: its call stays with it.
    assert_eq!(
        plans(Strategy::ToolInvocations, &talk, &settings),
        [(1, 10)]
    );
}

#[test]
fn cutting_off_the_beginning_keeps_no_result_without_its_call() {
    let talk = round(0, 3, "tea");
    assert_eq!(truncated(&talk, 100), talk);
    assert_eq!(
        truncated(&talk, 3),
        &talk[5..],
        "a call, its result, an answer"
    );
    assert_eq!(
        truncated(&talk, 2),
        &talk[7..],
        "the result alone is left out"
    );
    assert!(truncated(&talk, 0).is_empty());
    let both = [
        call(0, &[("a", "read"), ("b", "read")]),
        answer(1, "b", "read", "x"),
        answer(2, "a", "read", "y"),
        say(3, Role::User, "go"),
    ];
    assert_eq!(truncated(&both, 3), &both[3..]);
}

#[test]
fn large_messages_become_a_beginning() {
    let long = "x".repeat(101);
    let mut talk = vec![
        say(0, Role::System, &long),
        say(1, Role::User, &"x".repeat(100)),
        call(2, &[("a", "read")]),
        answer(3, "a", "read", &long),
        say(4, Role::Assistant, &long),
        say(5, Role::User, &long),
        say(6, Role::Assistant, "done"),
    ];
    let settings = eager();
    let all = [(4, 5), (3, 4), (0, 1)];
    assert_eq!(plans(Strategy::LargeProtected, &talk, &settings), all);
    assert_eq!(plans(Strategy::Large, &talk, &settings), all);
    let keep = changed(settings, |s| s.last_keep = Some(4));
    assert_eq!(plans(Strategy::LargeProtected, &talk, &keep), [(0, 1)]);
    assert_eq!(plans(Strategy::Large, &talk, &keep), all);
    let too_few = changed(settings, |s| s.last_keep = Some(8));
    assert!(plans(Strategy::Large, &talk, &too_few).is_empty());
    let short = changed(settings, |s| s.offload_single_preview = 3);
    let changes = plan(Strategy::Large, &talk, &short, &estimate);
    let made = changes[0].replacement(&talk, "", &uuid(), &short);
    let expected = "xxx...\n<!-- CONTEXT_OFFLOAD: uuid=u1 -->";
    assert_eq!(
        (made.text_content().as_str(), made.role),
        (expected, Role::Assistant)
    );
    let made = changes[1].replacement(&talk, "", &uuid(), &short);
    let Block::ToolResult { id, output, .. } = &made.content[0] else {
        panic!("no result");
    };
    assert_eq!(id, "a");
    assert_eq!(
        output,
        &[Block::Text {
            text: expected.to_owned()
        }]
    );
    // Without an answer the last strategy of the two has nothing to do, the first one has.
    talk.retain(|m| !is_final_assistant(m));
    assert!(plans(Strategy::Large, &talk, &settings).is_empty());
    assert_eq!(plans(Strategy::LargeProtected, &talk, &settings).len(), 1);
}

#[test]
fn earlier_rounds_keep_their_question() {
    let mut talk = round(0, 2, "tea");
    talk.extend([say(20, Role::User, "a"), say(21, Role::Assistant, "b")]);
    talk.extend(round(30, 2, "tea"));
    let settings = eager();
    let changes = plan(Strategy::PreviousRounds, &talk, &settings, &estimate);
    assert_eq!(
        changes.len(),
        1,
        "nothing lies between a and b, and the last round is not earlier"
    );
    assert_eq!(
        (changes[0].replaced.clone(), changes[0].offloaded.clone()),
        (1..6, 0..6)
    );
    let dear = changed(settings, |s| s.min_compression_token_threshold = 5000);
    assert!(plans(Strategy::PreviousRounds, &talk, &dear).is_empty());
}

#[test]
fn large_messages_of_the_current_round_keep_their_calls() {
    let long = "x".repeat(101);
    let mut both = call(1, &[("a", "read")]);
    both.content.insert(0, Block::Text { text: long.clone() });
    both.metadata.insert("mine".to_owned(), json!(1));
    let talk = [
        say(0, Role::User, &long),
        both,
        answer(2, "a", "read", &long),
    ];
    let settings = eager();
    let changes = plan(Strategy::CurrentLarge, &talk, &settings, &estimate);
    assert_eq!(changes.len(), 2);
    let made = changes[1].replacement(&talk, "short", &uuid(), &settings);
    assert_eq!(
        made.text_content(),
        "short<!-- CONTEXT_OFFLOAD: uuid=u1 -->"
    );
    assert!(is_tool_use(&made) && is_compressed(&made) && made.metadata["mine"] == 1);
    let prompt = changes[0].summary_prompt(
        &talk[2..],
        Ask {
            prompts: &Prompts::default(),
            plan: None,
        },
    );
    assert_eq!(prompt.messages[1].text_content(), long);
    assert_eq!(prompt.messages[1].content.len(), 1, "never a tool block");
    let again = [talk[0].clone(), made];
    assert!(plans(Strategy::CurrentLarge, &again, &settings).is_empty());
}

#[test]
fn the_current_round_leaves_an_unanswered_call() {
    let mut talk = round(0, 3, "tea");
    talk.pop();
    let settings = eager();
    assert_eq!(plans(Strategy::CurrentRound, &talk, &settings), [(1, 7)]);
    talk.push(call(8, &[("x", "read"), ("y", "read")]));
    assert_eq!(plans(Strategy::CurrentRound, &talk, &settings), [(1, 7)]);
    talk.push(answer(9, "y", "read", "tea"));
    assert_eq!(plans(Strategy::CurrentRound, &talk, &settings), [(1, 7)]);
    let changes = plan(Strategy::CurrentRound, &talk, &settings, &estimate);
    let made = changes[0].replacement(&talk, "s", &uuid(), &settings);
    assert_eq!(made.text_content(), "s<!-- CONTEXT_OFFLOAD: uuid=u1 -->");
    assert_eq!(
        made.metadata[COMPRESS_META]["compressed_current_round"],
        true
    );
    let again = [talk[0].clone(), made];
    assert!(plans(Strategy::CurrentRound, &again, &settings).is_empty());
}

#[test]
fn history_is_folded_up_to_what_is_kept() {
    let mut talk = vec![say(0, Role::System, "be brief")];
    talk.extend((1..20).map(|n| {
        let role = if n % 2 == 1 {
            Role::User
        } else {
            Role::Assistant
        };
        say(n, role, "some more words about tea")
    }));
    let settings = eager();
    assert_eq!(plans(Strategy::History, &talk, &settings), [(1, 18)]);
    assert_eq!(plans(Strategy::WholeHistory, &talk, &settings), [(1, 19)]);
}

#[test]
fn what_is_asked_of_a_model_is_laid_out_as_the_spec_says() {
    let mut talk = round(0, 1, "tea");
    talk.insert(1, call(7, &[("p", "create_plan")]));
    talk.insert(2, answer(8, "p", "create_plan", "planned"));
    talk.push(say(9, Role::User, "next"));
    let change = Change {
        strategy: Strategy::CurrentRound,
        replaced: 1..6,
        offloaded: 1..6,
        original_chars: 1000,
        summary_chars: 300,
        room_chars: 300,
        part: 0.3,
    };
    let plan = Plan {
        description: "drink tea".to_owned(),
        current: vec!["boil".to_owned(), "pour".to_owned()],
        done: 1,
        total: 3,
        expected_outcome: Some("a cup".to_owned()),
    };
    let prompts = Prompts {
        current_round: Some("Be short.".to_owned()),
        previous_rounds: Some("  ".to_owned()),
        ..Prompts::default()
    };
    let ask = Ask {
        prompts: &prompts,
        plan: Some(&plan),
    };
    let prompt = change.summary_prompt(&talk[change.offloaded.clone()], ask);
    let texts: Vec<String> = prompt.messages.iter().map(Message::text_content).collect();
    assert_eq!(texts[0], "Be short.");
    assert_eq!(
        texts[1..4],
        ["", "", "they hold tea"],
        "the plan's call is left out"
    );
    assert_eq!(
        texts[4],
        "Above is the message list that needs to be compressed."
    );
    assert!(
        texts[5].contains("1000 characters")
            && texts[5].contains("300")
            && texts[5].contains("30%")
    );
    assert_eq!(
        texts[6],
        "<plan_aware_hint>\nGoal: drink tea\nCurrent Progress: boil, pour\n\
         Progress: 1/3 subtasks completed\nExpected Outcome: a cup\n</plan_aware_hint>"
    );
    assert_eq!(
        prompts.of(Strategy::PreviousRounds),
        Prompts::default().of(Strategy::PreviousRounds)
    );
    assert!(is_paired(&prompt.messages));
}

#[test]
fn settings_are_checked() {
    Settings::default().check().unwrap();
    assert_eq!(Settings::default().token_limit(), 98304);
    type Spoil = fn(&mut Settings);
    let wrong: [(&str, Spoil); 7] = [
        ("last_keep", |s| {
            (s.msg_threshold, s.last_keep) = (Some(100), Some(100))
        }),
        ("last_keep", |s| s.last_keep = Some(1_000_000)),
        ("msg_threshold", |s| s.msg_threshold = Some(1)),
        ("token_ratio", |s| s.token_ratio = 1.5),
        ("token_ratio", |s| s.token_ratio = f64::NAN),
        ("max_token", |s| s.max_token = 0),
        ("large_payload_threshold", |s| s.large_payload_threshold = 0),
    ];
    for (field, change) in wrong {
        let mut settings = Settings::default();
        change(&mut settings);
        assert_eq!(settings.check().unwrap_err().field, field);
    }
}

#[test]
fn messages_count_only_where_a_user_says_so() {
    let default = Settings::default();
    assert!(!default.is_triggered(9_999, 98_303) && default.is_triggered(1, 98_304));
    let counted = Settings {
        msg_threshold: Some(30),
        ..default
    };
    counted.check().unwrap();
    assert_eq!((default.last_keep(), counted.last_keep()), (50, 15));
    assert!(counted.is_triggered(30, 0) && !counted.is_triggered(29, 0));
}

#[test]
fn events_of_the_older_form_are_read() {
    let old = json!({"eventType": "TOOL_INVOCATION_COMPRESS", "timestamp": 5,
        "compressedMessageCount": 7, "tokenBefore": 100, "tokenAfter": 10});
    let event: CompressionEvent = serde_json::from_value(old).unwrap();
    assert_eq!(
        (event.number("tokenBefore"), event.number("tokenAfter")),
        (Some(100), Some(10))
    );
    let written = serde_json::to_value(&event).unwrap();
    assert_eq!(written["compressedMessageId"], Value::Null);
    assert_eq!(
        serde_json::from_value::<CompressionEvent>(written).unwrap(),
        event
    );
}

#[test]
fn a_summary_without_a_model_keeps_what_matters() {
    let mut talk = vec![
        say(
            0,
            Role::User,
            "Hi there. We need to move the shop to the new server before 2026-03-01. Thanks a lot.",
        ),
        call(1, &[("c1", "run_tests")]),
        answer(
            2,
            "c1",
            "run_tests",
            "running\n12 passed\nerror: test_login failed in auth.rs:42\nend",
        ),
        say(
            3,
            Role::Assistant,
            "I looked around a bit. We decided to use PostgreSQL 16 because SQLite locks. Nice weather too.",
        ),
        say(4, Role::User, "Who pays for the certificate?"),
        say(
            5,
            Role::User,
            "Chúng ta quyết định chọn gói 500 nghìn. Trời đẹp.",
        ),
        say(
            6,
            Role::User,
            "東京サーバーを使うことに決めました。いい天気ですね。",
        ),
    ];
    talk.push(say(
        7,
        Role::Assistant,
        &"Filler words without any weight here. ".repeat(40),
    ));
    let made = extract(&talk, 340);
    assert!(made.chars().count() <= 340, "{made}");
    for kept in [
        "2026-03-01",
        "run_tests → error: test_login failed",
        "PostgreSQL 16",
        "certificate?",
        "500 nghìn",
        "東京サーバー",
    ] {
        assert!(made.contains(kept), "{kept} is missing in\n{made}");
    }
    assert!(!made.contains("weather"), "{made}");
    assert_eq!(made, extract(&talk, 340), "the same every time");
    assert!(!extract(&[call(1, &[("a", "t")])], 100).is_empty());
}

#[test]
fn an_owner_stays_when_the_decision_is_changed() {
    let talk = [
        say(
            0,
            Role::User,
            "The team chose passkeys for the login method of the museum guide; Nguyễn An takes it from here.",
        ),
        say(1, Role::User, "ok"),
        say(
            2,
            Role::Assistant,
            "Actually, not passkeys but SAML for the login method of the museum guide.",
        ),
    ];
    let made = extract(&talk, 1000);
    assert_eq!(
        made,
        "- assistant: Actually, not passkeys but SAML for the login method of the museum guide. \
         (Nguyễn An takes it from here)"
    );
    // The correction may come after the messages that are folded.
    let made = Extract::of(&talk[..2], &talk[2..]).text(1000);
    assert!(made.ends_with("(Nguyễn An takes it from here)"), "{made}");
}

#[test]
fn a_new_value_beside_the_old_one_takes_its_place() {
    let talk = [
        say(
            0,
            Role::User,
            "The verdict on the payment provider of the bank portal is PayPal.",
        ),
        say(
            2,
            Role::User,
            "Forget PayPal, we're doing Mollie for the payment provider of the bank portal now.",
        ),
    ];
    let made = extract(&talk, 1000);
    assert_eq!(made.lines().count(), 1, "{made}");
}

#[test]
fn code_and_data_are_no_statements_and_a_date_is_an_answer() {
    let talk = [
        say(0, Role::User, "What about the launch date of the shop?"),
        say(1, Role::Assistant, "2027-01-15."),
        say(2, Role::User, "- - Bullets hold 3 facts."),
        say(
            3,
            Role::Assistant,
            "write_file {\"path\":\"src/c.rs\"}\n} // 240 lines\n```\nlet x = 7;\n```",
        ),
    ];
    assert_eq!(
        extract(&talk, 1000),
        "- user: What about the launch date of the shop? → assistant: 2027-01-15.\n\
         - user: Bullets hold 3 facts."
    );
}
