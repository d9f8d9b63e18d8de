use proptest::prelude::*;
use serde_json::json;

use super::*;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z ]{0,6}",
        Just(String::new()),
        Just("{\"a\":1}".to_owned()),
        "\\PC{0,4}"
    ]
}

fn members() -> impl Strategy<Value = Map<String, Value>> {
    let value = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    let name = prop_oneof!["signature", "redacted", "is_error", "[a-c]"];
    prop::collection::btree_map(name, value, 0..3).prop_map(|map| map.into_iter().collect())
}

fn media() -> impl Strategy<Value = Media> {
    let kind = prop_oneof!["audio/wav", "audio/mp3", "image/png", "x;base64,y"];
    prop_oneof![
        text().prop_map(|url| Media::Url { url }),
        Just(Media::Url {
            url: "data:image/png;base64,AA".to_owned()
        }),
        (kind, text()).prop_map(|(media_type, data)| Media::Base64 { media_type, data }),
    ]
}

fn block() -> impl Strategy<Value = Block> {
    let leaf = prop_oneof![
        text().prop_map(|text| Block::Text { text }),
        (text(), members()).prop_map(|(thinking, metadata)| Block::Thinking { thinking, metadata }),
        (media(), members()).prop_map(|(source, extra)| Block::Image { source, extra }),
        (media(), members()).prop_map(|(source, extra)| Block::Audio { source, extra }),
        (media(), members()).prop_map(|(source, extra)| Block::Video { source, extra }),
        (
            text(),
            text(),
            members(),
            prop::option::of(text()),
            members()
        )
            .prop_map(|(id, name, input, content, metadata)| Block::ToolUse {
                id,
                name,
                input,
                content,
                metadata
            }),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        (
            text(),
            text(),
            prop::collection::vec(inner, 0..3),
            members(),
        )
            .prop_map(|(id, name, output, metadata)| Block::ToolResult {
                id,
                name,
                output,
                metadata,
            })
    })
}

fn message() -> impl Strategy<Value = Message> {
    let role = prop_oneof![
        Just(Role::User),
        Just(Role::Assistant),
        Just(Role::System),
        Just(Role::Tool)
    ];
    let content = prop::collection::vec(block(), 0..5);
    let name = prop::option::of(text());
    (
        text(),
        name,
        role,
        content,
        members(),
        prop::option::of(text()),
    )
        .prop_map(|(id, name, role, content, metadata, timestamp)| Message {
            id,
            name,
            role,
            content,
            metadata,
            timestamp,
        })
}

fn none() -> String {
    panic!("every message has an id")
}

proptest! {
    #[test]
    fn there_and_back_is_the_same(messages in prop::collection::vec(message(), 0..6)) {
        let sent = OpenAi::of(&messages);
        prop_assert_eq!(sent.to_messages(&mut none).unwrap(), messages.clone());
        let sent = Anthropic::of(&messages);
        prop_assert_eq!(sent.to_messages(&mut none).unwrap(), messages);
    }

    #[test]
    fn the_aside_can_be_kept_as_json(messages in prop::collection::vec(message(), 0..4)) {
        let mut sent = Anthropic::of(&messages);
        let kept = serde_json::to_string(&sent.aside).unwrap();
        sent.aside = serde_json::from_str(&kept).unwrap();
        prop_assert_eq!(sent.to_messages(&mut none).unwrap(), messages);
    }

    #[test]
    fn no_result_is_without_its_call_in_either_format(
        messages in prop::collection::vec(message(), 0..6)
    ) {
        let calls = messages.iter().flat_map(|message| &message.content);
        let calls = calls.filter(|block| matches!(block, Block::ToolUse { .. })).count();
        let openai = OpenAi::of(&messages);
        let sent: usize = openai.messages.iter()
            .map(|entry| entry["tool_calls"].as_array().map_or(0, Vec::len)).sum();
        prop_assert_eq!(sent, calls);
        let anthropic = Anthropic::of(&messages);
        let parts = anthropic.messages.iter().flat_map(|entry| entry["content"].as_array().unwrap());
        prop_assert_eq!(parts.filter(|part| part["type"] == "tool_use").count(), calls);
    }
}

fn conversation() -> Vec<Message> {
    let read = |json: Value| serde_json::from_value(json).unwrap();
    vec![
        Message::text("m1", Role::System, "Be brief."),
        read(
            json!({"id": "m2", "name": "ann", "role": "USER", "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
                {"type": "video", "source": {"type": "url", "url": "https://x/v.mp4"}},
            ]}),
        ),
        read(json!({"id": "m3", "role": "ASSISTANT", "content": [
            {"type": "thinking", "thinking": "hm", "metadata": {"signature": "s"}},
            {"type": "text", "text": "I will look."},
            {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": "it"}},
        ]})),
        read(json!({"id": "m4", "role": "TOOL", "content": [
            {"type": "tool_result", "id": "t1", "name": "look",
             "output": [{"type": "text", "text": "a cat"}], "metadata": {"is_error": false}},
        ]})),
        Message::text("m5", Role::Assistant, "A cat."),
    ]
}

