//! Messages as other programs write them: in our own format, or as the APIs of OpenAI and Anthropic
//! have them. The format is lenient: unknown fields are ignored, null blocks are dropped, and a
//! message without a role is the user's.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use mnemon_core::format::{Anthropic, OpenAi};
use mnemon_core::{Block, Ctx, Invalid, Message, Role, Time};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The messages of a JSON text: one, a list of them, or the body of a request with `messages`.
pub fn messages_of(ctx: &Ctx, json: Value) -> Result<Vec<Message>, Invalid> {
    let (system, items) = match json {
        Value::Array(items) => (None, items),
        Value::Object(mut body) if body.get("messages").is_some_and(Value::is_array) => {
            let system = body.remove("system").filter(|system| !system.is_null());
            match body.remove("messages") {
                Some(Value::Array(items)) => (system, items),
                _ => (system, Vec::new()),
            }
        }
        one => return Ok(vec![message_of(ctx, one)?]),
    };
    let prompt = system.map(|system| message_of(ctx, json!({"role": "system", "content": system})));
    let messages = items.into_iter().enumerate().map(|(number, item)| {
        let read = message_of(ctx, item);
        read.map_err(|wrong| {
            let part = wrong.field.strip_prefix("message").unwrap_or_default();
            Invalid::new(format!("message[{number}]{part}"), wrong.what)
        })
    });
    let mut messages = prompt
        .into_iter()
        .chain(messages)
        .collect::<Result<Vec<_>, _>>()?;
    name_results(&mut messages);
    Ok(messages)
}

/// A foreign result has only the id of its call: the name of the tool is taken from the call.
fn name_results(messages: &mut [Message]) {
    let mut called: Vec<(String, String)> = Vec::new();
    for block in messages.iter_mut().flat_map(|message| &mut message.content) {
        match block {
            Block::ToolUse { id, name, .. } => called.push((id.clone(), name.clone())),
            Block::ToolResult { id, name, .. } if name.is_empty() => {
                let call = called.iter().rev().find(|(called, _)| called == id);
                *name = call.map_or_else(String::new, |(_, name)| name.clone());
            }
            _ => {}
        }
    }
}

/// One message. A NUL character in it is replaced, which the notices tell: no text may hold one.
pub fn message_of(ctx: &Ctx, mut json: Value) -> Result<Message, Invalid> {
    let wrong = |what: String| Invalid::new("message", what);
    if replace_nul(&mut json) {
        ctx.notices
            .add("A NUL character in a message was replaced by U+FFFD.");
    }
    let Value::Object(mut fields) = json else {
        let what = "is not an object with `role` and `content`";
        return Err(wrong(what.to_owned()));
    };
    if !fields.contains_key("role") && !fields.contains_key("content") {
        return Err(wrong("has neither `role` nor `content`".to_owned()));
    }
    fields.retain(|_, value| !value.is_null());
    if let Some(time) = TIME_FIELDS.iter().find_map(|name| fields.remove(*name)) {
        fields.insert("timestamp".to_owned(), json!(timestamp(&time)?));
    }
    if let Some(role) = fields.get("role") {
        check_role(role)?;
    }
    fields.entry("id").or_insert_with(|| json!(""));
    let read = match is_openai(&fields) {
        true => from_openai(fields),
        false => native(fields),
    };
    let message = read.map_err(|error| wrong(format!("is not a message: {error}")))?;
    let is_empty = |block: &Block| matches!(block, Block::Text { text } if text.trim().is_empty());
    if message.content.iter().all(is_empty) {
        return Err(wrong(
            "has no content: it needs a text, a block, a tool call or a tool result".to_owned(),
        ));
    }
    Ok(message)
}

/// Roles of messages, in our format and in that of OpenAI.
const ROLES: &[&str] = &["user", "assistant", "system", "tool", "developer"];

fn check_role(role: &Value) -> Result<(), Invalid> {
    let word = role.as_str().unwrap_or_default().to_lowercase();
    match ROLES.contains(&word.as_str()) {
        true => Ok(()),
        false => {
            let what = format!("must be one of: {}", ROLES.join(", "));
            Err(Invalid::new("message.role", what))
        }
    }
}

/// The fields that may hold the time of a message.
const TIME_FIELDS: [&str; 4] = ["timestamp", "created", "created_at", "ts"];

/// The time of a message with its offset: a text, or a number of seconds or milliseconds since 1970.
fn timestamp(time: &Value) -> Result<String, Invalid> {
    let written = match time {
        Value::String(text) if text.trim().parse::<Time>().is_ok() => Some(text.clone()),
        Value::String(text) => with_offset(text.trim()),
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or_default();
            // As seconds this would be the year 5138.
            let ms = if number < 1e11 {
                number * 1000.0
            } else {
                number
            };
            let at = Time::from_millis(ms as i64).ok();
            at.map(|at| at.to_string())
        }
        _ => None,
    };
    written.ok_or_else(|| {
        let what =
            "is not a time; write 2026-01-31T12:00:00Z, \"2026-01-31 12:00\" or seconds since 1970";
        Invalid::new("message", format!("its timestamp {time} {what}"))
    })
}

