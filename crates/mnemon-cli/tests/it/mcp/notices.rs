//! What a call had to do without is part of the answer.

use serde_json::json;

use super::client::Client;
use crate::notices::{DEAD, SEARCHED, WRITTEN};
use crate::sandbox::Sandbox;

#[test]
fn mcp_says_that_the_embedder_did_not_answer() {
    let sandbox = Sandbox::new().with("MNEMON_EMBEDDER", DEAD);
    let mut client = Client::start(&sandbox, &["--tools", "all"]);
    for (tool, arguments, begins) in [
        ("memory_add", json!({"content": "the red bicycle"}), WRITTEN),
        ("memory_search", json!({"query": "bicycle"}), SEARCHED),
        (
            "memory_search",
            json!({"query": "bicycle", "max_tokens": 200}),
            SEARCHED,
        ),
        (
            "record_to_memory",
            json!({"content": ["Ann drinks tea"]}),
            WRITTEN,
        ),
        (
            "retrieve_from_memory",
            json!({"keywords": ["tea"]}),
            SEARCHED,
        ),
        ("memory_context", json!({"query": "bicycle"}), SEARCHED),
    ] {
        let result = client.tool(tool, arguments);
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(&begins[..20]), "{tool}: {text}");
        if let Some(data) = result.get("structuredContent") {
            let notice = data["notices"][0].as_str().unwrap();
            assert!(notice.starts_with(&begins[..20]), "{tool}: {notice}");
        }
    }
    let topic = json!({"name": "recall", "arguments": {"topic": "bicycle"}});
    let prompt = client.request("prompts/get", topic).to_string();
    assert!(prompt.contains(SEARCHED), "{prompt}");
}

#[test]
fn a_healthy_call_has_no_notice() {
    let mut client = Client::start(&Sandbox::new(), &[]);
    for (tool, arguments) in [
        ("memory_add", json!({"content": "the red bicycle"})),
        ("memory_search", json!({"query": "bicycle"})),
    ] {
        let result = client.tool(tool, arguments);
        assert!(
            result["structuredContent"].get("notices").is_none(),
            "{result}"
        );
    }
}
