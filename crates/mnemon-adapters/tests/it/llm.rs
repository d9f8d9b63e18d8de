//! Language models, against an endpoint that misbehaves.

use std::sync::Arc;

use mnemon_adapters::llm::{Budgets, Ledger, Model, ModelConfig, Prices, Provider, Secret, Usage};
use mnemon_core::llm::{Account, Completion, Llm, LlmError, Prompt};
use mnemon_core::{Block, ErrorKind, Message, Role};
use mnemon_testkit::fakes::{Endpoint, Move};
use serde_json::{Map, Value, json};

const KEY: &str = "sk-very-secret-key";

fn config(endpoint: &Endpoint) -> ModelConfig {
    ModelConfig {
        key: Some(Secret::new(KEY)),
        backoff_ms: 1,
        // A loaded machine is slow; what must time out says so itself.
        timeout_ms: 300_000,
        ..ModelConfig::new(Provider::OpenAi, format!("{}/v1", endpoint.url()), "m")
    }
}

fn ledger(budgets: Budgets) -> Arc<Ledger> {
    Arc::new(Ledger::in_memory(budgets, Prices::default()))
}

fn prompt(text: &str) -> Prompt {
    Prompt {
        account: Account::default(),
        system: None,
        messages: vec![Message::text("m1", Role::User, text)],
        max_tokens: 100,
        schema: None,
    }
}

/// What comes of one call with these moves, and how many requests were read.
async fn asked(moves: Vec<Move>, prompt: &Prompt) -> (Result<Completion, LlmError>, usize, Usage) {
    let endpoint = Endpoint::start(moves);
    let ledger = ledger(Budgets::default());
    let model = Model::new(config(&endpoint), ledger.clone());
    let answer = model.complete(prompt).await;
    let accounts = ledger.accounts().unwrap();
    let usage = accounts.first().map(|account| account.usage);
    (answer, endpoint.seen().len(), usage.unwrap_or_default())
}

#[tokio::test]
async fn it_answers_and_the_call_is_charged() {
    let (answer, seen, usage) = asked(vec![Move::say(" yes ")], &prompt("tea?")).await;
    let answer = answer.unwrap();
    assert_eq!((answer.text.as_str(), seen), ("yes", 1));
    assert_eq!((answer.input_tokens, answer.output_tokens), (11, 7));
    assert_eq!(
        (usage.calls, usage.input_tokens, usage.output_tokens),
        (1, 11, 7)
    );
    assert_eq!(usage.held_tokens, 0);
}

#[tokio::test]
async fn each_provider_is_spoken_to_in_its_own_language() {
    let endpoint = Endpoint::start(vec![Move::say("yes")]);
    let mut asked = prompt("tea?");
    asked.system = Some("Be brief.".to_owned());
    let openai = Model::new(config(&endpoint), ledger(Budgets::default()));
    openai.complete(&asked).await.unwrap();
    let anthropic = ModelConfig {
        provider: Provider::Anthropic,
        ..config(&endpoint)
    };
    let anthropic = Model::new(anthropic, ledger(Budgets::default()));
    let answer = anthropic.complete(&asked).await.unwrap();
    assert_eq!((answer.text.as_str(), answer.input_tokens), ("yes", 11));
    let seen = endpoint.seen();
    assert!(
        seen[0].head.starts_with("POST /v1/chat/completions "),
        "{}",
        seen[0].head
    );
    assert!(
        seen[0]
            .head
            .contains(&format!("authorization: Bearer {KEY}"))
    );
    assert_eq!(
        seen[0].body["messages"][0],
        json!({"role": "system", "content": "Be brief."})
    );
    assert_eq!(seen[0].body["max_tokens"], 100);
    assert!(
        seen[1].head.starts_with("POST /v1/messages "),
        "{}",
        seen[1].head
    );
    assert!(seen[1].head.contains(&format!("x-api-key: {KEY}")));
    assert!(seen[1].head.contains("anthropic-version: 2023-06-01"));
    assert_eq!(seen[1].body["system"], "Be brief.");
    assert_eq!(
        seen[1].body["messages"],
        json!([{"role": "user", "content": "tea?"}])
    );
}