/// A time without an offset is meant as the reader's clock shows it.
fn with_offset(text: &str) -> Option<String> {
    let civil: DateTime = text.parse().ok()?;
    let at = civil.to_zoned(TimeZone::system()).ok()?;
    let at = at.timestamp().display_with_offset(at.offset());
    Some(at.to_string())
}

/// Whether the message has fields or a role that only OpenAI's format has.
fn is_openai(fields: &Map<String, Value>) -> bool {
    let calls = fields.get("tool_calls").and_then(Value::as_array);
    calls.is_some_and(|calls| !calls.is_empty())
        || fields.contains_key("tool_call_id")
        || fields.get("role") == Some(&json!("developer"))
}

fn from_openai(mut fields: Map<String, Value>) -> Result<Message, Invalid> {
    let role = match fields.get("role").and_then(Value::as_str) {
        Some(role) => role.to_lowercase(),
        None if fields.contains_key("tool_call_id") => "tool".to_owned(),
        None => "assistant".to_owned(),
    };
    fields.insert("role".to_owned(), json!(role));
    let read = one(OpenAi::read(
        &[Value::Object(fields.clone())],
        &mut String::new,
    ))?;
    fields.remove("content");
    fields.remove("role");
    Ok(Message {
        role: read.role,
        content: read.content,
        ..native(fields)?
    })
}

fn native(mut fields: Map<String, Value>) -> Result<Message, Invalid> {
    if let Some(role) = fields.get("role").and_then(Value::as_str) {
        let role = role.to_uppercase();
        fields.insert("role".to_owned(), json!(role));
    }
    let content = fields.remove("content");
    let of_anthropic = |block: &Value| block.get("tool_use_id").is_some();
    let results = content.as_ref().and_then(Value::as_array);
    let only_results = results.is_some_and(|blocks| blocks.iter().all(of_anthropic));
    if let Some(content) = content {
        fields.insert("content".to_owned(), blocks(content)?);
    }
    let mut message = Message::deserialize(Value::Object(fields))
        .map_err(|error| Invalid::new("message", error.to_string()))?;
    // Anthropic has no role for tools: their results are sent by the user.
    if only_results && message.role == Role::User {
        message.role = Role::Tool;
    }
    Ok(message)
}

/// A text is a text block, and a block alone is a list of one.
fn blocks(content: Value) -> Result<Value, Invalid> {
    match content {
        Value::String(text) => Ok(json!([{"type": "text", "text": text}])),
        Value::Array(items) => {
            let items = items.into_iter().filter(|item| !item.is_null());
            items.map(block).collect()
        }
        object @ Value::Object(_) => Ok(json!([block(object)?])),
        other => Ok(other),
    }
}

/// A block in our format. The output of a tool is content, too.
fn block(block: Value) -> Result<Value, Invalid> {
    let Value::Object(mut fields) = block else {
        return Ok(block);
    };
    let has = |name: &str| fields.get(name).is_some_and(|value| !value.is_null());
    let read = match fields.get("type").and_then(Value::as_str) {
        Some("image_url" | "input_audio" | "refusal") => {
            let message = json!({"role": "user", "content": [fields]});
            OpenAi::read(&[message], &mut String::new)
        }
        Some("tool_result") if !has("output") && (has("content") || has("tool_use_id")) => {
            let id = fields.get("id").filter(|_| !has("tool_use_id")).cloned();
            fields.extend(id.map(|id| ("tool_use_id".to_owned(), id)));
            from_anthropic(&fields)
        }
        Some("redacted_thinking") => from_anthropic(&fields),
        Some("thinking") if has("signature") => from_anthropic(&fields),
        Some("tool_result") => {
            if let Some(output) = fields.remove("output") {
                fields.insert("output".to_owned(), blocks(output)?);
            }
            return Ok(Value::Object(fields));
        }
        _ => return Ok(Value::Object(fields)),
    };
    let block = one(read)?.content.into_iter().next();
    serde_json::to_value(block).map_err(|error| Invalid::new("content", error.to_string()))
}

fn from_anthropic(block: &Map<String, Value>) -> Result<Vec<Message>, Invalid> {
    let message = json!({"role": "user", "content": [block]});
    Anthropic::read(None, &[message], &mut String::new)
}

/// The message that was read.
fn one(read: Result<Vec<Message>, Invalid>) -> Result<Message, Invalid> {
    let first = read?.into_iter().next();
    first.ok_or_else(|| Invalid::new("message", "is empty"))
}

/// Whether there was one.
fn replace_nul(json: &mut Value) -> bool {
    match json {
        Value::String(text) if text.contains('\0') => {
            *text = text.replace('\0', "\u{fffd}");
            true
        }
        Value::Array(items) => items
            .iter_mut()
            .fold(false, |any, item| replace_nul(item) | any),
        Value::Object(fields) => replace_nul_in(fields),
        _ => false,
    }
}

fn replace_nul_in(fields: &mut Map<String, Value>) -> bool {
    let values = fields.values_mut();
    let mut any = values.fold(false, |any, value| replace_nul(value) | any);
    if fields.keys().any(|key| key.contains('\0')) {
        let clean = std::mem::take(fields).into_iter();
        fields.extend(clean.map(|(key, value)| (key.replace('\0', "\u{fffd}"), value)));
        any = true;
    }
    any
}
