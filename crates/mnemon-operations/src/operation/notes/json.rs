//! Notes in our JSON: fields have the names that they have with every other operation
//! (docs/json.md). The engine, and so MCP, has the names of the notes document.

use mnemon_engine::notes::{FoundNotes, NoteView};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::Error;

const NAMES: &[(&str, &str)] = &[
    ("contentLength", "content_length"),
    ("contentPreview", "content_preview"),
    ("createdAt", "created"),
    ("longTerm", "long_term"),
    ("nearDuplicate", "near_duplicate"),
    ("nextOffset", "next_offset"),
    ("notStored", "not_stored"),
    ("shortTerm", "short_term"),
];

/// The answer without its sentence for models.
pub(crate) fn to_json(answer: &impl Serialize) -> Result<Value, Error> {
    let mut answer = ours(serde_json::to_value(answer).map_err(Error::no_json)?);
    if let Some(fields) = answer.as_object_mut() {
        fields.remove("message");
    }
    Ok(answer)
}

pub(crate) fn from_json<T: DeserializeOwned>(mut json: Value) -> serde_json::Result<T> {
    if let Some(fields) = json.as_object_mut() {
        let cleaned = fields.get("cleaned").and_then(Value::as_u64);
        let message = cleaned.map(|count| format!("Cleaned up {count} expired entries."));
        let message = json!(message.unwrap_or_default());
        fields.entry("message").or_insert(message);
    }
    serde_json::from_value(engines(json))
}

/// Hits have their score as a number.
pub(crate) mod hits {
    use super::*;

    pub(crate) fn to_json(found: &FoundNotes) -> Result<Value, Error> {
        let mut hits = Vec::new();
        for note in &found.results {
            let mut hit = super::to_json(note)?;
            if let (Some(fields), Some(score)) = (hit.as_object_mut(), note.exact_score) {
                fields.insert("score".to_owned(), json!(score));
            }
            hits.push(hit);
        }
        Ok(json!({ "hits": hits }))
    }

    pub(crate) fn from_json(mut json: Value) -> serde_json::Result<FoundNotes> {
        let mut results = Vec::new();
        let hits = json.get_mut("hits").and_then(Value::as_array_mut);
        for hit in hits.into_iter().flatten() {
            let score = hit.as_object_mut().and_then(|hit| hit.remove("score"));
            let view: NoteView = serde_json::from_value(engines(hit.take()))?;
            results.push(match score.and_then(|score| score.as_f64()) {
                Some(score) => view.scored(score),
                None => view,
            });
        }
        Ok(FoundNotes {
            found: !results.is_empty(),
            results,
            total: None,
            query: String::new(),
            message: None,
        })
    }
}

fn ours(value: Value) -> Value {
    renamed(value, &|name| {
        NAMES
            .iter()
            .find(|(engine, _)| *engine == name)
            .map(|pair| pair.1)
    })
}

fn engines(value: Value) -> Value {
    renamed(value, &|name| {
        NAMES
            .iter()
            .find(|(_, ours)| *ours == name)
            .map(|pair| pair.0)
    })
}

fn renamed(value: Value, name: &dyn Fn(&str) -> Option<&'static str>) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(key, value)| {
                let key = name(&key).map_or(key, str::to_owned);
                (key, renamed(value, name))
            });
            Value::Object(fields.collect::<Map<_, _>>())
        }
        Value::Array(items) => items.into_iter().map(|item| renamed(item, name)).collect(),
        value => value,
    }
}