#[test]
fn a_conversation_for_openai() {
    let sent = OpenAi::of(&conversation());
    assert_eq!(
        json!(sent.messages),
        json!([
            {"role": "system", "content": "Be brief."},
            {"role": "user", "name": "ann", "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
            ]},
            {"role": "assistant", "content": "I will look.", "tool_calls": [
                {"id": "t1", "type": "function",
                 "function": {"name": "look", "arguments": "{\"at\":\"it\"}"}},
            ]},
            {"role": "tool", "tool_call_id": "t1", "content": "a cat"},
            {"role": "assistant", "content": "A cat."},
        ])
    );
    let unseen: Vec<_> = sent
        .unseen
        .iter()
        .map(|one| (one.message, one.block, one.what))
        .collect();
    assert_eq!(
        unseen,
        [(1, 2, "a video"), (2, 0, "the reasoning of the model")]
    );
}

#[test]
fn a_conversation_for_anthropic() {
    let sent = Anthropic::of(&conversation());
    assert_eq!(
        json!(sent.system),
        json!([{"type": "text", "text": "Be brief."}])
    );
    assert_eq!(
        json!(sent.messages),
        json!([
            {"role": "user", "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
            ]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "I will look."},
                {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": "it"}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "is_error": false,
                 "content": [{"type": "text", "text": "a cat"}]},
            ]},
            {"role": "assistant", "content": [{"type": "text", "text": "A cat."}]},
        ])
    );
    assert_eq!(sent.unseen.len(), 1);
}

#[test]
fn an_answer_that_came_since_is_read_with_a_fresh_id() {
    let mut sent = OpenAi::of(&conversation());
    sent.messages
        .push(json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "t2", "type": "function", "function": {"name": "f", "arguments": "not json"}}]}));
    let back = sent.to_messages(&mut || "new".to_owned()).unwrap();
    assert_eq!(back[..5], conversation());
    assert_eq!(back[5].id, "new");
    assert!(matches!(&back[5].content[0],
        Block::ToolUse { content: Some(raw), input, .. } if raw == "not json" && input.is_empty()));
    let mut sent = Anthropic::of(&conversation());
    sent.messages.push(json!({"role": "assistant", "content": [
        {"type": "redacted_thinking", "data": "xyz"}, {"type": "text", "text": "Hi"}]}));
    let back = sent.to_messages(&mut || "new".to_owned()).unwrap();
    assert_eq!(back[..5], conversation());
    let again = Anthropic::of(&back[5..]);
    assert_eq!(
        again.messages[0], sent.messages[4],
        "what is hidden goes back as it came"
    );
}

#[test]
fn what_is_not_in_the_format_is_a_clear_error() {
    for (bad, why) in [
        (json!({"content": "x"}), "role"),
        (json!({"role": "robot", "content": "x"}), "`robot`"),
        (json!({"role": "user", "content": 7}), "neither"),
        (
            json!({"role": "user", "content": [{"type": "smell"}]}),
            "`smell`",
        ),
        (json!({"role": "tool", "content": "x"}), "tool_call_id"),
    ] {
        let error = OpenAi::read(&[bad], &mut || "x".to_owned()).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
    for (bad, why) in [
        (json!({"role": "user", "content": 7}), "neither"),
        (
            json!({"role": "user", "content": [{"type": "smell"}]}),
            "`smell`",
        ),
        (json!({"role": "robot", "content": "x"}), "`robot`"),
    ] {
        let error = Anthropic::read(None, &[bad], &mut || "x".to_owned()).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
    let mut cut = OpenAi::of(&conversation());
    cut.messages.pop();
    assert!(
        cut.to_messages(&mut none)
            .unwrap_err()
            .to_string()
            .contains("cut")
    );
}

#[test]
fn plain_texts_of_others_are_read() {
    let mut count = 0;
    let mut fresh = || {
        count += 1;
        count.to_string()
    };
    let system = json!("Be kind.");
    let entries = [json!({"role": "user", "content": "Hi"})];
    let read = Anthropic::read(Some(&system), &entries, &mut fresh).unwrap();
    let expected = [
        Message::text("1", Role::System, "Be kind."),
        Message::text("2", Role::User, "Hi"),
    ];
    assert_eq!(read, expected);
}
