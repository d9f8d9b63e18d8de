//! Notes in the JSON of the command line: fields have the names that they have with every other
//! command (docs/json.md). The engine, and so MCP, has the names of the notes document.

use mnemon_engine::notes::FoundNotes;
use serde::Serialize;
use serde_json::{Map, Value, json};

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
pub(super) fn answer(answer: &impl Serialize) -> Value {
    let mut answer = renamed(json!(answer));
    if let Some(fields) = answer.as_object_mut() {
        fields.remove("message");
    }
    answer
}

pub(super) fn hits(found: &FoundNotes) -> Value {
    let hits = found.results.iter().map(|note| {
        let mut hit = renamed(json!(note));
        if let (Some(fields), Some(score)) = (hit.as_object_mut(), note.exact_score) {
            fields.insert("score".to_owned(), json!(score));
        }
        hit
    });
    json!({ "hits": hits.collect::<Vec<_>>() })
}

fn renamed(value: Value) -> Value {
    let name = |name: String| {
        let known = NAMES.iter().find(|(other, _)| *other == name);
        known.map_or(name, |(_, ours)| (*ours).to_owned())
    };
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter();
            let fields = fields.map(|(key, value)| (name(key), renamed(value)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        Value::Array(items) => items.into_iter().map(renamed).collect(),
        value => value,
    }
}
