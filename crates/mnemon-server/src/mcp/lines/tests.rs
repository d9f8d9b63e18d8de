use proptest::prelude::*;
use tokio::io::AsyncReadExt;

use super::*;

/// What becomes of the bytes: the messages that arrive, and the lines that are answered.
async fn talk(sent: &[u8], most: usize) -> (usize, Vec<Value>) {
    let (ours, mut theirs) = tokio::io::duplex(1 << 20);
    let mut lines = Lines::new(sent, ours, most);
    let mut messages = 0;
    while lines.receive().await.is_some() {
        messages += 1;
    }
    drop(lines);
    let mut answered = String::new();
    theirs.read_to_string(&mut answered).await.unwrap();
    let answers = answered
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    (messages, answers.collect())
}

fn now<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(future)
}

fn codes(sent: &str) -> Vec<(Value, i64)> {
    let (_, answers) = now(talk(sent.as_bytes(), 1000));
    let told = answers.iter().map(|answer| {
        assert_eq!(answer["jsonrpc"], "2.0");
        assert!(answer["error"]["message"].is_string(), "{answer}");
        (
            answer["id"].clone(),
            answer["error"]["code"].as_i64().unwrap(),
        )
    });
    told.collect()
}

const PING: &str = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;

#[test]
fn what_is_no_json_is_answered_and_the_session_goes_on() {
    let sent = format!("nonsense\n{{\"jsonrpc\":\n\n{PING}\n\u{feff}{PING}\r\n{PING}");
    let (messages, answers) = now(talk(sent.as_bytes(), 1000));
    assert_eq!(messages, 3, "the last one has no break");
    assert_eq!(answers.len(), 2);
    assert_eq!(answers[0]["error"]["code"], PARSE_ERROR);
    assert_eq!(answers[0]["id"], Value::Null);
    let (messages, answers) = now(talk(b"\xff\xfe{}\n", 1000));
    assert_eq!((messages, answers.len()), (0, 1));
}

#[test]
fn what_is_no_message_is_answered_with_its_id() {
    for (sent, id, code) in [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[1]}"#,
            json!(1),
            INVALID_PARAMS,
        ),
        (
            r#"{"jsonrpc":"2.0","id":"a","method":"ping","params":"x"}"#,
            json!("a"),
            INVALID_PARAMS,
        ),
        (r#"{"jsonrpc":"2.0","id":2}"#, json!(2), INVALID_REQUEST),
        (
            r#"{"jsonrpc":"2.0","id":3,"method":5}"#,
            json!(3),
            INVALID_REQUEST,
        ),
        (
            r#"{"jsonrpc":"1.0","id":4,"method":"ping"}"#,
            json!(4),
            INVALID_REQUEST,
        ),
        (r#"{"id":5,"method":"ping"}"#, json!(5), INVALID_REQUEST),
        (
            r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#,
            Value::Null,
            INVALID_REQUEST,
        ),
        (
            r#"[{"jsonrpc":"2.0","id":6,"method":"ping"}]"#,
            Value::Null,
            INVALID_REQUEST,
        ),
        ("17", Value::Null, INVALID_REQUEST),
        ("{}", Value::Null, INVALID_REQUEST),
    ] {
        let told = codes(&format!("{sent}\n"));
        // A request that the library takes as it is may be answered by the handler instead.
        if !told.is_empty() {
            assert_eq!(told, [(id, code)], "{sent}");
        } else {
            assert_eq!(now(talk(sent.as_bytes(), 1000)).0, 1, "{sent}");
        }
    }
}

#[test]
fn notifications_and_answers_are_never_answered() {
    for sent in [
        r#"{"jsonrpc":"2.0","method":"notifications/initialized","params":[1]}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":"no"}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}"#,
    ] {
        assert_eq!(codes(&format!("{sent}\n")), [], "{sent}");
    }
}

#[test]
fn a_line_that_is_too_long_is_passed_over_and_told() {
    let long = "x".repeat(5000);
    let sent = format!("{long}\n{PING}\n{long}");
    let (messages, answers) = now(talk(sent.as_bytes(), 1000));
    assert_eq!(messages, 1);
    assert_eq!(answers.len(), 2);
    assert!(
        answers[0]["error"]["message"]
            .as_str()
            .unwrap()
            .contains("at most 1000 bytes")
    );
}

proptest! {
    #[test]
    fn whatever_is_sent_the_next_message_arrives(
        noise in proptest::collection::vec(prop_oneof![
            any::<String>(),
            "[\\[\\]{}\":,a-z0-9 ]{0,40}",
            Just(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}"#.to_owned()),
        ], 0..6),
    ) {
        let noise: Vec<String> = noise.iter().map(|line| line.replace('\n', " ")).collect();
        let sent = format!("{}\n{PING}\n", noise.join("\n"));
        let (messages, answers) = now(talk(sent.as_bytes(), 100_000));
        prop_assert!(messages >= 1);
        prop_assert!(messages + answers.len() <= noise.len() + 1);
    }
}
