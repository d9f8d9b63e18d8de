//! Conditions on metadata.
//!
//! ```
//! use mnemon_core::Expr;
//! let expr: Expr = r#"{"lang": "vi", "n": {"$gte": 3, "$lt": 9}}"#.parse()?;
//! let metadata = serde_json::json!({"lang": "vi", "n": 5});
//! assert!(expr.matches(metadata.as_object().unwrap()));
//! # Ok::<(), mnemon_core::Invalid>(())
//! ```

use std::cmp::Ordering;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value, json};

use crate::error::Invalid;
use crate::model::limits;

/// A condition on a record's metadata, from JSON.
///
/// An object means that all of its members hold. A member is a path into the metadata, with dots,
/// and what its value must be: a value that it equals, `"*"` for any value, or operators (`$eq $ne
/// $gt $gte $lt $lte $in $contains`). `AND` and `OR` take lists of conditions, `NOT` a list of
/// which none may hold. A path that leads nowhere satisfies no operator but `$ne`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct Expr(Node);

#[derive(Debug, Clone, PartialEq)]
enum Node {
    All(Vec<Node>),
    Any(Vec<Node>),
    /// None of these.
    None(Vec<Node>),
    Test {
        path: String,
        op: Op,
        value: Value,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    Eq,
    Ne,
    Gt,
    Gte,
    Lt,
    Lte,
    In,
    Contains,
    Present,
}

/// What an operator is called.
const OPERATORS: [(&str, Op); 8] = [
    ("$eq", Op::Eq),
    ("$ne", Op::Ne),
    ("$gt", Op::Gt),
    ("$gte", Op::Gte),
    ("$lt", Op::Lt),
    ("$lte", Op::Lte),
    ("$in", Op::In),
    ("$contains", Op::Contains),
];

/// The value that stands for any.
const ANY: &str = "*";

impl Expr {
    /// Whether the metadata satisfies it.
    pub fn matches(&self, metadata: &Map<String, Value>) -> bool {
        self.0.matches(metadata)
    }
}

impl FromStr for Expr {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        if text.len() > limits::FILTER_BYTES {
            let (bytes, most) = (text.len(), limits::FILTER_BYTES);
            let what = format!("has {bytes} bytes, at most {most} are allowed");
            return Err(Invalid::new("filter", what));
        }
        let value: Value = serde_json::from_str(text)
            .map_err(|error| Invalid::new("filter", format!("is not JSON: {error}")))?;
        Self::try_from(value)
    }
}

impl TryFrom<Value> for Expr {
    type Error = Invalid;

    fn try_from(value: Value) -> Result<Self, Invalid> {
        let mut reader = Reader { tests: 0 };
        reader.object("filter", value, 1).map(Self)
    }
}

impl From<Expr> for Value {
    fn from(expr: Expr) -> Self {
        expr.0.into_json()
    }
}

impl Node {
    fn matches(&self, metadata: &Map<String, Value>) -> bool {
        match self {
            Self::All(nodes) => nodes.iter().all(|node| node.matches(metadata)),
            Self::Any(nodes) => nodes.iter().any(|node| node.matches(metadata)),
            Self::None(nodes) => !nodes.iter().any(|node| node.matches(metadata)),
            Self::Test { path, op, value } => op.holds(find(metadata, path), value),
        }
    }

    fn into_json(self) -> Value {
        let list = |nodes: Vec<Self>| nodes.into_iter().map(Self::into_json).collect::<Vec<_>>();
        match self {
            Self::All(nodes) => json!({ "AND": list(nodes) }),
            Self::Any(nodes) => json!({ "OR": list(nodes) }),
            Self::None(nodes) => json!({ "NOT": list(nodes) }),
            Self::Test { path, op, value } => {
                let named = OPERATORS.iter().find(|(_, known)| *known == op);
                let test = named.map_or(json!(ANY), |(name, _)| json!({ *name: value }));
                json!({ path: test })
            }
        }
    }
}

