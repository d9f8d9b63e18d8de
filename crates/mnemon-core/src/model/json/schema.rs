//! A small part of JSON Schema, enough to keep a profile in shape.
//!
//! Known: `type`, `enum`, `const`, `properties`, `required`, `additionalProperties`,
//! `maxProperties`, `items`, `minItems`, `maxItems`, `minLength`, `maxLength`, `minimum`, `maximum`;
//! `$schema`, `$id`, `title`, `description`, `default` and `examples` say nothing about what is
//! valid. Any other word is refused when the schema is read: a rule that is not checked must not
//! look as if it were.

use serde_json::{Map, Value};

use crate::error::Invalid;
use crate::model::limits;

/// Words that are checked.
const RULES: &str = "\
    type, enum, const, properties, required, additionalProperties, maxProperties, items, \
    minItems, maxItems, minLength, maxLength, minimum, maximum";
/// Words that only tell.
const REMARKS: &str = "$schema, $id, title, description, default, examples";
const TYPES: [&str; 7] = [
    "null", "boolean", "object", "array", "number", "integer", "string",
];

/// A schema whose every rule is understood.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema(Value);

impl Schema {
    /// Reads a schema; the first word in it that is not understood is an error.
    pub fn read(schema: Value) -> Result<Self, Invalid> {
        check_schema("schema", &schema, 1)?;
        Ok(Self(schema))
    }

    /// The schema as it was written.
    pub fn as_json(&self) -> &Value {
        &self.0
    }

    /// Whether the value fits, or where it does not.
    pub fn check(&self, field: &str, value: &Value) -> Result<(), Invalid> {
        check(field, &self.0, value)
    }
}

fn check_schema(path: &str, schema: &Value, depth: usize) -> Result<(), Invalid> {
    let wrong = |what: String| Err(Invalid::new(path, what));
    if depth > limits::JSON_DEPTH {
        return wrong(format!(
            "is nested deeper than {} levels",
            limits::JSON_DEPTH
        ));
    }
    let rules = match schema {
        Value::Bool(_) => return Ok(()),
        Value::Object(rules) => rules,
        _ => return wrong("must be an object, true or false".to_owned()),
    };
    for (word, rule) in rules {
        let at = format!("{path}.{word}");
        if REMARKS.split(", ").any(|known| known == word) {
            continue;
        }
        if !RULES.split(", ").any(|known| known == word) {
            return wrong(format!(
                "`{}` is not a supported keyword; the keywords are: {RULES}",
                word.escape_debug()
            ));
        }
        check_rule(&at, word, rule, depth)?;
    }
    Ok(())
}

fn check_rule(at: &str, word: &str, rule: &Value, depth: usize) -> Result<(), Invalid> {
    let wrong = |what: &str| Err(Invalid::new(at, what));
    match word {
        "type" => {
            let named = names(rule);
            let known = |name: &&str| TYPES.contains(name);
            match named {
                Some(named) if !named.is_empty() && named.iter().all(known) => Ok(()),
                _ => Err(Invalid::new(
                    at,
                    format!("must be one or several of: {}", TYPES.join(", ")),
                )),
            }
        }
        "enum" if !rule.is_array() => wrong("must be a list of values"),
        "required" => match rule.as_array() {
            Some(list) if list.iter().all(Value::is_string) => Ok(()),
            _ => wrong("must be a list of names"),
        },
        "properties" => match rule.as_object() {
            Some(members) => members.iter().try_for_each(|(name, inner)| {
                check_schema(&format!("{at}.{name}"), inner, depth + 1)
            }),
            None => wrong("must be an object of schemas"),
        },
        "items" | "additionalProperties" => check_schema(at, rule, depth + 1),
        "minimum" | "maximum" if !rule.is_number() => wrong("must be a number"),
        "maxProperties" | "minItems" | "maxItems" | "minLength" | "maxLength" if !rule.is_u64() => {
            wrong("must be a whole number, 0 or more")
        }
        _ => Ok(()),
    }
}

/// One name, or a list of names.
fn names(rule: &Value) -> Option<Vec<&str>> {
    match rule {
        Value::String(name) => Some(vec![name]),
        Value::Array(list) => list.iter().map(Value::as_str).collect(),
        _ => None,
    }
}

