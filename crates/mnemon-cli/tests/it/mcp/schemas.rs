//! With `--structured` every tool publishes the schema of its answer, and every answer has it.

use std::collections::BTreeMap;

use mnemon_core::budget::{Bound, Counter};
use serde_json::{Value, json};

use super::client::Client;
use crate::json::schema::Schema;
use crate::sandbox::Sandbox;

/// The calls that other tests make with the official clients: each tool at least once.
const CALLS: &str = include_str!("../../../../../tests/clients/calls.json");

/// A memory with long texts: notes, conversations, agents, a team, a skill.
fn filled() -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    sandbox.run(&["init"]).ok();
    let long = "Ann prefers green tea of the first harvest. ".repeat(60);
    let tags: Vec<String> = (0..20).map(|n| format!("--tag=tag-number-{n}")).collect();
    for n in 0..12 {
        let text = format!("Note {n}: {long}");
        let tags = tags.iter().map(String::as_str);
        let args: Vec<&str> = ["add", text.as_str()].into_iter().chain(tags).collect();
        assert_eq!(sandbox.run(&args).code, 0);
    }
    for member in ["ada", "linus"] {
        let args = ["team", "new", "core", "--member", member];
        sandbox.run(&args).ok();
    }
    let line = &long[..150];
    let new = ["agent", "new", "coder", "--description", line];
    sandbox.run(&new).ok();
    for n in 0..10 {
        let (title, task) = (format!("Decision {n}"), format!("Task {n}: {line}"));
        let decide = ["agent", "decide", "coder", &title, "--decision", &long];
        sandbox.run(&decide).ok();
        let handoff = ["team", "handoff", "core", "--from", "ada", "--to", "linus"];
        let more = ["--task", &task, "--context", "c", "--deliverable", "d"];
        sandbox.run(&[&handoff[..], &more].concat()).ok();
        let block = ["team", "block", "core", &task, "--by", "linus"];
        sandbox.run(&block).ok();
    }
    let steps: Vec<Value> = (0..20)
        .map(|n| json!({"tool": format!("tool-{n}"), "action": long}))
        .collect();
    let skill = json!({"use_when": "deploy the service", "tool_sops": steps, "shared": true});
    let skill = skill.to_string();
    let write = ["write", "--user", "ann", "--session", "s1"];
    let data = ["--scope", "procedural", "--data", &skill];
    sandbox.run(&[&write[..], &data].concat()).ok();
    for said in [&long, "I have read it.", "What did it say?"] {
        let args = ["chat", "append", "long", said, "--user", "ann"];
        sandbox.run(&args).ok();
    }
    let compress = ["chat", "compress", "long", "--user", "ann"];
    sandbox
        .run(&[&compress[..], &["--last-keep", "1"]].concat())
        .ok();
    let shown = ["chat", "show", "long", "--user", "ann", "--json"];
    let shown = sandbox.run(&shown).json();
    let mut messages = shown["messages"].as_array().unwrap().iter();
    let offload = messages.find_map(|seen| seen["uuid"].as_str()).unwrap();
    (sandbox, offload.to_owned())
}

/// The schemas that the server publishes.
fn published(client: &mut Client) -> BTreeMap<String, Value> {
    let listed = client.ask("tools/list", json!({}));
    let tools = listed["tools"].as_array().unwrap().iter();
    let schemas = tools.map(|tool| {
        let name = tool["name"].as_str().unwrap();
        (name.to_owned(), tool["outputSchema"].clone())
    });
    schemas.collect()
}

fn tokens(result: &Value) -> usize {
    let text = result["content"][0]["text"].as_str().unwrap();
    Bound.count(text) + Bound.count(&result["structuredContent"].to_string())
}

#[test]
fn every_answer_has_the_schema_of_its_tool() {
    let (sandbox, offload) = filled();
    let mut client = Client::start(&sandbox, &["--tools", "all"]);
    let schemas = published(&mut client);
    let schema = Schema(mnemon_operations::schema::document());
    let calls: Vec<(String, Value)> = serde_json::from_str(CALLS).unwrap();
    let mut id = String::new();
    let mut shortened = 0;
    for (tool, arguments) in calls {
        let arguments = arguments.to_string().replace("$id", &id);
        let arguments = arguments.replace("$offload", &offload);
        let arguments: Value = serde_json::from_str(&arguments).unwrap();
        for most in [2000, 200, 300] {
            let mut arguments = arguments.clone();
            if most < 2000 {
                let field = match tool.as_str() {
                    "memory_context" => "budget",
                    _ => "max_tokens",
                };
                arguments[field] = json!(most);
            }
            let result = client.tool(&tool, arguments);
            if result["isError"] == true && most < 2000 {
                // It writes, and has no such field.
                continue;
            }
            assert_eq!(result["isError"], false, "{tool}: {result}");
            let data = &result["structuredContent"];
            let wrong = schema.check_value(&schemas[&tool], data);
            assert!(wrong.is_empty(), "{tool} {most}: {wrong:?}\n{data}");
            assert!(tokens(&result) <= most, "{tool}: {}", tokens(&result));
            shortened += usize::from(data["truncated"] == true);
            if tool == "memory_add" && most == 2000 {
                id = data["referenceId"].as_str().unwrap().to_owned();
            }
        }
    }
    assert!(shortened > 5, "{shortened}");
}

#[test]
fn a_long_list_is_answered_with_fewer_items_and_says_so() {
    let (sandbox, _) = filled();
    let mut client = Client::start(&sandbox, &["--tools", "all"]);
    let few = client.tool("team_status", json!({"team": "core", "max_tokens": 400}));
    let few = &few["structuredContent"];
    let shown =
        few["handoffs"].as_array().unwrap().len() + few["blockers"].as_array().unwrap().len();
    assert!(shown > 0, "{few}");
    assert_eq!(
        few["left_out"].as_u64().unwrap() + shown as u64,
        20,
        "{few}"
    );
    let listed = client.call("memory_list", json!({"max_tokens": 800}));
    let shown = listed["notes"].as_array().unwrap().len() as u64;
    let left = listed["leftOut"]["count"].as_u64().unwrap();
    assert!(shown > 0 && shown + left == 12, "{listed}");
    let found = json!({"query": "green tea", "limit": 10, "max_tokens": 200});
    let found = client.tool("memory_search", found);
    let found = &found["structuredContent"]["data"];
    assert_eq!(found["found"], true);
    assert!(found["total"].as_u64() > Some(0), "{found}");
}

#[test]
fn an_error_has_no_structured_content_where_there_are_schemas() {
    let sandbox = Sandbox::new();
    let mut client = Client::start(&sandbox, &[]);
    let failed = client.tool("memory_search", json!({"query": ""}));
    assert_eq!(failed["isError"], true);
    assert!(failed.get("structuredContent").is_none(), "{failed}");
    assert_eq!(failed["_meta"]["mnemon/error"]["kind"], "invalid");
    let mut client = Client::assistant(&sandbox, &[]);
    assert!(published(&mut client).values().all(Value::is_null));
    let failed = client.tool("memory_search", json!({"query": ""}));
    assert_eq!(failed["structuredContent"]["error"]["kind"], "invalid");
}