/// What lies at a path. A name that holds dots itself is found first.
fn find<'a>(map: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    if let Some(value) = map.get(path) {
        return Some(value);
    }
    let (name, rest) = path.split_once('.')?;
    find(map.get(name)?.as_object()?, rest)
}

impl Op {
    fn holds(self, found: Option<&Value>, wanted: &Value) -> bool {
        let Some(found) = found else {
            return self == Self::Ne;
        };
        let is = |test: fn(Ordering) -> bool| compare(found, wanted).is_some_and(test);
        match self {
            Self::Eq => equal(found, wanted),
            Self::Ne => !equal(found, wanted),
            Self::Gt => is(Ordering::is_gt),
            Self::Gte => is(Ordering::is_ge),
            Self::Lt => is(Ordering::is_lt),
            Self::Lte => is(Ordering::is_le),
            Self::In => has(wanted, found),
            Self::Contains => match (found, wanted) {
                (Value::String(text), Value::String(part)) => text.contains(part.as_str()),
                _ => has(found, wanted),
            },
            Self::Present => !found.is_null(),
        }
    }

    /// What the operator may be given.
    fn check(self, value: &Value) -> Result<(), &'static str> {
        match self {
            Self::In if !value.is_array() => Err("takes a list"),
            Self::Gt | Self::Gte | Self::Lt | Self::Lte
                if !value.is_number() && !value.is_string() =>
            {
                Err("takes a number or a text")
            }
            Self::Contains if value.is_array() || value.is_object() => {
                Err("takes a text, a number, true, false or null")
            }
            _ => Ok(()),
        }
    }
}

fn has(list: &Value, item: &Value) -> bool {
    let items = list.as_array();
    items.is_some_and(|items| items.iter().any(|other| equal(other, item)))
}

/// `3` and `3.0` are equal; otherwise as JSON has it.
fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => order(one, other) == Some(Ordering::Equal),
        _ => one == other,
    }
}

/// Numbers by size, texts by their characters; nothing else has an order.
fn compare(one: &Value, other: &Value) -> Option<Ordering> {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => order(one, other),
        (Value::String(one), Value::String(other)) => Some(one.cmp(other)),
        _ => None,
    }
}

fn order(one: &Number, other: &Number) -> Option<Ordering> {
    // Large integers would lose digits as floating-point numbers.
    if let (Some(one), Some(other)) = (one.as_i128(), other.as_i128()) {
        return Some(one.cmp(&other));
    }
    one.as_f64()?.partial_cmp(&other.as_f64()?)
}

/// Reads a condition and counts what it is made of.
struct Reader {
    tests: usize,
}

impl Reader {
    fn object(&mut self, place: &str, value: Value, depth: usize) -> Result<Node, Invalid> {
        if depth > limits::FILTER_DEPTH {
            let most = limits::FILTER_DEPTH;
            let what = format!("is nested deeper than {most} levels");
            return Err(Invalid::new("filter", what));
        }
        let Value::Object(members) = value else {
            let what = format!("is {}, it must be an object", kind(&value));
            return Err(Invalid::new(place, what));
        };
        let mut nodes = Vec::with_capacity(members.len());
        for (name, value) in members {
            let place = format!("{place}.{name}");
            match name.as_str() {
                "AND" => nodes.push(Node::All(self.list(&place, value, depth)?)),
                "OR" => nodes.push(Node::Any(self.list(&place, value, depth)?)),
                "NOT" => nodes.push(Node::None(self.list(&place, value, depth)?)),
                _ if name.starts_with('$') => return Err(unknown(&place)),
                _ => self.member(&place, &name, value, &mut nodes)?,
            }
        }
        Ok(Node::All(nodes))
    }

    fn list(&mut self, place: &str, value: Value, depth: usize) -> Result<Vec<Node>, Invalid> {
        let Value::Array(items) = value else {
            let what = format!("is {}, it must be a list of conditions", kind(&value));
            return Err(Invalid::new(place, what));
        };
        let items = items.into_iter().enumerate();
        items
            .map(|(n, item)| {
                self.count()?;
                self.object(&format!("{place}[{n}]"), item, depth + 1)
            })
            .collect()
    }

