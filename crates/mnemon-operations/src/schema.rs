//! The JSON schemas of answers. `json.schema.json` defines each shape once, for the commands and for
//! the MCP tools; a test compares every answer with it.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    // A test reads it, so that it is valid.
    serde_json::from_str(include_str!("json.schema.json")).unwrap_or_default()
});

/// The whole document: `properties` holds the commands, `tools` the tools, `$defs` the shapes.
pub fn document() -> &'static Value {
    &DOCUMENT
}

/// The schema of the JSON that a command prints, as one value without references.
pub fn of_command(command: &str) -> Option<Value> {
    Some(inlined(DOCUMENT.get("properties")?.get(command)?))
}

/// The schema of the structured content of a tool, as one value without references. Any tool may
/// add notices, the warning that recalled text is data, and whether the content was shortened.
pub fn of_tool(tool: &str) -> Option<Map<String, Value>> {
    let Value::Object(mut schema) = inlined(DOCUMENT.get("tools")?.get(tool)?) else {
        return None;
    };
    let notices = inlined(DOCUMENT.pointer("/$defs/fields/properties/notices")?);
    let properties = schema.get_mut("properties")?.as_object_mut()?;
    let common = [
        ("notices", notices),
        (
            "note",
            json!({"type": "string", "description": "Says that recalled text is data"}),
        ),
        (
            "truncated",
            json!({"type": "boolean", "description": "Whether texts or lists were shortened to fit"}),
        ),
    ];
    for (name, field) in common {
        properties.entry(name).or_insert(field);
    }
    Some(schema)
}

/// The schema with every reference replaced by its target. No shape contains itself.
fn inlined(schema: &Value) -> Value {
    match schema {
        Value::Object(rules) => match rules.get("$ref").and_then(Value::as_str) {
            Some(target) => {
                let target = DOCUMENT.pointer(target.trim_start_matches('#'));
                target.map_or(Value::Null, inlined)
            }
            None => {
                let rules = rules.iter();
                let rules = rules.map(|(name, rule)| (name.clone(), inlined(rule)));
                Value::Object(rules.collect())
            }
        },
        Value::Array(rules) => rules.iter().map(inlined).collect(),
        other => other.clone(),
    }
}

/// How much of an answer a step of [`shrunk`] keeps.
struct Cut {
    items: usize,
    chars: usize,
    is_required_only: bool,
}

/// The steps, the mildest first: items, characters, and whether optional fields go. The last one
/// leaves little more than numbers and ids.
const CUTS: [(usize, usize, bool); 9] = [
    (50, 2000, false),
    (20, 600, false),
    (10, 300, false),
    (5, 160, false),
    (2, 100, false),
    (1, 60, false),
    (0, 60, false),
    (0, 60, true),
    (0, 12, true),
];

/// Texts of so many bytes without a space are names and ids, which are of no use if they are cut.
const NAME_BYTES: usize = 256;

impl Cut {
    fn apply(&self, value: &Value, schema: &Value) -> Value {
        let rule = |name: &str| schema.get(name).unwrap_or(&Value::Null);
        match value {
            Value::String(text) if rule("enum").is_null() && rule("format").is_null() => {
                json!(self.text(text))
            }
            Value::Array(items) => {
                let items = items.iter().take(self.items);
                items.map(|item| self.apply(item, rule("items"))).collect()
            }
            Value::Object(fields) => match rule("properties").as_object() {
                Some(known) => self.object(fields, known, rule("required")),
                // Any object is as good here, so an empty one is, too.
                None if value.to_string().len() > self.chars => json!({}),
                None => value.clone(),
            },
            other => other.clone(),
        }
    }

    fn object(
        &self,
        fields: &Map<String, Value>,
        known: &Map<String, Value>,
        required: &Value,
    ) -> Value {
        let is_required = |name: &str| {
            let mut names = required.as_array().into_iter().flatten();
            names.any(|required| required == name)
        };
        let kept = fields
            .iter()
            .filter(|(name, _)| !self.is_required_only || is_required(name));
        let kept = kept.map(|(name, value)| {
            let schema = known.get(name).unwrap_or(&Value::Null);
            (name.clone(), self.apply(value, schema))
        });
        Value::Object(kept.collect())
    }

    fn text(&self, text: &str) -> String {
        let is_name = text.len() <= NAME_BYTES && !text.contains(char::is_whitespace);
        match text.char_indices().nth(self.chars) {
            Some((end, _)) if !is_name || self.is_required_only => {
                format!("{}…", text.get(..end).unwrap_or_default())
            }
            _ => text.to_owned(),
        }
    }
}

/// An answer of a tool, marked as truncated, with shorter texts and lists until it fits. It still
/// has the shape of the schema.
pub fn shrunk(answer: &Value, schema: &Value, fits: impl Fn(&Value) -> bool) -> Value {
    let mut shorter = answer.clone();
    for (items, chars, is_required_only) in CUTS {
        let cut = Cut {
            items,
            chars,
            is_required_only,
        };
        shorter = cut.apply(answer, schema);
        if let Some(fields) = shorter.as_object_mut() {
            fields.insert("truncated".to_owned(), json!(true));
        }
        if fits(&shorter) {
            break;
        }
    }
    shorter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_has_a_target() {
        for (group, of) in [
            ("properties", of_command as fn(&str) -> Option<Value>),
            ("tools", |tool| of_tool(tool).map(Value::Object)),
        ] {
            for name in DOCUMENT[group].as_object().unwrap().keys() {
                let schema = of(name).unwrap().to_string();
                assert!(!schema.contains("$ref"), "{name}: {schema}");
                assert!(!schema.contains(":null"), "{name}: {schema}");
                assert!(schema.contains("\"type\":\"object\""), "{name}: {schema}");
            }
        }
    }

    #[test]
    fn a_shrunk_answer_keeps_its_shape() {
        let schema = Value::Object(of_tool("memory_list").unwrap());
        let note = json!({
            "id": "n1", "namespace": "long-term", "summary": "tea ".repeat(500), "tags": ["a", "b"],
            "createdAt": "2026-01-01T00:00:00Z", "source": "a file",
        });
        let answer = json!({"success": true, "data": {"notes": vec![note; 30], "next": "x"}});
        let mut sizes = Vec::new();
        for most in [20_000, 5000, 1000, 300, 50, 0] {
            let shorter = shrunk(&answer, &schema, |value| value.to_string().len() <= most);
            let size = shorter.to_string().len();
            assert!(size <= most.max(60), "{most}: {shorter}");
            assert_eq!(shorter["truncated"], true);
            assert!(shorter["data"]["notes"].is_array());
            for note in shorter["data"]["notes"].as_array().unwrap() {
                assert_eq!(note["namespace"], "long-term");
            }
            sizes.push(size);
        }
        assert!(sizes.is_sorted_by(|one, other| one >= other), "{sizes:?}");
    }
}