fn check(field: &str, schema: &Value, value: &Value) -> Result<(), Invalid> {
    let wrong = |what: String| Err(Invalid::new(field, what));
    let rules = match schema {
        Value::Bool(false) => return wrong("is not allowed by the schema".to_owned()),
        Value::Object(rules) => rules,
        _ => return Ok(()),
    };
    if let Some(named) = rules.get("type").and_then(names)
        && !named.iter().any(|name| is_of(name, value))
    {
        return wrong(format!("must be of type {}", named.join(" or ")));
    }
    if let Some(Value::Array(allowed)) = rules.get("enum")
        && !allowed.contains(value)
    {
        let allowed: Vec<String> = allowed.iter().map(Value::to_string).collect();
        return wrong(format!("must be one of: {}", allowed.join(", ")));
    }
    if let Some(only) = rules.get("const")
        && only != value
    {
        return wrong(format!("must be {only}"));
    }
    check_size(field, rules, value)?;
    match value {
        Value::Object(members) => check_members(field, rules, members),
        Value::Array(items) => match rules.get("items") {
            Some(inner) => items
                .iter()
                .enumerate()
                .try_for_each(|(n, item)| check(&format!("{field}[{n}]"), inner, item)),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

fn is_of(name: &str, value: &Value) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        // 3.0 is a whole number, however it is written.
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => false,
    }
}

/// How long or how large it may be.
fn check_size(field: &str, rules: &Map<String, Value>, value: &Value) -> Result<(), Invalid> {
    let number = |word: &str| rules.get(word).and_then(Value::as_f64);
    let bounds = match value {
        Value::Number(number) => Some((number.as_f64(), "minimum", "maximum", "is")),
        Value::String(text) => {
            let chars = text.chars().count() as f64;
            Some((Some(chars), "minLength", "maxLength", "has a length of"))
        }
        Value::Array(items) => {
            let count = items.len() as f64;
            Some((Some(count), "minItems", "maxItems", "has a length of"))
        }
        Value::Object(members) => {
            let count = members.len() as f64;
            Some((Some(count), "", "maxProperties", "has a size of"))
        }
        _ => None,
    };
    let Some((Some(size), least, most, is)) = bounds else {
        return Ok(());
    };
    if let Some(least) = number(least).filter(|least| size < *least) {
        let what = format!("{is} {size}, at least {least} is needed");
        return Err(Invalid::new(field, what));
    }
    if let Some(most) = number(most).filter(|most| size > *most) {
        let what = format!("{is} {size}, at most {most} is allowed");
        return Err(Invalid::new(field, what));
    }
    Ok(())
}

fn check_members(
    field: &str,
    rules: &Map<String, Value>,
    members: &Map<String, Value>,
) -> Result<(), Invalid> {
    let required = rules.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        if !members.contains_key(name) {
            let what = "is missing; the schema requires it";
            return Err(Invalid::new(format!("{field}.{name}"), what));
        }
    }
    let known = rules.get("properties").and_then(Value::as_object);
    for (name, member) in members {
        let inner = known.and_then(|known| known.get(name));
        let inner = inner.or_else(|| rules.get("additionalProperties"));
        if let Some(inner) = inner {
            check(&format!("{field}.{name}"), inner, member)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn profile() -> Schema {
        Schema::read(json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "required": ["name"],
            "additionalProperties": false,
            "maxProperties": 5,
            "properties": {
                "name": {"type": "string", "minLength": 1, "maxLength": 5},
                "age": {"type": ["integer", "null"], "minimum": 0, "maximum": 150},
                "style": {"enum": ["brief", "long"]},
                "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2, "minItems": 1},
                "v": {"const": 1},
                "free": {"type": "object", "additionalProperties": {"type": "number"}},
            },
        }))
        .unwrap()
    }

    #[test]
    fn what_fits_passes() {
        for good in [
            json!({"name": "Ann"}),
            json!({"name": "Ann", "age": 3.0, "style": "brief", "tags": ["a"], "v": 1}),
            json!({"name": "Ễnh", "age": null, "free": {"x": 1.5}}),
        ] {
            profile().check("profile", &good).unwrap();
        }
    }

    #[test]
    fn what_does_not_fit_is_named_with_its_place() {
        let cases = [
            r#"[] => profile: must be of type object"#,
            r#"{} => profile.name: is missing"#,
            r#"{"name": ""} => profile.name: has a length of 0"#,
            r#"{"name": "Annabell"} => profile.name: has a length of 8"#,
            r#"{"name": "A", "age": 1.5} => profile.age: must be of type integer or null"#,
            r#"{"name": "A", "age": -1} => profile.age: is -1, at least 0"#,
            r#"{"name": "A", "age": 151} => profile.age: is 151, at most 150"#,
            r#"{"name": "A", "style": "x"} => must be one of: "brief", "long""#,
            r#"{"name": "A", "tags": ["a", 1]} => profile.tags[1]: must be of type string"#,
            r#"{"name": "A", "tags": []} => profile.tags: has a length of 0"#,
            r#"{"name": "A", "v": 2} => profile.v: must be 1"#,
            r#"{"name": "A", "free": {"x": "y"}} => profile.free.x: must be of type number"#,
            r#"{"name": "A", "other": 1} => profile.other: is not allowed"#,
        ];
        for (bad, expected) in cases.map(|case| case.split_once(" => ").unwrap()) {
            let bad: Value = serde_json::from_str(bad).unwrap();
            let error = profile().check("profile", &bad).unwrap_err().to_string();
            assert!(error.contains(expected), "{bad}: {error}");
        }
    }

    #[test]
    fn a_rule_that_is_not_understood_is_refused() {
        for bad in [
            json!("x"),
            json!({"$ref": "#/x"}),
            json!({"pattern": "a+"}),
            json!({"type": "text"}),
            json!({"type": []}),
            json!({"enum": "a"}),
            json!({"required": "a"}),
            json!({"properties": {"a": {"oneOf": []}}}),
            json!({"items": 3}),
            json!({"minimum": "0"}),
            json!({"maxLength": -1}),
        ] {
            assert!(Schema::read(bad.clone()).is_err(), "{bad}");
        }
        let error = Schema::read(json!({"pattern": "a+"})).unwrap_err();
        assert!(error.what.contains("the keywords are: type"), "{error}");
    }
}