    /// A path, and what must be true of what lies there.
    fn member(
        &mut self,
        place: &str,
        path: &str,
        value: Value,
        nodes: &mut Vec<Node>,
    ) -> Result<(), Invalid> {
        let mut push = |op, value| {
            self.count()?;
            nodes.push(Node::Test {
                path: path.to_owned(),
                op,
                value,
            });
            Ok(())
        };
        match value {
            Value::Object(tests) if tests.is_empty() => {
                let what = "has no operator; give one, or a value";
                Err(Invalid::new(place, what))
            }
            Value::Object(tests) => tests.into_iter().try_for_each(|(name, value)| {
                let place = format!("{place}.{name}");
                let known = OPERATORS.iter().find(|(known, _)| *known == name);
                let (_, op) = known.ok_or_else(|| unknown(&place))?;
                op.check(&value).map_err(|what| {
                    Invalid::new(&place, format!("{what}, not {}", kind(&value)))
                })?;
                push(*op, value)
            }),
            Value::Array(_) => {
                let what = "is a list; write {\"$in\": [...]} or {\"$eq\": [...]}";
                Err(Invalid::new(place, what))
            }
            Value::String(text) if text == ANY => push(Op::Present, Value::Null),
            value => push(Op::Eq, value),
        }
    }

    fn count(&mut self) -> Result<(), Invalid> {
        self.tests += 1;
        if self.tests > limits::FILTER_TESTS {
            let most = limits::FILTER_TESTS;
            let what = format!("has more than {most} conditions");
            return Err(Invalid::new("filter", what));
        }
        Ok(())
    }
}

