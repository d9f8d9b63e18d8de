//! Acontext, version 1 of its API, with learning spaces.

use serde_json::{Value, json};

use super::call::{Call, NOT_A_ROUTE};
use super::schema::Type::{Bool, Object, Text};
use super::schema::{Type, object, one_of, text};
use super::{Answer, State};

const BASE: &str = "/api/v1";
const FORMATS: [&str; 4] = ["acontext", "openai", "anthropic", "gemini"];
const CREATED: &str = "2026-01-31T12:00:00Z";

const SESSION: &[(&str, Type)] = &[
    ("user", Text),
    ("configs", Object),
    ("disable_task_tracking", Bool),
    ("use_uuid", Text),
];
const MESSAGE: &[(&str, Type)] = &[("blob", Object), ("format", Text), ("meta", Object)];
const BLOB: &[(&str, Type)] = &[("role", Text), ("content", Text)];
const SPACE: &[(&str, Type)] = &[("user", Text), ("meta", Object)];
const LEARN: &[(&str, Type)] = &[("session_id", Text)];

/// A learning space. It has one skill: of the words of its user, or one that a test gave.
#[derive(Debug, Default)]
pub(super) struct Space {
    user: String,
    meta: Value,
    sessions: Vec<String>,
    /// Name, description and instructions.
    skill: Option<[String; 3]>,
}

pub(super) fn add_space(state: &mut State, name: &str, about: &str, text: &str) -> String {
    state.spaces.push(Space {
        skill: Some([name, about, text].map(str::to_owned)),
        ..Space::default()
    });
    uuid(state.spaces.len() - 1)
}

/// The id of the space or of the skill with this number.
fn uuid(number: usize) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

fn is_uuid(text: &str) -> bool {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    let is_hex = |c: char| c == '-' || c.is_ascii_hexdigit();
    lengths == [8, 4, 4, 4, 12] && text.chars().all(is_hex)
}

fn number_of(id: &str, state: &State) -> Result<Option<usize>, String> {
    if !is_uuid(id) {
        return Err(format!("`{id}` is not a UUID"));
    }
    Ok((0..state.spaces.len()).find(|number| uuid(*number) == id))
}

pub(super) fn answer(call: &Call, state: &mut State) -> Answer {
    let path = call.path.strip_prefix(BASE).unwrap_or("");
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    match (call.method.as_str(), parts.as_slice()) {
        ("GET", ["ping"]) => Ok((200, json!({"code": 0, "msg": "pong", "data": null}))),
        ("GET", ["session"]) => sessions(call, state),
        ("POST", ["session"]) => add_session(&call.body, state),
        ("POST", ["session", id, "messages"]) => add_message(id, &call.body, state),
        ("GET", ["learning_spaces"]) => spaces(call, state),
        ("POST", ["learning_spaces"]) => make_space(&call.body, state),
        ("POST", ["learning_spaces", id, "learn"]) => learn(id, &call.body, state),
        ("GET", ["learning_spaces", id, "skills"]) => skills(id, state),
        ("GET", ["agent_skills", id, "file"]) => file(id, call, state),
        _ => Err(NOT_A_ROUTE.to_owned()),
    }
}

fn good(status: u16, data: Value) -> Answer {
    Ok((status, json!({"code": 0, "msg": "", "data": data})))
}

fn problem(status: u16, message: &str) -> Answer {
    Ok((
        status,
        json!({"code": status, "msg": message, "data": null}),
    ))
}

fn page(items: Vec<Value>) -> Answer {
    good(
        200,
        json!({"items": items, "next_cursor": "", "has_more": false}),
    )
}

fn session_json(id: &str) -> Value {
    json!({"id": id, "project_id": uuid(0), "user_id": null, "disable_task_tracking": false,
        "configs": {}, "created_at": CREATED, "updated_at": CREATED})
}

fn sessions(call: &Call, state: &State) -> Answer {
    call.only_query(&["user", "limit", "cursor", "time_desc", "filter_by_configs"])?;
    let limit = call.number("limit", 20, 200)?;
    let listed = state.threads.keys().take(limit as usize);
    page(listed.map(|id| session_json(id)).collect())
}

fn add_session(body: &Value, state: &mut State) -> Answer {
    let body = object(body, SESSION, &[])?;
    let id = match body.contains_key("use_uuid") {
        true => text(body, "use_uuid").to_owned(),
        false => uuid(900 + state.threads.len()),
    };
    if !is_uuid(&id) {
        return Err("use_uuid is not a UUID".to_owned());
    }
    if state.threads.contains_key(&id) {
        return problem(409, "session with this UUID already exists");
    }
    let user = text(body, "user").to_owned();
    state.threads.insert(id.clone(), user);
    good(201, session_json(&id))
}

