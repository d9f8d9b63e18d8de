//! ReMe: flows over workspaces (up to 0.3) and jobs over one workspace (from 0.4). Both list their
//! paths in `/openapi.json`, and both ignore fields that they do not know; the doubles refuse them.

use serde_json::{Value, json};

use super::call::{Call, NOT_A_ROUTE};
use super::schema::Type::{Bool, List, Number, Object, Text, Whole};
use super::schema::{Type, list, object, one_of, text};
use super::{Answer, ONE_USER, State};

const SUMMARY: &str = "/summary_personal_memory";
const RETRIEVE: &str = "/retrieve_personal_memory";
const AUTO_MEMORY: &str = "/auto_memory";
const SEARCH: &str = "/search";

const MESSAGE: &[(&str, Type)] = &[("role", Text), ("content", Text)];
const SUMMARY_FIELDS: &[(&str, Type)] = &[
    ("workspace_id", Text),
    ("trajectories", List),
    ("metadata", Object),
];
const TRAJECTORY: &[(&str, Type)] = &[("messages", List), ("score", Number)];
const RETRIEVE_FIELDS: &[(&str, Type)] = &[
    ("workspace_id", Text),
    ("query", Text),
    ("top_k", Whole),
    ("metadata", Object),
];
const AUTO_MEMORY_FIELDS: &[(&str, Type)] = &[
    ("messages", List),
    ("session_id", Text),
    ("memory_hint", Text),
    ("request_id", Text),
    ("include_images", Bool),
    ("date", Text),
    ("metadata", Object),
];
const SEARCH_FIELDS: &[(&str, Type)] = &[
    ("query", Text),
    ("limit", Whole),
    ("min_score", Number),
    ("tags", List),
    ("start_date", Text),
    ("end_date", Text),
    ("metadata", Object),
];

pub(super) fn answer(call: &Call, state: &mut State) -> Answer {
    match (call.method.as_str(), call.path.as_str()) {
        ("GET", "/openapi.json") => openapi(&[SUMMARY, RETRIEVE]),
        ("POST", SUMMARY) => {
            let body = object(
                &call.body,
                SUMMARY_FIELDS,
                &["workspace_id", "trajectories"],
            )?;
            let workspace = workspace(text(body, "workspace_id"))?;
            for one in list(body, "trajectories") {
                let one = object(one, TRAJECTORY, &["messages", "score"])?;
                keep(workspace, list(one, "messages"), state)?;
            }
            Ok(done("", json!({"memory_list": []})))
        }
        ("POST", RETRIEVE) => {
            let body = object(&call.body, RETRIEVE_FIELDS, &["workspace_id", "query"])?;
            let top = body.get("top_k").and_then(Value::as_u64).unwrap_or(3);
            let workspace = workspace(text(body, "workspace_id"))?;
            let found = state.texts_of(workspace).take(top as usize);
            let texts: Vec<&str> = found.map(|(_, text)| text).collect();
            let found = texts.iter().enumerate().map(|(n, text)| {
                json!({"memory_id": n.to_string(), "workspace_id": workspace,
                    "memory_type": "personal", "content": text})
            });
            let found: Vec<Value> = found.collect();
            Ok(done(&texts.join("\n"), json!({ "memory_list": found })))
        }
        _ => Err(NOT_A_ROUTE.to_owned()),
    }
}

pub(super) fn answer_jobs(call: &Call, state: &mut State) -> Answer {
    match (call.method.as_str(), call.path.as_str()) {
        ("GET", "/openapi.json") => openapi(&[AUTO_MEMORY, SEARCH]),
        ("POST", AUTO_MEMORY) => {
            let body = object(&call.body, AUTO_MEMORY_FIELDS, &["messages"])?;
            keep(ONE_USER, list(body, "messages"), state)?;
            Ok(done("recorded", json!({})))
        }
        ("POST", SEARCH) => {
            let body = object(&call.body, SEARCH_FIELDS, &["query"])?;
            let limit = body.get("limit").and_then(Value::as_u64).unwrap_or(5);
            if limit == 0 {
                return Err("limit must be positive".to_owned());
            }
            let found = state.texts_of(ONE_USER).take(limit as usize);
            let found: Vec<&str> = found.map(|(_, text)| text).collect();
            let lines = found
                .iter()
                .map(|text| format!("========== daily.md:1-1\n{text}"));
            let lines: Vec<String> = lines.collect();
            let found = found.iter().map(|text| {
                json!({"path": "daily.md", "start_line": 1,
                "end_line": 1, "text": text, "score": 0.5})
            });
            let found: Vec<Value> = found.collect();
            Ok(done(&lines.join("\n"), json!({ "results": found })))
        }
        _ => Err(NOT_A_ROUTE.to_owned()),
    }
}

fn done(answer: &str, metadata: Value) -> (u16, Value) {
    let body = json!({"answer": answer, "success": true, "metadata": metadata});
    (200, body)
}

fn openapi(paths: &[&str]) -> Answer {
    let paths = paths
        .iter()
        .map(|path| ((*path).to_owned(), json!({"post": {}})));
    let paths = Value::Object(paths.collect());
    Ok((200, json!({"openapi": "3.1.0", "paths": paths})))
}

/// A workspace is a collection of a vector store, whose names are short and plain.
fn workspace(name: &str) -> Result<&str, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    match name.len() <= 63 && name.chars().all(is_plain) {
        true => Ok(name),
        false => Err(format!("`{name}` is not the name of a collection")),
    }
}

fn keep(owner: &str, messages: &[Value], state: &mut State) -> Result<(), String> {
    for message in messages {
        let message = object(message, MESSAGE, &["role", "content"])?;
        one_of(text(message, "role"), &["user", "assistant"])?;
        let content = text(message, "content").to_owned();
        state.memories.push((owner.to_owned(), content));
    }
    Ok(())
}
