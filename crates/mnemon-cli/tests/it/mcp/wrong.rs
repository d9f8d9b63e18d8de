//! Wrong input: a clear answer each time, and the server goes on.

use serde_json::{Value, json};

use super::client::Client;
use crate::sandbox::Sandbox;

#[test]
#[allow(clippy::too_many_lines, reason = "a table of what is wrong")]
fn every_wrong_argument_is_told_and_the_server_goes_on() {
    let sandbox = Sandbox::new();
    let mut client = Client::start(&sandbox, &["--tools", "all"]);
    let long = "x ".repeat(500_000);
    let cases = [
        ("memory_search", json!({"query": ""}), "query: is empty"),
        ("memory_search", json!({"query": "   "}), "query: is empty"),
        (
            "memory_search",
            json!({"query": long}),
            "1000000 characters; at most 65536",
        ),
        ("memory_search", json!({}), "query: is missing"),
        (
            "memory_search",
            json!({"query": 5}),
            "must be a text, not a number",
        ),
        (
            "memory_search",
            json!({"query": "x", "namespace": "medium-term"}),
            "it must be one of: short-term, long-term",
        ),
        (
            "memory_search",
            json!({"query": "x", "limit": 0}),
            "from 1 to 1000",
        ),
        (
            "memory_search",
            json!({"query": "x", "limit": "many"}),
            "a whole number",
        ),
        (
            "memory_search",
            json!({"query": "x", "colour": "red"}),
            "the fields are: query, limit",
        ),
        (
            "memory_search",
            json!({"query": "x", "tags": {"a": 1}}),
            "a list of texts",
        ),
        (
            "memory_add",
            json!({}),
            "content: is missing: Text to remember; or give content_path",
        ),
        (
            "memory_add",
            json!({"content": "a", "content_path": "b"}),
            "content: is given together with content_path",
        ),
        (
            "memory_add",
            json!({"content": ["a"]}),
            "must be a text, not a list",
        ),
        (
            "memory_add",
            json!({"content": "a", "importance": "high"}),
            "importance",
        ),
        (
            "memory_add",
            json!({"content": "a", "tags": ["no spaces allowed!"]}),
            "tag",
        ),
        (
            "memory_add",
            json!({"content": "a", "metadata": "x"}),
            "metadata: `x` is not an object",
        ),
        ("memory_get", json!({"id": "nobody"}), "nobody"),
        ("memory_get", json!({"id": "x".repeat(200)}), "at most 128"),
        ("memory_delete", json!({"id": ""}), "id: is empty"),
        ("query_memory", json!({"query": ""}), "query: is empty"),
        (
            "read_conversation",
            json!({"session": "nosuch"}),
            "has no conversation `nosuch`",
        ),
        (
            "append_to_conversation",
            json!({"session": "s1", "role": "user"}),
            "content: is missing",
        ),
        (
            "context_reload",
            json!({"uuid": "u1", "session": "s"}),
            "No messages found for UUID: u1",
        ),
        (
            "memory_context",
            json!({"query": "x", "budget": 5}),
            "from 100 to",
        ),
        ("agent_activate", json!({"agent": "../../etc"}), "agent"),
        (
            "agent_decide",
            json!({"agent": "a", "title": "t"}),
            "is missing",
        ),
        (
            "agent_end",
            json!({"agent": "a", "decisions": [{"titel": "t"}]}),
            "decisions[0].titel: is not a known field",
        ),
        ("team_status", json!({"team": "nobody"}), "nobody"),
        ("no_such_tool", json!({}), "memory_search"),
    ];
    for (tool, arguments, expected) in cases {
        let said = client.fails(tool, arguments);
        assert!(said.contains(expected), "{tool}: {said}");
        assert!(said.len() < 2000, "{tool}: {} bytes", said.len());
    }
    assert_eq!(client.call("memory_stats", json!({}))["total"], 0);
    assert_eq!(client.leave(), 0);
}

