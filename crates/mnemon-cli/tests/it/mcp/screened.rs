//! What is sent loosely is understood, and what should not be sent is taken out.

use serde_json::{Value, json};

use super::client::Client;
use crate::sandbox::Sandbox;

#[test]
fn tags_with_commas_are_a_list() {
    let sandbox = Sandbox::new();
    let mut client = Client::start(&sandbox, &[]);
    let tagged = |client: &mut Client, tags: Value| {
        let content = format!("tea with {tags}");
        let added = client.call("memory_add", json!({"content": content, "tags": tags}));
        client.call("memory_get", json!({"id": added["id"]}))["tags"].clone()
    };
    for (sent, kept) in [
        (json!("ops, deploy"), json!(["ops", "deploy"])),
        (json!("ops,deploy,"), json!(["ops", "deploy"])),
        (json!("ops"), json!(["ops"])),
        (json!("[\"a\", \"b\"]"), json!(["a", "b"])),
        (json!(["a,b"]), json!(["a,b"])),
    ] {
        assert_eq!(tagged(&mut client, sent.clone()), kept, "{sent}");
    }
    let found = client.call(
        "memory_search",
        json!({"query": "tea", "tags": "ops, none"}),
    );
    assert_eq!(found["total"], 3, "{found}");
}

/// A token in the form of a repository's; it is put together here, so that no scanner stumbles.
fn token() -> String {
    format!("gh{}_a8Kd03LmQx7Zt5Rv1Yb9Nc2Ws4Ej6Hu0Pg8Fi3", "p")
}

#[test]
fn a_masked_secret_is_reported() {
    let sandbox = Sandbox::new();
    let mut client = Client::start(&sandbox, &["--tools", "all"]);
    let key = token();
    let added = client.tool("memory_add", json!({"content": format!("use {key}")}));
    let added = &added["structuredContent"];
    let notice = added["notices"][0].as_str().unwrap();
    assert!(notice.contains("repository token"), "{notice}");
    let added = &added["data"];
    let got = client.call("memory_get", json!({"id": added["id"]}));
    assert_eq!(added["contentLength"], got["contentLength"], "{got}");
    client.text("agent_new", json!({"agent": "coder", "description": "x"}));
    let decided = client.tool(
        "agent_decide",
        json!({"agent": "coder", "title": "Deploy", "context": "c", "decision": key}),
    );
    let told = decided.to_string();
    assert!(
        told.contains("A secret was found") && !told.contains("a8Kd03"),
        "{told}"
    );
    let said = client.tool(
        "record_to_memory",
        json!({"content": [format!("use {key}")]}),
    );
    assert!(said.to_string().contains("A secret was found"), "{said}");
}

#[test]
fn no_error_of_the_server_repeats_a_secret() {
    let sandbox = Sandbox::new();
    let mut client = Client::start(&sandbox, &["--tools", "all"]);
    let key = token();
    for (tool, arguments) in [
        (
            "memory_add",
            json!({"content": "x", "metadata": format!("token={key}")}),
        ),
        ("memory_add", json!({"content": "x", "namespace": key})),
        (
            "memory_add",
            json!({"content": "x", "tags": [format!("a {key}")]}),
        ),
        ("memory_get", json!({"id": key})),
        (key.as_str(), json!({})),
        // So long that the name is cut within the token.
        (&format!("{}_{key}", "x".repeat(40)), json!({})),
        ("memory_add", json!({"content": "x", (key.as_str()): 1})),
        (
            "memory_add",
            json!({"content": "x", "idempotency_key": key}),
        ),
    ] {
        let result = client.tool(tool, arguments).to_string();
        assert!(!result.contains("a8Kd03"), "{result}");
    }
    for method in [
        key.clone(),
        format!("tools/{key}"),
        format!("{}/{key}", "x".repeat(40)),
    ] {
        let answer = client.request(&method, json!({})).to_string();
        assert!(
            answer.contains("error") && !answer.contains("a8Kd03"),
            "{answer}"
        );
    }
    for (method, params) in [
        (
            "resources/read",
            json!({"uri": format!("mnemon://{}/{key}", "x".repeat(180))}),
        ),
        (
            "prompts/get",
            json!({"name": format!("{}_{key}", "x".repeat(40))}),
        ),
    ] {
        let answer = client.request(method, params).to_string();
        assert!(
            answer.contains("error") && !answer.contains("a8Kd03"),
            "{answer}"
        );
    }
}