#[tokio::test]
async fn tools_are_told_in_words_and_the_sides_take_turns() {
    let endpoint = Endpoint::start(vec![Move::say("yes")]);
    let mut asked = prompt("look");
    let call = Block::ToolUse {
        id: "c1".to_owned(),
        name: "ls".to_owned(),
        input: Map::from_iter([("path".to_owned(), json!("/"))]),
        content: None,
        metadata: Map::new(),
    };
    let result = Block::ToolResult {
        id: "c1".to_owned(),
        name: "ls".to_owned(),
        output: vec![Block::Text {
            text: "a.txt".to_owned(),
        }],
        metadata: Map::new(),
    };
    for (role, block) in [(Role::Assistant, call), (Role::Tool, result)] {
        asked.messages.push(Message {
            content: vec![block],
            ..Message::text("m", role, "")
        });
    }
    asked.messages.push(Message::text("m", Role::User, "and?"));
    asked
        .messages
        .insert(0, Message::text("m", Role::Assistant, "before"));
    let model = Model::new(config(&endpoint), ledger(Budgets::default()));
    model.complete(&asked).await.unwrap();
    let messages = endpoint.seen()[0].body["messages"].clone();
    let said: Vec<(&str, &str)> = messages
        .as_array()
        .unwrap()
        .iter()
        .map(|m| (m["role"].as_str().unwrap(), m["content"].as_str().unwrap()))
        .collect();
    assert_eq!(
        said,
        [
            ("user", "(The conversation began earlier.)"),
            ("assistant", "before"),
            ("user", "look"),
            ("assistant", "[calls the tool ls with {\"path\":\"/\"}]"),
            ("user", "[the tool ls gave back: a.txt]\n\nand?"),
        ]
    );
}

#[tokio::test]
async fn what_passes_is_tried_again() {
    let wait = Move::Status(429, "retry-after: 0\r\n".to_owned(), "slow down".to_owned());
    for bad in [
        wait,
        Move::status(500, ""),
        Move::Reset,
        Move::Half,
        Move::status(200, "{\"choi"),
    ] {
        let what = format!("{bad:?}");
        let (answer, _, usage) =
            asked(vec![bad.clone(), bad, Move::say("yes")], &prompt("tea?")).await;
        assert_eq!(answer.expect(&what).text, "yes");
        assert_eq!(usage.calls, 1, "{what}");
    }
}

#[tokio::test]
async fn it_gives_up_with_an_error_that_says_why() {
    let cases = [
        (
            Move::status(500, "{\"error\":{\"message\":\"on fire\"}}"),
            "on fire (status 500)",
            3,
        ),
        (Move::Half, "the connection failed", 3),
        (
            Move::status(200, "{\"choices\":[]}"),
            "choices[0].message",
            3,
        ),
        (Move::say("  "), "it is empty", 3),
        (Move::say("<think>hm"), "it is empty", 3),
        (
            Move::status(401, "no such key"),
            "no such key (status 401)",
            1,
        ),
        (Move::status(404, ""), "status 404", 1),
        (Move::Endless, "did not end after", 1),
        (
            Move::Status(
                302,
                "location: http://127.0.0.1:9/\r\n".to_owned(),
                String::new(),
            ),
            "status 302",
            1,
        ),
        (
            Move::Status(429, "retry-after: 3600\r\n".to_owned(), String::new()),
            "it asks to wait 3600 s",
            1,
        ),
    ];
    for (bad, why, requests) in cases {
        let what = format!("{bad:?}");
        let (answer, seen, _) = asked(vec![bad], &prompt("tea?")).await;
        let error = answer.expect_err(&what).to_string();
        assert!(error.contains(why), "{what}: {error}");
        assert_eq!(seen, requests, "{what}");
    }
}