#[test]
fn files_are_read_only_if_they_are_texts_below_the_root() {
    let sandbox = Sandbox::new();
    let secret = tempfile::tempdir().unwrap();
    std::fs::write(secret.path().join("secret.txt"), "outside").unwrap();
    std::os::unix::fs::symlink(secret.path(), sandbox.path("link")).unwrap();
    sandbox.file("bad.txt", b"abc\xff\xfedef");
    sandbox.file("large.txt", vec![b'x'; 11 * 1024 * 1024]);
    sandbox.file("good.md", "Kettles boil at a hundred degrees");
    std::fs::create_dir(sandbox.path("folder")).unwrap();
    let mut client = Client::start(&sandbox, &["--tools", "notes"]);
    let outside = secret.path().join("secret.txt").display().to_string();
    let cases = [
        ("../secret.txt", "not a path below the root"),
        ("a/../../secret.txt", "not a path below the root"),
        (outside.as_str(), "below the root"),
        ("link/secret.txt", "link"),
        ("bad.txt", "UTF-8"),
        ("large.txt", "large.txt"),
        ("folder", "folder"),
        ("missing.txt", "missing.txt"),
    ];
    for (path, expected) in cases {
        let said = client.fails("memory_add", json!({"content_path": path}));
        assert!(said.contains(expected), "{path}: {said}");
        assert!(!said.contains("outside"), "{said}");
    }
    let added = client.call("memory_add", json!({"contentPath": "good.md"}));
    assert_eq!(added["contentLength"], 33);
    let found = client.call("memory_search", json!({"query": "kettles"}));
    assert_eq!(found["results"][0]["source"], "file:good.md");
}

#[test]
fn requests_that_are_not_made_right_get_an_error_and_nobody_crashes() {
    let sandbox = Sandbox::new();
    let mut client = Client::start(&sandbox, &[]);
    let code = |answer: &Value| answer["error"]["code"].as_i64().unwrap();
    for params in [
        json!({"name": "memory_search", "arguments": "x"}),
        json!({"name": "memory_search", "arguments": ["x"]}),
        json!({"name": 5}),
        json!({}),
    ] {
        let answer = client.request("tools/call", params.clone());
        assert_eq!(code(&answer), -32602, "{params}: {answer}");
    }
    assert_eq!(code(&client.request("no/such/method", json!({}))), -32601);
    let answer = client.request("resources/read", json!({"uri": "file:///etc/passwd"}));
    assert_eq!(code(&answer), -32602);
    let answer = client.request("resources/read", json!({"uri": "mnemon://agents/a/%2e%2e"}));
    assert_eq!(code(&answer), -32602);
    let answer = client.request(
        "resources/read",
        json!({"uri": "mnemon://agents/nobody/context.md"}),
    );
    assert_eq!(code(&answer), -32002);
    let answer = client.request("prompts/get", json!({"name": "recall"}));
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("topic")
    );
    let answer = client.request("resources/list", json!({"cursor": "x"}));
    assert_eq!(code(&answer), -32602);
    let listed = client.ask("tools/list", json!({}));
    assert_eq!(listed["tools"].as_array().unwrap().len(), 8);
    assert_eq!(client.leave(), 0);
}

#[test]
fn lines_that_are_no_message_are_answered() {
    let sandbox = Sandbox::new();
    let mut client = Client::start(&sandbox, &[]);
    let code = |answer: &Value| answer["error"]["code"].as_i64().unwrap();
    // What is no JSON at all has no id, and is told all the same.
    for nonsense in ["this is not JSON", "{\"jsonrpc\": \"2.0\""] {
        client.say(nonsense);
        let answer = client.hear();
        assert_eq!((&answer["id"], code(&answer)), (&Value::Null, -32700));
    }
    client.say("");
    // What is JSON and no request is answered with its id.
    for (id, wrong, number) in [
        (
            json!(70),
            json!({"method": "tools/call", "params": [1]}),
            -32602,
        ),
        (
            json!("a"),
            json!({"method": "tools/call", "params": "x"}),
            -32602,
        ),
        (
            json!(71),
            json!({"method": "tools/call", "params": {"name": 5}}),
            -32602,
        ),
        (json!(72), json!({"method": "ping", "params": [1]}), -32602),
        (json!(73), json!({"method": 5}), -32600),
        (json!(74), json!({}), -32600),
    ] {
        let mut wrong = wrong;
        wrong["jsonrpc"] = json!("2.0");
        wrong["id"] = id.clone();
        client.say(&wrong.to_string());
        let answer = client.hear();
        assert_eq!(
            (&answer["id"], code(&answer)),
            (&id, number),
            "{wrong}: {answer}"
        );
    }
    client.say("[]");
    assert_eq!(code(&client.hear()), -32600);
    client.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}"#);
    let listed = client.ask("tools/list", json!({}));
    assert_eq!(listed["tools"].as_array().unwrap().len(), 8);
    assert_eq!(client.leave(), 0);
}
