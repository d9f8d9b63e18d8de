//! Zep, version 2 of its API.

use serde_json::{Value, json};

use super::call::{Call, NOT_A_ROUTE};
use super::schema::Type::{Bool, List, Number, Object, Text, Whole};
use super::schema::{Type, list, object, one_of, text};
use super::{Answer, State};

const BASE: &str = "/api/v2";
const ROLES: [&str; 6] = ["norole", "system", "assistant", "user", "function", "tool"];
const SCOPES: [&str; 3] = ["edges", "nodes", "episodes"];
/// The most of each that every plan accepts.
const MESSAGES: usize = 30;
const MESSAGE_CHARS: usize = 2_500;
const QUERY_CHARS: usize = 400;
const FACTS: u64 = 50;
const CREATED: &str = "2026-01-31T12:00:00Z";

const USER: &[(&str, Type)] = &[
    ("user_id", Text),
    ("email", Text),
    ("first_name", Text),
    ("last_name", Text),
    ("metadata", Object),
    ("time_zone", Text),
    ("disable_default_ontology", Bool),
];
const THREAD: &[(&str, Type)] = &[("thread_id", Text), ("user_id", Text)];
const ADD: &[(&str, Type)] = &[
    ("messages", List),
    ("ignore_roles", List),
    ("return_context", Bool),
    ("strict_ontology", Bool),
];
const MESSAGE: &[(&str, Type)] = &[
    ("role", Text),
    ("content", Text),
    ("name", Text),
    ("created_at", Text),
    ("metadata", Object),
    ("uuid", Text),
    ("processed", Bool),
];
const SEARCH: &[(&str, Type)] = &[
    ("query", Text),
    ("user_id", Text),
    ("graph_id", Text),
    ("scope", Text),
    ("limit", Whole),
    ("reranker", Text),
    ("mmr_lambda", Number),
    ("max_characters", Whole),
    ("center_node_uuid", Text),
    ("bfs_origin_node_uuids", List),
    ("return_raw_results", Bool),
    ("search_filters", Object),
];

/// A text that begins like this is a fact that another one has replaced.
pub const FORMERLY: &str = "formerly ";

pub(super) fn answer(call: &Call, state: &mut State) -> Answer {
    let path = call.path.strip_prefix(BASE).unwrap_or("");
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    match (call.method.as_str(), parts.as_slice()) {
        ("GET", ["threads"]) => threads(call, state),
        ("POST", ["users"]) => add_user(&call.body, state),
        ("POST", ["threads"]) => add_thread(&call.body, state),
        ("POST", ["threads", thread, "messages"]) => add(thread, &call.body, state),
        ("POST", ["graph", "search"]) => search(&call.body, state),
        _ => Err(NOT_A_ROUTE.to_owned()),
    }
}

fn problem(status: u16, message: &str) -> Answer {
    Ok((status, json!({ "message": message })))
}

fn thread_json(thread: &str, user: &str) -> Value {
    json!({"thread_id": thread, "user_id": user, "uuid": thread, "created_at": CREATED})
}

fn threads(call: &Call, state: &State) -> Answer {
    call.only_query(&["page_number", "page_size", "order_by", "asc"])?;
    let size = call.number("page_size", 10, 1000)?;
    let all = state.threads.iter().take(size as usize);
    let all: Vec<Value> = all
        .map(|(thread, user)| thread_json(thread, user))
        .collect();
    let (listed, total) = (all.len(), state.threads.len());
    let body = json!({"threads": all, "response_count": listed, "total_count": total});
    Ok((200, body))
}

fn add_user(body: &Value, state: &mut State) -> Answer {
    let body = object(body, USER, &["user_id"])?;
    let user = text(body, "user_id").to_owned();
    match state.users.insert(user.clone()) {
        true => Ok((201, json!({"user_id": user, "created_at": CREATED}))),
        false => problem(400, "bad request: user already exists"),
    }
}

fn add_thread(body: &Value, state: &mut State) -> Answer {
    let body = object(body, THREAD, &["thread_id", "user_id"])?;
    let (thread, user) = (text(body, "thread_id"), text(body, "user_id"));
    if !state.users.contains(user) {
        return problem(404, "not found: user");
    }
    if state.threads.contains_key(thread) {
        return problem(400, "bad request: thread already exists");
    }
    state.threads.insert(thread.to_owned(), user.to_owned());
    Ok((201, thread_json(thread, user)))
}

fn add(thread: &str, body: &Value, state: &mut State) -> Answer {
    let body = object(body, ADD, &["messages"])?;
    let messages = list(body, "messages");
    if messages.is_empty() || messages.len() > MESSAGES {
        return Err(format!("{} messages in one request", messages.len()));
    }
    let mut texts = Vec::new();
    for message in messages {
        let message = object(message, MESSAGE, &["role", "content"])?;
        one_of(text(message, "role"), &ROLES)?;
        let content = text(message, "content");
        if content.chars().count() > MESSAGE_CHARS {
            return Err(format!(
                "a message has more than {MESSAGE_CHARS} characters"
            ));
        }
        texts.push(content.to_owned());
    }
    let Some(user) = state.threads.get(thread).cloned() else {
        return problem(404, "not found: thread");
    };
    let ids: Vec<String> = (0..texts.len()).map(|n| format!("m-{n}")).collect();
    let added = texts.into_iter().map(|text| (user.clone(), text));
    state.memories.extend(added);
    Ok((200, json!({ "message_uuids": ids })))
}

fn search(body: &Value, state: &State) -> Answer {
    let body = object(body, SEARCH, &["query"])?;
    if text(body, "query").chars().count() > QUERY_CHARS {
        return Err(format!("the query has more than {QUERY_CHARS} characters"));
    }
    if body.contains_key("user_id") == body.contains_key("graph_id") {
        return Err("exactly one of user_id and graph_id is required".to_owned());
    }
    let scope = body.get("scope").and_then(Value::as_str);
    one_of(scope.unwrap_or("edges"), &SCOPES)?;
    let limit = body.get("limit").and_then(Value::as_u64).unwrap_or(10);
    if !(1..=FACTS).contains(&limit) {
        return Err(format!("limit is not between 1 and {FACTS}"));
    }
    let user = text(body, "user_id");
    if !state.users.contains(user) {
        return problem(404, "not found: user");
    }
    let edges = state.texts_of(user).take(limit as usize).map(|(n, fact)| {
        let ended = fact.starts_with(FORMERLY).then_some(CREATED);
        json!({"uuid": format!("e-{n}"), "name": "SAID", "fact": fact, "created_at": CREATED,
            "source_node_uuid": "a", "target_node_uuid": "b", "invalid_at": ended})
    });
    Ok((200, json!({"edges": edges.collect::<Vec<Value>>()})))
}