#[tokio::test]
async fn a_silent_endpoint_is_not_waited_for_and_may_have_cost_something() {
    let endpoint = Endpoint::start(vec![Move::Hang]);
    let ledger = ledger(Budgets::default());
    let config = ModelConfig {
        timeout_ms: 1000,
        attempts: 2,
        ..config(&endpoint)
    };
    let model = Model::new(config, ledger.clone());
    let error = model.complete(&prompt("tea?")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(
        error.to_string().contains("no answer within 1000 ms"),
        "{error}"
    );
    let usage = ledger.accounts().unwrap()[0].usage;
    assert_eq!(usage.calls, 0);
    // Whatever arrived is held; on a machine that is asleep not even the connection may be made.
    let arrived = endpoint.seen().len() as u64;
    assert!(usage.held_tokens >= 100 * arrived, "{usage:?}");
}

#[tokio::test]
async fn nobody_there_costs_nothing() {
    let gone = Endpoint::start(vec![Move::Hang]);
    let ledger = ledger(Budgets::default());
    let config = ModelConfig {
        base_url: "http://127.0.0.1:1/v1".to_owned(),
        ..config(&gone)
    };
    let model = Model::new(config, ledger.clone());
    let error = model.complete(&prompt("tea?")).await.unwrap_err();
    assert!(
        error.to_string().contains("the connection failed"),
        "{error}"
    );
    assert_eq!(ledger.accounts().unwrap()[0].usage, Usage::default());
}

#[tokio::test]
async fn a_budget_stops_a_call_before_it_is_sent() {
    let endpoint = Endpoint::start(vec![Move::say("yes")]);
    let budgets = Budgets {
        tokens_per_day: Some(600),
        ..Budgets::default()
    };
    let model = Model::new(config(&endpoint), ledger(budgets));
    // A call may need some 400; it uses 18.
    model.complete(&prompt("tea?")).await.unwrap();
    model.complete(&prompt("tea?")).await.unwrap();
    let long = prompt(&"tea and ".repeat(100));
    let error = model.complete(&long).await.unwrap_err();
    assert!(matches!(error, LlmError::Budget { .. }), "{error}");
    let text = error.to_string();
    assert!(
        text.contains("the tenant default") && text.contains("nothing was sent"),
        "{text}"
    );
    assert_eq!(endpoint.seen().len(), 2);
}

fn wants_number() -> Prompt {
    Prompt {
        schema: Some(json!({
            "type": "object",
            "properties": {"n": {"type": "integer"}},
            "required": ["n"],
        })),
        ..prompt("how many?")
    }
}

#[tokio::test]
async fn json_is_checked_and_asked_for_once_more() {
    let (answer, seen, _) = asked(vec![Move::say("Sure: {\"n\": 3}")], &wants_number()).await;
    assert_eq!((answer.unwrap().text.as_str(), seen), ("{\"n\":3}", 1));

    let endpoint = Endpoint::start(vec![
        Move::say("{\"n\": \"three\"}"),
        Move::say("{\"n\":3}"),
    ]);
    let model = Model::new(config(&endpoint), ledger(Budgets::default()));
    let answer = model.complete(&wants_number()).await.unwrap();
    assert_eq!(
        (answer.text.as_str(), answer.input_tokens),
        ("{\"n\":3}", 22)
    );
    let seen = endpoint.seen();
    assert_eq!(seen[0].body["response_format"]["type"], "json_schema");
    assert!(
        seen[0].body["messages"][0]["content"]
            .as_str()
            .unwrap()
            .contains("JSON schema")
    );
    let last = seen[1].body["messages"].as_array().unwrap().last().unwrap()["content"].clone();
    assert!(last.as_str().unwrap().contains("answer.n"), "{last}");

    for bad in ["{\"n\": ", "{\"n\": \"three\"}", "no"] {
        let (answer, seen, _) = asked(vec![Move::say(bad)], &wants_number()).await;
        let error = answer.unwrap_err();
        assert!(matches!(error, LlmError::BadAnswer { .. }), "{error}");
        assert_eq!(seen, 2, "one repair, not more");
    }
}

#[tokio::test]
async fn an_endpoint_that_wants_other_words_gets_them() {
    let moves = vec![
        Move::status(
            400,
            "{\"error\":{\"message\":\"Use 'max_completion_tokens' instead.\"}}",
        ),
        Move::status(
            400,
            "{\"error\":{\"message\":\"response_format is not supported\"}}",
        ),
        Move::say("{\"n\":1}"),
    ];
    let endpoint = Endpoint::start(moves);
    let model = Model::new(config(&endpoint), ledger(Budgets::default()));
    for _ in 0..2 {
        model.complete(&wants_number()).await.unwrap();
    }
    let seen = endpoint.seen();
    assert_eq!(seen.len(), 4, "what was learnt is kept");
    assert_eq!(seen[3].body["max_completion_tokens"], 100);
    assert_eq!(seen[3].body["max_tokens"], Value::Null);
    assert_eq!(seen[3].body["response_format"], Value::Null);
}

#[tokio::test]
async fn a_bad_prompt_is_not_sent() {
    let bad = [
        Prompt {
            max_tokens: 0,
            ..prompt("x")
        },
        Prompt {
            messages: Vec::new(),
            ..prompt("x")
        },
        Prompt {
            schema: Some(json!({"oneOf": []})),
            ..prompt("x")
        },
        Prompt {
            account: Account {
                task: " ".to_owned(),
                ..Account::default()
            },
            ..prompt("x")
        },
        prompt(&"x".repeat(mnemon_core::limits::LLM_PROMPT_BYTES)),
    ];
    for bad in bad {
        let (answer, seen, _) = asked(vec![Move::say("yes")], &bad).await;
        assert_eq!(answer.unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(seen, 0);
    }
}

#[tokio::test]
async fn a_key_is_never_shown() {
    let repeat = format!("{{\"error\":{{\"message\":\"wrong key {KEY}\"}}}}");
    let endpoint = Endpoint::start(vec![Move::status(401, &repeat)]);
    let ledger = ledger(Budgets::default());
    let model = Model::new(config(&endpoint), ledger.clone());
    let error = model.complete(&prompt("x")).await.unwrap_err();
    assert!(error.to_string().contains("wrong key ***"), "{error}");
    let shown = format!("{model:?} {error:?} {ledger:?} {:?}", config(&endpoint));
    assert!(!shown.contains(KEY), "{shown}");
    assert!(shown.contains("***"));
    // A key that cannot be a header is not in the message about it either.
    let odd = ModelConfig {
        key: Some(Secret::new("line\nbreak-secret")),
        ..config(&endpoint)
    };
    let error = Model::new(odd, ledger)
        .complete(&prompt("x"))
        .await
        .unwrap_err();
    assert!(
        !format!("{error} {error:?}").contains("secret"),
        "{error:?}"
    );
}

#[tokio::test]
async fn no_more_calls_are_under_way_than_allowed() {
    let endpoint = Endpoint::start(vec![Move::Hang]);
    let config = ModelConfig {
        concurrent: 2,
        ..config(&endpoint)
    };
    let model = Arc::new(Model::new(config, ledger(Budgets::default())));
    let call = |model: &Arc<Model>| {
        let model = model.clone();
        tokio::spawn(async move { model.complete(&prompt("x")).await })
    };
    let most = mnemon_core::limits::LLM_WAITING;
    let calls: Vec<_> = (0..most + 2).map(|_| call(&model)).collect();
    // Two are under way and the rest wait: one more is turned away, as soon as all have come.
    let turned_away = loop {
        match tokio::time::timeout(std::time::Duration::from_millis(20), call(&model)).await {
            Ok(done) => break done.unwrap().unwrap_err(),
            Err(_) => tokio::task::yield_now().await,
        }
    };
    assert!(
        turned_away
            .to_string()
            .contains("are already waiting for it"),
        "{turned_away}"
    );
    while endpoint.seen().len() < 2 {
        tokio::task::yield_now().await;
    }
    for call in &calls {
        call.abort();
    }
    assert_eq!(endpoint.seen().len(), 2);
}

/// Answers as services write them, with all that they say besides.
#[tokio::test]
async fn recorded_answers_are_read() {
    let openai = [
        // A large service.
        r#"{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,
            "message":{"role":"assistant","content":"Paris.","refusal":null,"annotations":[]},
            "logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":14,"completion_tokens":2,
            "total_tokens":16,"prompt_tokens_details":{"cached_tokens":0}},"system_fingerprint":null}"#,
        // A server that tells its thoughts apart.
        r#"{"id":"chat-1","choices":[{"index":0,"message":{"role":"assistant","reasoning_content":"hm",
            "content":"\n\nParis.","tool_calls":[]},"finish_reason":"stop","stop_reason":null}],
            "usage":{"prompt_tokens":14,"total_tokens":16,"completion_tokens":2}}"#,
        // One that thinks aloud.
        r#"{"choices":[{"finish_reason":"stop","index":0,"message":{"role":"assistant",
            "content":"<think>\nFrance...\n</think>\n\nParis."}}],"created":1,"model":"m",
            "usage":{"completion_tokens":2,"prompt_tokens":14,"total_tokens":16},"timings":{"n":1}}"#,
        // One that answers in parts.
        r#"{"choices":[{"message":{"role":"assistant","content":[{"type":"text","text":"Par"},
            {"type":"text","text":"is."}]}}],"usage":{"prompt_tokens":14,"completion_tokens":2}}"#,
    ];
    let anthropic = r#"{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[
        {"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"Paris."}],
        "stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":4,
        "cache_creation_input_tokens":7,"cache_read_input_tokens":3,"output_tokens":2}}"#;
    let all = openai.map(|body| (Provider::OpenAi, body));
    for (provider, body) in all.into_iter().chain([(Provider::Anthropic, anthropic)]) {
        let endpoint = Endpoint::start(vec![Move::status(200, body)]);
        let config = ModelConfig {
            provider,
            ..config(&endpoint)
        };
        let model = Model::new(config, ledger(Budgets::default()));
        let answer = model.complete(&prompt("capital?")).await.unwrap();
        assert_eq!(answer.text, "Paris.", "{body}");
        assert_eq!(
            (answer.input_tokens, answer.output_tokens),
            (14, 2),
            "{body}"
        );
    }
    for (provider, body, why) in [
        (
            Provider::OpenAi,
            r#"{"choices":[{"message":{"content":null,"refusal":"I cannot help."}}]}"#,
            "it declined: I cannot help.",
        ),
        (
            Provider::OpenAi,
            r#"{"choices":[{"message":{"content":null,"tool_calls":[{"id":"1"}]}}]}"#,
            "has no text",
        ),
        (
            Provider::Anthropic,
            r#"{"content":[],"stop_reason":"refusal"}"#,
            "it declined",
        ),
        (Provider::Anthropic, r#"{"type":"message"}"#, "no content"),
    ] {
        let endpoint = Endpoint::start(vec![Move::status(200, body)]);
        let config = ModelConfig {
            provider,
            ..config(&endpoint)
        };
        let model = Model::new(config, ledger(Budgets::default()));
        let error = model.complete(&prompt("x")).await.unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

/// An endpoint that does not count is charged by our own bound.
#[tokio::test]
async fn an_endpoint_that_does_not_count_is_charged_all_the_same() {
    let body = r#"{"choices":[{"message":{"content":"Paris."}}]}"#;
    let (answer, _, usage) = asked(vec![Move::status(200, body)], &prompt("capital?")).await;
    let answer = answer.unwrap();
    assert!(
        answer.input_tokens > 20 && answer.output_tokens > 0,
        "{answer:?}"
    );
    assert_eq!((usage.calls, usage.input_tokens), (1, answer.input_tokens));
}

/// A real model, if somebody serves one: see docs/llm.md. Small models are not clever, so only what
/// the port promises is asked for.
#[tokio::test]
async fn live_a_real_model_answers() {
    let Ok(url) = std::env::var("MNEMON_TEST_LLM_URL") else {
        println!("skipped: MNEMON_TEST_LLM_URL names no endpoint");
        return;
    };
    let model = std::env::var("MNEMON_TEST_LLM_MODEL").unwrap_or_else(|_| "default".to_owned());
    let ledger = ledger(Budgets::default());
    let config = ModelConfig {
        timeout_ms: 600_000,
        ..ModelConfig::new(Provider::OpenAi, url, model)
    };
    let model = Model::new(config, ledger.clone());
    let plain = model
        .complete(&prompt("What is the capital of France?"))
        .await
        .unwrap();
    println!("it said: {}", plain.text);
    assert!(!plain.text.is_empty() && plain.input_tokens > 0 && plain.output_tokens > 0);
    let structured = model.complete(&wants_number()).await;
    println!("in JSON: {structured:?}");
    match structured {
        Ok(answer) => {
            let value: Value = serde_json::from_str(&answer.text).unwrap();
            assert!(value["n"].is_i64(), "{value}");
        }
        Err(error) => assert!(matches!(error, LlmError::BadAnswer { .. }), "{error}"),
    }
    let usage = ledger.accounts().unwrap()[0].usage;
    println!("used: {usage:?}");
    assert!(usage.calls >= 2 && usage.held_tokens == 0);
}
