//! What a tool may be told: fields with limits, in one table that is both the schema a client
//! reads and the check of what it sends.

use serde_json::{Map, Value, json};

/// One field of a tool's arguments.
#[derive(Debug, Clone)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) shape: Shape,
    pub(super) is_required: bool,
    /// Whether empty and null values count as left out: the tool itself says what is missing. The
    /// schema still asks for the field if it is required.
    pub(super) is_lenient: bool,
    /// Whether a list of texts counts as one text, a line for each.
    pub(super) is_joined: bool,
    /// Other names that models reach for.
    pub(super) aliases: &'static [&'static str],
}

/// What a field may hold.
#[derive(Debug, Clone)]
pub(super) enum Shape {
    /// A text, in characters.
    Text {
        min: usize,
        max: usize,
    },
    Whole {
        min: u64,
        max: u64,
    },
    Number {
        min: f64,
        max: f64,
    },
    Flag,
    Choice(&'static [&'static str]),
    /// Texts, at most so many; a single one is as good.
    Texts {
        most: usize,
        max: usize,
    },
    /// Words without spaces, at most so many; a text with commas between them is as good.
    Words {
        most: usize,
        max: usize,
    },
    /// An object with fields of its own.
    Parts(Vec<Field>),
    /// Such objects, at most so many.
    List {
        of: Vec<Field>,
        most: usize,
    },
    /// Any object.
    Object,
}

impl Field {
    fn new(name: &'static str, about: &'static str, shape: Shape) -> Self {
        Self {
            name,
            about,
            shape,
            is_required: false,
            is_lenient: false,
            is_joined: false,
            aliases: &[],
        }
    }

    /// A text that is not empty.
    pub(super) fn text(name: &'static str, max: usize, about: &'static str) -> Self {
        Self::new(name, about, Shape::Text { min: 1, max })
    }

    pub(super) fn whole(name: &'static str, min: u64, max: u64, about: &'static str) -> Self {
        Self::new(name, about, Shape::Whole { min, max })
    }

    pub(super) fn number(name: &'static str, min: f64, max: f64, about: &'static str) -> Self {
        Self::new(name, about, Shape::Number { min, max })
    }

    pub(super) fn flag(name: &'static str, about: &'static str) -> Self {
        Self::new(name, about, Shape::Flag)
    }

    pub(super) fn choice(
        name: &'static str,
        words: &'static [&'static str],
        about: &'static str,
    ) -> Self {
        Self::new(name, about, Shape::Choice(words))
    }

    pub(super) fn texts(name: &'static str, most: usize, max: usize, about: &'static str) -> Self {
        Self::new(name, about, Shape::Texts { most, max })
    }

    pub(super) fn words(name: &'static str, most: usize, max: usize, about: &'static str) -> Self {
        Self::new(name, about, Shape::Words { most, max })
    }

    pub(super) fn parts(name: &'static str, fields: Vec<Self>, about: &'static str) -> Self {
        Self::new(name, about, Shape::Parts(fields))
    }

    pub(super) fn list(
        name: &'static str,
        of: Vec<Self>,
        most: usize,
        about: &'static str,
    ) -> Self {
        Self::new(name, about, Shape::List { of, most })
    }

    pub(super) fn object(name: &'static str, about: &'static str) -> Self {
        Self::new(name, about, Shape::Object)
    }

    pub(super) fn required(mut self) -> Self {
        self.is_required = true;
        self
    }

    pub(super) fn lenient(mut self) -> Self {
        self.is_lenient = true;
        self
    }

    pub(super) fn joined(mut self) -> Self {
        self.is_joined = true;
        self
    }

    pub(super) fn or(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// Whether this is what the caller means by the name. Case, `_` and `-` do not count, so that
    /// `contentPath` is `content_path`.
    pub(super) fn is_called(&self, name: &str) -> bool {
        let plain = |name: &str| -> String {
            let letters = name.chars().filter(|c| !matches!(c, '_' | '-'));
            letters.flat_map(char::to_lowercase).collect()
        };
        let name = plain(name);
        plain(self.name) == name || self.aliases.iter().any(|alias| plain(alias) == name)
    }

    fn schema(&self) -> Value {
        let mut schema = self.shape.schema();
        if let Some(object) = schema.as_object_mut() {
            object.insert("description".to_owned(), json!(self.about));
        }
        schema
    }
}

impl Shape {
    fn schema(&self) -> Value {
        match self {
            Self::Text { min, max } => {
                json!({"type": "string", "minLength": min, "maxLength": max})
            }
            Self::Whole { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
            Self::Number { min, max } => json!({"type": "number", "minimum": min, "maximum": max}),
            Self::Flag => json!({"type": "boolean"}),
            Self::Choice(words) => json!({"type": "string", "enum": words}),
            Self::Texts { most, max } | Self::Words { most, max } => json!({
                "type": "array",
                "items": {"type": "string", "maxLength": max},
                "maxItems": most,
            }),
            Self::Parts(fields) => Value::Object(schema(fields)),
            Self::List { of, most } => {
                json!({"type": "array", "items": schema(of), "maxItems": most})
            }
            Self::Object => json!({"type": "object"}),
        }
    }
}

/// The JSON schema of an object with these fields. Aliases are not in it: one name is enough for
/// whoever reads it.
pub(super) fn schema(fields: &[Field]) -> Map<String, Value> {
    let properties = fields
        .iter()
        .map(|field| (field.name.to_owned(), field.schema()));
    let properties: Map<String, Value> = properties.collect();
    let required = fields.iter().filter(|field| field.is_required);
    let required: Vec<&str> = required.map(|field| field.name).collect();
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    schema.insert("additionalProperties".to_owned(), json!(false));
    schema
}
