//! Checks of JSON against a published form.

use serde_json::{Map, Value};

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Text,
    Whole,
    Number,
    Bool,
    Object,
    List,
}

impl Type {
    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Text => value.as_str().is_some_and(|text| !text.is_empty()),
            Self::Whole => value.is_u64(),
            Self::Number => value.is_number(),
            Self::Bool => value.is_boolean(),
            Self::Object => value.is_object(),
            Self::List => value.is_array(),
        }
    }
}

/// The object, if it has no other fields than these, each of its type, and all that are required.
pub(super) fn object<'v>(
    value: &'v Value,
    fields: &[(&str, Type)],
    required: &[&str],
) -> Result<&'v Map<String, Value>, String> {
    let object = value.as_object().ok_or("it is not an object")?;
    for (name, value) in object {
        let field = fields.iter().find(|(known, _)| known == name);
        let (_, kind) = field.ok_or_else(|| format!("unknown field {name}"))?;
        if !kind.fits(value) {
            return Err(format!("{name} is not of type {kind:?}"));
        }
    }
    match required.iter().find(|name| !object.contains_key(**name)) {
        Some(name) => Err(format!("{name} is missing")),
        None => Ok(object),
    }
}

/// A text that was checked before.
pub(super) fn text<'v>(object: &'v Map<String, Value>, field: &str) -> &'v str {
    object
        .get(field)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// A list that was checked before.
pub(super) fn list<'v>(object: &'v Map<String, Value>, field: &str) -> &'v [Value] {
    let list = object.get(field).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

/// The word, if it is one of these.
pub(super) fn one_of<'v>(word: &'v str, known: &[&str]) -> Result<&'v str, String> {
    match known.contains(&word) {
        true => Ok(word),
        false => Err(format!("`{word}` is not one of {}", known.join(", "))),
    }
}
