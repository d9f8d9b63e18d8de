//! Mem0.

use serde_json::{Value, json};

use super::call::{Call, NOT_A_ROUTE};
use super::schema::Type::{Bool, List, Number, Object, Text, Whole};
use super::schema::{Type, list, object, one_of, text};
use super::{Answer, State};

const ADD_V3: &[(&str, Type)] = &[
    ("messages", List),
    ("user_id", Text),
    ("agent_id", Text),
    ("app_id", Text),
    ("run_id", Text),
    ("org_id", Text),
    ("project_id", Text),
    ("filters", Object),
    ("metadata", Object),
    ("infer", Bool),
    ("expiration_date", Text),
    ("timestamp", Whole),
    ("custom_instructions", Text),
    ("agent_custom_instructions", Text),
    ("custom_categories", List),
    ("structured_data_schema", Object),
    ("immutable", Bool),
    ("includes", Text),
    ("excludes", Text),
];

const SEARCH_V3: &[(&str, Type)] = &[
    ("query", Text),
    ("filters", Object),
    ("top_k", Whole),
    ("threshold", Number),
    ("rerank", Bool),
    ("show_expired", Bool),
    ("reference_date", Text),
    ("latest_only", Bool),
    ("keyword_search", Bool),
    ("fields", List),
    ("categories", List),
    ("metadata", Object),
    ("org_id", Text),
    ("project_id", Text),
];

/// Fields of the platform's older generation, besides those of v3.
const ADD_V1: &[(&str, Type)] = &[
    ("output_format", Text),
    ("async_mode", Bool),
    ("version", Text),
];

const SEARCH_V2: &[(&str, Type)] = &[
    ("query", Text),
    ("filters", Object),
    ("top_k", Whole),
    ("threshold", Number),
    ("rerank", Bool),
    ("keyword_search", Bool),
    ("filter_memories", Bool),
    ("fields", List),
    ("categories", List),
    ("version", Text),
    ("org_id", Text),
    ("project_id", Text),
];

const ADD_OSS: &[(&str, Type)] = &[
    ("messages", List),
    ("user_id", Text),
    ("agent_id", Text),
    ("run_id", Text),
    ("metadata", Object),
    ("expiration_date", Text),
    ("infer", Bool),
    ("memory_type", Text),
    ("prompt", Text),
];

const SEARCH_OSS: &[(&str, Type)] = &[
    ("query", Text),
    ("filters", Object),
    ("top_k", Whole),
    ("threshold", Number),
    ("explain", Bool),
    ("show_expired", Bool),
];

fn ping(call: &Call) -> Answer {
    call.only_query(&["org_id", "project_id"])?;
    let body = json!({"status": "ok", "org_id": "o", "project_id": "p",
        "user_email": "a@example.org"});
    Ok((200, body))
}

pub(super) fn platform3(call: &Call, state: &mut State) -> Answer {
    match (call.method.as_str(), call.path.as_str()) {
        ("GET", "/v1/ping/") => ping(call),
        ("POST", "/v3/memories/add/") => {
            add(&call.body, ADD_V3, state)?;
            let queued = "Memory processing has been queued";
            let body = json!({"message": queued, "status": "PENDING", "event_id": "e-1"});
            Ok((200, body))
        }
        ("POST", "/v3/memories/search/") => {
            let found = search(&call.body, SEARCH_V3, state)?;
            Ok((200, json!({ "results": found })))
        }
        _ => Err(NOT_A_ROUTE.to_owned()),
    }
}

/// Answers additions with a list, and searches with a bare one.
pub(super) fn platform1(call: &Call, state: &mut State) -> Answer {
    match (call.method.as_str(), call.path.as_str()) {
        ("GET", "/v1/ping/") => ping(call),
        ("POST", "/v1/memories/") => {
            add(&call.body, &[ADD_V3, ADD_V1].concat(), state)?;
            let queued = "Memory processing has been queued";
            let body = json!([{"message": queued, "status": "PENDING", "event_id": "e-1"}]);
            Ok((200, body))
        }
        ("POST", "/v2/memories/search/") => {
            let found = search(&call.body, SEARCH_V2, state)?;
            Ok((200, found.into()))
        }
        _ => Err(NOT_A_ROUTE.to_owned()),
    }
}

pub(super) fn self_hosted(call: &Call, state: &mut State) -> Answer {
    match (call.method.as_str(), call.path.as_str()) {
        ("GET", "/memories") => {
            call.only_query(&["user_id", "agent_id", "run_id", "top_k", "show_expired"])?;
            let user = call.parameter("user_id").ok_or("user_id is missing")?;
            let top = call.number("top_k", 100, 1000)?;
            Ok((200, json!({"results": items(user, top, state)})))
        }
        ("POST", "/memories") => {
            let before = state.memories.len();
            add(&call.body, ADD_OSS, state)?;
            let added = state.memories.iter().enumerate().skip(before);
            let added = added.map(
                |(n, (_, memory))| json!({"id": n.to_string(), "memory": memory, "event": "ADD"}),
            );
            Ok((200, json!({"results": added.collect::<Vec<Value>>()})))
        }
        ("POST", "/search") => {
            if call.body.pointer("/filters/AND").is_some() {
                return Err("the filters of a self-hosted server are names".to_owned());
            }
            let found = search(&call.body, SEARCH_OSS, state)?;
            Ok((200, json!({ "results": found })))
        }
        _ => Err(NOT_A_ROUTE.to_owned()),
    }
}

/// Stores the messages of a request.
fn add(body: &Value, fields: &[(&str, Type)], state: &mut State) -> Result<(), String> {
    let body = object(body, fields, &["messages"])?;
    let user = text(body, "user_id");
    if user.is_empty() {
        return Err("user_id is missing".to_owned());
    }
    for message in list(body, "messages") {
        let message = object(
            message,
            &[("role", Text), ("content", Text)],
            &["role", "content"],
        )?;
        one_of(text(message, "role"), &["user", "assistant"])?;
        let content = text(message, "content").to_owned();
        state.memories.push((user.to_owned(), content));
    }
    Ok(())
}

fn search(body: &Value, fields: &[(&str, Type)], state: &State) -> Result<Vec<Value>, String> {
    let body = object(body, fields, &["query", "filters"])?;
    let user = user_of(&body["filters"])?;
    let top = body.get("top_k").and_then(Value::as_u64).unwrap_or(10);
    Ok(items(&user, top, state))
}

fn items(user: &str, top: u64, state: &State) -> Vec<Value> {
    let found = state.texts_of(user).take(top as usize);
    let found = found.map(|(n, memory)| {
        json!({"id": n.to_string(), "memory": memory, "score": 0.5, "user_id": user,
            "created_at": "2026-01-31T12:00:00Z"})
    });
    found.collect()
}

/// The user that the filters name, alone or in a list.
fn user_of(filters: &Value) -> Result<String, String> {
    let names = [
        ("AND", List),
        ("user_id", Text),
        ("agent_id", Text),
        ("app_id", Text),
        ("run_id", Text),
    ];
    let filters = object(filters, &names, &[])?;
    let mut users = Vec::new();
    for one in list(filters, "AND") {
        let one = object(one, &names[1..], &[])?;
        users.push(text(one, "user_id"));
    }
    users.push(text(filters, "user_id"));
    let user = users.into_iter().find(|user| !user.is_empty());
    let user = user.ok_or("at least one entity id is required in the filters")?;
    Ok(user.to_owned())
}