fn unknown(place: &str) -> Invalid {
    let known = OPERATORS.map(|(name, _)| name).join(" ");
    Invalid::new(place, format!("is not an operator; use one of {known}"))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn expr(value: Value) -> Expr {
        value.try_into().unwrap()
    }

    #[test]
    fn conditions_hold_or_not() {
        let metadata = json!({
            "lang": "vi", "n": 5, "big": 9_007_199_254_740_993_i64, "half": 0.5, "none": null,
            "tags": ["a", "b"], "who": {"name": "Ann", "age": {"years": 30}}, "a.b": 1,
        });
        let metadata = metadata.as_object().unwrap();
        let table = [
            (json!({}), true),
            (json!({"lang": "vi"}), true),
            (json!({"lang": "VI"}), false),
            (json!({"lang": "vi", "n": 6}), false),
            (json!({"n": 5.0}), true),
            (json!({"n": "5"}), false),
            (json!({"n": {"$gte": 5, "$lt": 9}}), true),
            (json!({"n": {"$gt": 5}}), false),
            (json!({"n": {"$lte": 4.9}}), false),
            (json!({"half": {"$lt": 1}}), true),
            (json!({"big": {"$gt": 9_007_199_254_740_992_i64}}), true),
            (json!({"lang": {"$gt": "en"}}), true),
            (json!({"lang": {"$gt": 1}}), false),
            (json!({"lang": {"$ne": "en"}}), true),
            (json!({"missing": {"$ne": "en"}}), true),
            (json!({"missing": {"$eq": null}}), false),
            (json!({"none": null}), true),
            (json!({"lang": {"$in": ["en", "vi"]}}), true),
            (json!({"lang": {"$in": []}}), false),
            (json!({"tags": {"$contains": "a"}}), true),
            (json!({"tags": {"$contains": "c"}}), false),
            (json!({"tags": {"$eq": ["a", "b"]}}), true),
            (json!({"lang": {"$contains": "v"}}), true),
            (json!({"n": {"$contains": 5}}), false),
            (json!({"lang": "*"}), true),
            (json!({"none": "*"}), false),
            (json!({"missing": "*"}), false),
            (json!({"who.name": "Ann"}), true),
            (json!({"who.age.years": {"$gte": 30}}), true),
            (json!({"who.name.first": "*"}), false),
            (json!({"a.b": 1}), true),
            (json!({"AND": [{"lang": "vi"}, {"n": 5}]}), true),
            (json!({"AND": []}), true),
            (json!({"OR": [{"lang": "en"}, {"n": 5}]}), true),
            (json!({"OR": []}), false),
            (json!({"NOT": [{"lang": "en"}, {"n": 6}]}), true),
            (json!({"NOT": [{"lang": "en"}, {"n": 5}]}), false),
        ];
        for (condition, expected) in table {
            let read = expr(condition.clone());
            assert_eq!(read.matches(metadata), expected, "{condition}");
            let again = expr(read.clone().into());
            assert_eq!(again.matches(metadata), expected, "{condition} again");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let table = [
            r#"{"a": 1 => filter: is not JSON"#,
            r#"[1] => filter: is a list"#,
            r#"{"n": {"$gtt": 1}} => filter.n.$gtt: is not an operator"#,
            r#"{"$gt": 1} => filter.$gt: is not an operator"#,
            r#"{"n": {}} => filter.n: has no operator"#,
            r#"{"n": [1]} => filter.n: is a list"#,
            r#"{"n": {"$in": 1}} => filter.n.$in: takes a list, not a number"#,
            r#"{"n": {"$gt": null}} => filter.n.$gt: takes a number"#,
            r#"{"AND": {"a": 1}} => filter.AND: is an object"#,
            r#"{"OR": [{"a": 1}, 2]} => filter.OR[1]: is a number"#,
        ];
        for (text, expected) in table.map(|row| row.split_once(" => ").unwrap()) {
            let error = text.parse::<Expr>().unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        let deep = (0..20).fold(json!({"a": 1}), |inner, _| json!({ "NOT": [inner] }));
        let wide = json!({ "OR": vec![json!({"a": 1}); 1000] });
        for (text, expected) in [
            (deep.to_string(), "filter: is nested deeper"),
            (wide.to_string(), "filter: has more than"),
            ("[".repeat(100_000), "filter: has 100000 bytes"),
        ] {
            let error = text.parse::<Expr>().unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    fn condition() -> impl Strategy<Value = Value> {
        let name = prop::sample::select(vec!["a", "b", "c.d"]);
        let scalar = prop_oneof![
            (0..4_i64).prop_map(Value::from),
            "[xy]{0,2}".prop_map(Value::from)
        ];
        let op = prop::sample::select(vec!["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]);
        let test = (name, op, scalar).prop_map(|(name, op, value)| json!({ name: { op: value } }));
        test.prop_recursive(3, 16, 3, |inner| {
            let word = prop::sample::select(vec!["AND", "OR", "NOT"]);
            (word, prop::collection::vec(inner, 0..3))
                .prop_map(|(word, list)| json!({ word: list }))
        })
    }

    fn metadata() -> impl Strategy<Value = Value> {
        let scalar = || {
            prop_oneof![
                (0..4_i64).prop_map(Value::from),
                "[xy]{0,2}".prop_map(Value::from)
            ]
        };
        (
            prop::option::of(scalar()),
            prop::option::of(scalar()),
            prop::option::of(scalar()),
        )
            .prop_map(|(a, b, d)| {
                let mut map = Map::new();
                map.extend(a.map(|a| ("a".to_owned(), a)));
                map.extend(b.map(|b| ("b".to_owned(), b)));
                map.extend(d.map(|d| ("c".to_owned(), json!({ "d": d }))));
                Value::Object(map)
            })
    }

    proptest! {
        #[test]
        fn logic_is_logic(one in condition(), other in condition(), metadata in metadata()) {
            let metadata = metadata.as_object().unwrap();
            let holds = |value: Value| expr(value).matches(metadata);
            let not = |value: &Value| json!({ "NOT": [value] });
            prop_assert_eq!(holds(not(&not(&one))), holds(one.clone()));
            prop_assert_eq!(holds(not(&one)), !holds(one.clone()));
            prop_assert_eq!(
                holds(not(&json!({ "AND": [one, other] }))),
                holds(json!({ "OR": [not(&one), not(&other)] }))
            );
            prop_assert_eq!(
                holds(not(&json!({ "OR": [one, other] }))),
                holds(json!({ "AND": [not(&one), not(&other)] }))
            );
        }
    }
}
