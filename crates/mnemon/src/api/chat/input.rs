//! Messages as other programs write them. The format is lenient: unknown fields are ignored, null
//! blocks are dropped, and a message without a role is the user's.

use mnemon_core::{Ctx, Invalid, Message};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The messages of a JSON text: one, or a list of them.
pub fn messages_of(ctx: &Ctx, json: Value) -> Result<Vec<Message>, Invalid> {
    match json {
        Value::Array(items) => {
            let messages = items.into_iter().enumerate().map(|(number, item)| {
                let read = message_of(ctx, item);
                read.map_err(|error| Invalid::new(format!("message {}", number + 1), error.what))
            });
            messages.collect()
        }
        one => Ok(vec![message_of(ctx, one)?]),
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
    fields.entry("id").or_insert_with(|| json!(""));
    if let Some(role) = fields.get("role").and_then(Value::as_str) {
        let role = role.to_uppercase();
        fields.insert("role".to_owned(), json!(role));
    }
    if let Some(content) = fields.remove("content") {
        fields.insert("content".to_owned(), blocks(content));
    }
    Message::deserialize(Value::Object(fields))
        .map_err(|error| wrong(format!("is not a message: {error}")))
}

/// A text is a text block, and a block alone is a list of one.
fn blocks(content: Value) -> Value {
    match content {
        Value::String(text) => json!([{"type": "text", "text": text}]),
        Value::Array(items) => {
            let items = items.into_iter().filter(|item| !item.is_null());
            items.map(block).collect()
        }
        object @ Value::Object(_) => json!([block(object)]),
        other => other,
    }
}

/// The output of a tool is content, too.
fn block(block: Value) -> Value {
    let is_result = block.get("type") == Some(&json!("tool_result"));
    match block {
        Value::Object(mut fields) if is_result => {
            if let Some(output) = fields.remove("output") {
                fields.insert("output".to_owned(), blocks(output));
            }
            Value::Object(fields)
        }
        other => other,
    }
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
