//! A JSON schema: the part of the standard that `src/json.schema.json` uses.

use std::fmt::Write;

use serde_json::{Map, Value};

pub(crate) struct Schema(pub(crate) &'static Value);

impl Schema {
    fn shapes_map(&self) -> &Map<String, Value> {
        self.0["$defs"].as_object().unwrap()
    }

    pub(super) fn commands(&self) -> impl Iterator<Item = &str> {
        let commands = self.0["properties"].as_object().unwrap();
        commands.keys().map(String::as_str)
    }

    pub(super) fn shapes(&self) -> impl Iterator<Item = &str> {
        self.shapes_map().keys().map(String::as_str)
    }

    pub(super) fn tools(&self) -> impl Iterator<Item = &str> {
        let tools = self.0["tools"].as_object().unwrap();
        tools.keys().map(String::as_str)
    }

    /// The name of the shape that a command prints.
    pub(super) fn shape_of(&self, command: &str) -> &str {
        name_of(&self.0["properties"][command])
    }

    /// The name of the shape that a tool answers with.
    pub(super) fn shape_of_tool(&self, tool: &str) -> &str {
        name_of(&self.0["tools"][tool])
    }

    pub(super) fn about(&self, shape: &str) -> &str {
        self.0["$defs"][shape]["description"].as_str().unwrap()
    }

    /// Names of the fields that mean the same everywhere.
    pub(super) fn shared_fields(&self) -> impl Iterator<Item = &str> {
        let fields = self.0["$defs"]["fields"]["properties"].as_object();
        fields.unwrap().keys().map(String::as_str)
    }

    /// Every field of every shape, with the name of the shape.
    pub(super) fn fields(&self) -> Vec<(&str, &str, &Value)> {
        let shapes = self.shapes_map().iter();
        let shapes = shapes.filter(|(name, _)| *name != "fields");
        let mut fields = Vec::new();
        for (shape, value) in shapes {
            collect(shape, value, &mut fields);
        }
        fields
    }

    /// What is wrong with the answer of a command.
    pub(crate) fn check(&self, command: &str, answer: &Value) -> Vec<String> {
        self.check_shape(self.shape_of(command), answer)
    }

    pub(super) fn check_shape(&self, shape: &str, answer: &Value) -> Vec<String> {
        let mut wrong = Vec::new();
        self.compare(&self.0["$defs"][shape], answer, shape, &mut wrong);
        wrong
    }

    /// What is wrong with a value that should have this schema.
    pub(crate) fn check_value(&self, schema: &Value, value: &Value) -> Vec<String> {
        let mut wrong = Vec::new();
        self.compare(schema, value, "answer", &mut wrong);
        wrong
    }

    fn resolved<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str() {
            Some(pointer) => self.0.pointer(pointer.trim_start_matches('#')).unwrap(),
            None => schema,
        }
    }

    fn compare(&self, schema: &Value, value: &Value, place: &str, wrong: &mut Vec<String>) {
        let schema = self.resolved(schema);
        if let Some(choices) = schema["anyOf"].as_array() {
            let fits = |choice: &Value| {
                let mut wrong = Vec::new();
                self.compare(choice, value, place, &mut wrong);
                wrong.is_empty()
            };
            if !choices.iter().any(fits) {
                wrong.push(format!("{place} fits none of its shapes"));
            }
            return;
        }
        if !has_type(&schema["type"], value) {
            wrong.push(format!("{place} is {value}, not {}", schema["type"]));
        }
        if let Some(words) = schema["enum"]
            .as_array()
            .filter(|words| !words.contains(value))
        {
            wrong.push(format!("{place} is {value}, not one of {words:?}"));
        }
        for (at, item) in value.as_array().into_iter().flatten().enumerate() {
            self.compare(&schema["items"], item, &format!("{place}[{at}]"), wrong);
        }
        let (Some(fields), Some(known)) = (value.as_object(), schema["properties"].as_object())
        else {
            return;
        };
        for required in schema["required"].as_array().into_iter().flatten() {
            if !fields.contains_key(required.as_str().unwrap()) {
                wrong.push(format!("{place} lacks {required}"));
            }
        }
        for (name, value) in fields {
            let place = format!("{place}.{name}");
            match known.get(name) {
                Some(schema) => self.compare(schema, value, &place, wrong),
                None => wrong.push(format!("{place} is not documented")),
            }
        }
    }

    /// The fields of a shape as a table.
    pub(super) fn table(&self, shape: &str, text: &mut String) {
        text.push_str("| field | type | meaning |\n|---|---|---|\n");
        self.rows(&self.0["$defs"][shape], "", text);
    }

    /// A row for each field, and for those of objects in it.
    fn rows(&self, shape: &Value, prefix: &str, text: &mut String) {
        let required = shape["required"].as_array();
        for (name, field) in shape["properties"].as_object().unwrap() {
            let is_required =
                required.is_none_or(|required| required.contains(&name.as_str().into()));
            let kind = self.type_name(field);
            let optional = if is_required { "" } else { ", optional" };
            let about = self.meaning(field);
            let name = format!("{prefix}{name}");
            writeln!(text, "| `{name}` | {kind}{optional} | {about} |").unwrap();
            if field["properties"].is_object() {
                self.rows(field, &format!("{name}."), text);
            }
        }
    }

    fn meaning(&self, field: &Value) -> String {
        let target = self.resolved(field);
        let inner = self.resolved(&target["items"]);
        let about = [target, inner]
            .into_iter()
            .find_map(|part| part["description"].as_str());
        about.unwrap_or_default().replace('|', "\\|")
    }

    fn type_name(&self, field: &Value) -> String {
        if let Some(pointer) = field["$ref"].as_str().filter(|it| !it.contains("/fields/")) {
            let shape = pointer.rsplit('/').next().unwrap();
            return format!("[{shape}](#{shape})");
        }
        let field = self.resolved(field);
        if let Some(choices) = field["anyOf"].as_array() {
            let names: Vec<String> = choices
                .iter()
                .map(|choice| self.type_name(choice))
                .collect();
            return names.join(" or ");
        }
        match &field["type"] {
            Value::String(word) if word == "array" => {
                format!("list of {}", self.type_name(&field["items"]))
            }
            Value::String(_) if field["format"] == "date-time" => "time".to_owned(),
            Value::String(word) => word.clone(),
            Value::Array(words) => {
                let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
                words.join(" or ")
            }
            _ => "any".to_owned(),
        }
    }
}

fn name_of(reference: &Value) -> &str {
    let shape = reference["$ref"].as_str();
    shape.unwrap().rsplit('/').next().unwrap()
}

/// The fields of a shape, and of the objects in it.
fn collect<'a>(shape: &'a str, schema: &'a Value, fields: &mut Vec<(&'a str, &'a str, &'a Value)>) {
    let properties = schema["properties"].as_object();
    for (name, field) in properties.into_iter().flatten() {
        fields.push((shape, name, field));
        collect(shape, field, fields);
        collect(shape, &field["items"], fields);
    }
}

fn has_type(expected: &Value, value: &Value) -> bool {
    let is = |word: &str| match word {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => value.is_null(),
    };
    match expected {
        Value::String(word) => is(word),
        Value::Array(words) => words.iter().filter_map(Value::as_str).any(is),
        _ => true,
    }
}