fn add_message(session: &str, body: &Value, state: &mut State) -> Answer {
    let body = object(body, MESSAGE, &["blob", "format"])?;
    one_of(text(body, "format"), &FORMATS)?;
    let blob = object(&body["blob"], BLOB, &["role", "content"])?;
    let role = one_of(text(blob, "role"), &["user", "assistant"])?;
    let content = text(blob, "content");
    let Some(user) = state.threads.get(session).cloned() else {
        return problem(404, "session not found");
    };
    state.memories.push((user, content.to_owned()));
    let part = json!({"type": "text", "text": content});
    let message = json!({"id": uuid(0), "session_id": session, "parent_id": null, "role": role,
        "meta": {}, "parts": [part], "task_id": null,
        "session_task_process_status": "pending", "created_at": CREATED, "updated_at": CREATED});
    good(201, message)
}

fn space_json(number: usize, space: &Space) -> Value {
    json!({"id": uuid(number), "user_id": null, "meta": space.meta, "created_at": CREATED,
        "updated_at": CREATED})
}

fn spaces(call: &Call, state: &State) -> Answer {
    call.only_query(&["user", "limit", "cursor", "time_desc", "filter_by_meta"])?;
    let limit = call.number("limit", 20, 200)?;
    let meta = call.parameter("filter_by_meta").unwrap_or("{}");
    let meta: Value = serde_json::from_str(meta).map_err(|_| "filter_by_meta is not JSON")?;
    let meta = object(&meta, &[("source", Text)], &[])?.clone();
    let user = call.parameter("user");
    let listed = state.spaces.iter().enumerate().filter(|(_, space)| {
        let is_of_user = user.is_none_or(|user| space.user == user);
        is_of_user && meta.iter().all(|(name, value)| &space.meta[name] == value)
    });
    let listed = listed.map(|(number, space)| space_json(number, space));
    page(listed.take(limit as usize).collect())
}

fn make_space(body: &Value, state: &mut State) -> Answer {
    let body = object(body, SPACE, &[])?;
    let number = state.spaces.len();
    let space = Space {
        user: text(body, "user").to_owned(),
        meta: body.get("meta").cloned().unwrap_or_default(),
        ..Space::default()
    };
    let data = space_json(number, &space);
    state.spaces.push(space);
    good(201, data)
}

fn learn(id: &str, body: &Value, state: &mut State) -> Answer {
    let body = object(body, LEARN, &["session_id"])?;
    let session = text(body, "session_id").to_owned();
    let Some(number) = number_of(id, state)? else {
        return problem(404, "learning space not found");
    };
    if !state.threads.contains_key(&session) {
        return problem(404, "session not found");
    }
    let space = &mut state.spaces[number];
    if space.sessions.contains(&session) {
        return problem(409, "session already learned by this space");
    }
    space.sessions.push(session.clone());
    let record = json!({"id": uuid(0), "learning_space_id": id, "session_id": session,
        "status": "pending", "created_at": CREATED, "updated_at": CREATED});
    good(201, record)
}

/// Name, description and instructions of a space's skill, if it has learnt one.
fn skill_of(number: usize, state: &State) -> Option<[String; 3]> {
    let space = state.spaces.get(number)?;
    if space.skill.is_some() || space.sessions.is_empty() {
        return space.skill.clone();
    }
    let texts: Vec<&str> = state.texts_of(&space.user).map(|(_, text)| text).collect();
    let about = "Facts about drinks such as tea, and snacks";
    Some([
        format!("learnt-{number}"),
        about.to_owned(),
        texts.join("\n"),
    ])
}

fn skills(id: &str, state: &State) -> Answer {
    let Some(number) = number_of(id, state)? else {
        return problem(404, "learning space not found");
    };
    let listed = skill_of(number, state).map(|[name, description, _]| {
        json!({"id": uuid(number), "user_id": null, "name": name, "description": description,
            "disk_id": uuid(0), "file_index": [{"path": "SKILL.md", "mime": "text/markdown"}],
            "meta": {}, "created_at": CREATED, "updated_at": CREATED})
    });
    good(200, listed.into_iter().collect::<Vec<Value>>().into())
}

fn file(id: &str, call: &Call, state: &State) -> Answer {
    call.only_query(&["file_path", "expire"])?;
    let path = call.parameter("file_path").ok_or("file_path is missing")?;
    let number = number_of(id, state)?;
    let skill = number.and_then(|number| skill_of(number, state));
    match skill {
        Some([_, _, text]) if path == "SKILL.md" && !text.is_empty() => {
            let content = json!({"type": "text", "raw": text});
            let file = json!({"path": path, "mime": "text/markdown", "content": content});
            good(200, file)
        }
        _ => problem(404, "file not found"),
    }
}
