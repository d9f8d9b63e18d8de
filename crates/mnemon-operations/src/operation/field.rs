//! A field of an operation: name, documentation, limits, and how each interface spells it.
//!
//! The JSON schema of a tool, the arguments of a command and the check of both are made from it.

use serde_json::{Map, Value, json};

/// A way to call an operation. Each has its own names for the fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interface {
    CommandLine,
    Mcp,
    Http,
}

/// How the command line takes a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// An option; its name is the field's unless it has another.
    Option(Option<&'static str>),
    /// One argument without a name.
    Positional,
    /// All arguments without a name, joined by spaces.
    Words,
    /// Several arguments without a name: the command calls the operation once for each.
    Each,
    /// An option that takes the fields of an object as its values, in their order.
    Values(&'static str),
    /// No option: the fields of the object have their own.
    Parts,
}

/// One field of an operation.
#[derive(Debug, Clone)]
pub struct Field {
    pub name: &'static str,
    pub about: &'static str,
    pub shape: Shape,
    is_required: bool,
    /// The interface that alone requires it.
    required_only: Option<Interface>,
    /// Whether empty and null values count as left out: the tool itself says what is missing. The
    /// schema still asks for the field if it is required.
    pub is_lenient: bool,
    /// Whether a list of texts counts as one text, a line for each.
    pub is_joined: bool,
    /// Whether a larger number sent to a tool counts as the largest.
    pub is_clamped: bool,
    /// Other names that models reach for.
    pub aliases: &'static [&'static str],
    /// Whether the smallest set of tools accepts it without listing it in the schema.
    pub is_rare: bool,
    /// The only interface that has it; all have it otherwise. The HTTP interface has what the command
    /// line has.
    only: Option<Interface>,
    /// Whether it names a file on the machine of the caller.
    pub is_local: bool,
    /// Fields that may be given in its place: exactly one of all of them must be given.
    pub alternatives: &'static [&'static str],
    /// Another field that may not be given beside it.
    pub excludes: Option<&'static str>,
    /// The value that counts when none is given, for the documentation.
    pub default: Option<&'static str>,
    pub spelling: Spelling,
    /// The short option of the command line.
    pub short: Option<char>,
    /// The name of its value in the help of the command line.
    value: Option<&'static str>,
    /// The heading above it in the help of the command line.
    pub heading: Option<&'static str>,
    /// Whether the command line reads the value from stdin where it is `-`.
    pub is_piped: bool,
    /// The same, and whether it reads the value from a file where it is `@PATH`.
    pub is_from_file: bool,
    /// Whether the value may begin with a dash, as an item of a list does.
    pub is_prose: bool,
}

/// What a field may hold.
#[derive(Debug, Clone)]
pub enum Shape {
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
    Choice(Vec<&'static str>),
    /// Several of these words; a single one is as good.
    Choices(Vec<&'static str>),
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
    /// Any object. The command line makes it from pairs.
    Object,
    /// Any object or list, which the command line reads as JSON.
    Json,
}

/// Defines methods that set one member of a field.
macro_rules! setters {
    ($($(#[$about:meta])* $name:ident($($given:ident: $kind:ty)?): $member:ident = $value:expr;)+) => {
        impl Field {
            $(
                $(#[$about])*
                pub fn $name(mut self $(, $given: $kind)?) -> Self {
                    self.$member = $value;
                    self
                }
            )+
        }
    };
}

setters! {
    required(): is_required = true;
    optional(): is_required = false;
    /// Required by one interface; the other does without.
    required_on(interface: Interface): required_only = Some(interface);
    lenient(): is_lenient = true;
    joined(): is_joined = true;
    clamped(): is_clamped = true;
    or(aliases: &'static [&'static str]): aliases = aliases;
    /// A field that most callers do without.
    rare(): is_rare = true;
    /// The only interface that has this field.
    only(interface: Interface): only = Some(interface);
    /// The name of a file on the machine of the caller, so that a server cannot take it.
    local(): is_local = true;
    /// Exactly one of this field and the others must be given.
    or_else(others: &'static [&'static str]): alternatives = others;
    /// At most one of this field and the other may be given.
    excludes(other: &'static str): excludes = Some(other);
    default(value: &'static str): default = Some(value);
    short(letter: char): short = Some(letter);
    value(name: &'static str): value = Some(name);
    under(heading: &'static str): heading = Some(heading);
    /// On the command line `-` stands for the text on stdin.
    piped(): is_piped = true;
    /// On the command line `-` stands for the text on stdin, and `@PATH` for that of a file.
    piped_or_file(): is_from_file = true;
    /// Sentences, which may begin with a dash.
    prose(): is_prose = true;
    /// On the command line each part of the object is an option.
    by_parts(): spelling = Spelling::Parts;
    /// On the command line the parts of the object are the values of this option.
    by_values(option: &'static str): spelling = Spelling::Values(option);
    /// The command line's name for it, where that is another.
    option(name: &'static str): spelling = Spelling::Option(Some(name));
}

impl Field {
    fn new(name: &'static str, about: &'static str, shape: Shape) -> Self {
        Self {
            name,
            about,
            shape,
            is_required: false,
            required_only: None,
            is_lenient: false,
            is_joined: false,
            is_clamped: false,
            aliases: &[],
            is_rare: false,
            only: None,
            is_local: false,
            alternatives: &[],
            excludes: None,
            default: None,
            spelling: Spelling::Option(None),
            short: None,
            value: None,
            heading: None,
            is_piped: false,
            is_from_file: false,
            is_prose: false,
        }
    }

    /// A text that is not empty.
    pub fn text(name: &'static str, max: usize, about: &'static str) -> Self {
        Self::new(name, about, Shape::Text { min: 1, max })
    }

    pub fn whole(name: &'static str, min: u64, max: u64, about: &'static str) -> Self {
        Self::new(name, about, Shape::Whole { min, max })
    }

    pub fn number(name: &'static str, min: f64, max: f64, about: &'static str) -> Self {
        Self::new(name, about, Shape::Number { min, max })
    }

    pub fn flag(name: &'static str, about: &'static str) -> Self {
        Self::new(name, about, Shape::Flag)
    }

    pub fn choice(name: &'static str, words: &'static [&'static str], about: &'static str) -> Self {
        Self::one_of(name, words.iter().copied(), about)
    }

    /// The same for the words of an enum.
    pub fn one_of(
        name: &'static str,
        words: impl Iterator<Item = &'static str>,
        about: &'static str,
    ) -> Self {
        Self::new(name, about, Shape::Choice(words.collect()))
    }

    /// Several words of an enum.
    pub fn some_of(
        name: &'static str,
        words: impl Iterator<Item = &'static str>,
        about: &'static str,
    ) -> Self {
        Self::new(name, about, Shape::Choices(words.collect()))
    }

    pub fn texts(name: &'static str, most: usize, max: usize, about: &'static str) -> Self {
        Self::new(name, about, Shape::Texts { most, max })
    }

    pub fn words(name: &'static str, most: usize, max: usize, about: &'static str) -> Self {
        Self::new(name, about, Shape::Words { most, max })
    }

    pub fn parts(name: &'static str, fields: Vec<Self>, about: &'static str) -> Self {
        Self::new(name, about, Shape::Parts(fields))
    }

    pub fn list(name: &'static str, of: Vec<Self>, most: usize, about: &'static str) -> Self {
        Self::new(name, about, Shape::List { of, most })
    }

    pub fn object(name: &'static str, about: &'static str) -> Self {
        Self::new(name, about, Shape::Object)
    }

    pub fn json(name: &'static str, about: &'static str) -> Self {
        Self::new(name, about, Shape::Json).piped_or_file()
    }

    /// Arguments without a name on the command line, called `value` in the help.
    pub fn positional(mut self, spelling: Spelling, value: &'static str) -> Self {
        self.spelling = spelling;
        self.value(value)
    }

    pub fn is_on(&self, interface: Interface) -> bool {
        match interface {
            Interface::Http => self.only != Some(Interface::Mcp) && !self.is_local,
            interface => self.only.is_none_or(|only| only == interface),
        }
    }

    pub fn is_required_on(&self, interface: Interface) -> bool {
        let interface = match interface {
            Interface::Http => Interface::CommandLine,
            interface => interface,
        };
        self.is_required || self.required_only == Some(interface)
    }

    /// The fields of the object that it holds.
    pub fn inner(&self) -> &[Self] {
        match &self.shape {
            Shape::Parts(of) | Shape::List { of, .. } => of,
            _ => &[],
        }
    }

    /// The name of the option, without its dashes.
    pub fn option_name(&self) -> String {
        match self.spelling {
            Spelling::Option(Some(name)) | Spelling::Values(name) => name.to_owned(),
            _ => self.name.replace('_', "-"),
        }
    }

    /// The name of its value in help.
    pub fn value_name(&self) -> String {
        let usual = match &self.shape {
            Shape::Whole { .. } => Some("N"),
            Shape::Number { .. } => Some("NUMBER"),
            Shape::Object => Some("KEY=VALUE|JSON"),
            Shape::Parts(_) | Shape::List { .. } | Shape::Json => Some("JSON|-|@PATH"),
            _ => None,
        };
        let name = self.value.or(usual).map(str::to_owned);
        name.unwrap_or_else(|| self.option_name().to_uppercase())
    }

    /// The field as the callers of an interface know it.
    pub fn spelled(&self, interface: Interface) -> String {
        match (interface, self.spelling) {
            (Interface::Mcp | Interface::Http, _) => self.name.to_owned(),
            (_, Spelling::Option(_) | Spelling::Values(_)) => format!("--{}", self.option_name()),
            (_, Spelling::Parts) => {
                let first = self.inner().first();
                first.map_or(self.name.to_owned(), |part| part.spelled(interface))
            }
            _ => self.name.to_owned(),
        }
    }

    /// Whether this is what the caller means by the name. Case, `_` and `-` do not count, so that
    /// `contentPath` is `content_path`.
    pub fn is_called(&self, name: &str) -> bool {
        let plain = |name: &str| -> String {
            let letters = name.chars().filter(|c| !matches!(c, '_' | '-'));
            letters.flat_map(char::to_lowercase).collect()
        };
        let name = plain(name);
        plain(self.name) == name || self.aliases.iter().any(|alias| plain(alias) == name)
    }

    pub fn schema(&self) -> Value {
        let mut schema = self.shape.schema();
        let about = match self.default {
            Some(default) => format!("{} [default: {default}]", self.about),
            None => self.about.to_owned(),
        };
        if let Some(object) = schema.as_object_mut() {
            object.insert("description".to_owned(), json!(about));
        }
        schema
    }
}

impl Shape {
    fn schema(&self) -> Value {
        match self {
            Self::Text { max, .. } => {
                json!({"type": "string", "maxLength": max})
            }
            Self::Whole { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
            Self::Number { min, max } => json!({"type": "number", "minimum": min, "maximum": max}),
            Self::Flag => json!({"type": "boolean"}),
            Self::Choice(words) => json!({"type": "string", "enum": words}),
            Self::Choices(words) => json!({
                "type": "array", "items": {"type": "string", "enum": words}, "maxItems": words.len(),
            }),
            Self::Texts { most, max } | Self::Words { most, max } => json!({
                "type": "array",
                "items": {"type": "string", "maxLength": max},
                "maxItems": most,
            }),
            Self::Parts(fields) => Value::Object(schema(fields)),
            Self::List { of, most } => {
                json!({"type": "array", "items": schema(of), "maxItems": most})
            }
            Self::Object | Self::Json => json!({"type": "object"}),
        }
    }
}

/// The same without rare fields and the lengths of texts, both of which the check still knows: for
/// models that read every schema before every answer.
pub fn brief_schema(fields: &[Field]) -> Map<String, Value> {
    let common = fields.iter().filter(|field| !field.is_rare).cloned();
    let mut schema = schema(&common.collect::<Vec<_>>());
    schema.remove("additionalProperties");
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    let properties = properties.into_iter().flat_map(Map::values_mut);
    properties.for_each(without_lengths);
    schema
}

fn without_lengths(schema: &mut Value) {
    if let Some(parts) = schema.as_object_mut() {
        parts.remove("maxLength");
        parts.remove("maxItems");
        if let Some(items) = parts.get_mut("items") {
            without_lengths(items);
        }
    }
}

/// The JSON schema of an object with these fields. Aliases are not in it: one name is enough for
/// whoever reads it.
pub fn schema(fields: &[Field]) -> Map<String, Value> {
    let fields: Vec<&Field> = fields
        .iter()
        .filter(|field| field.is_on(Interface::Mcp))
        .collect();
    let properties = fields
        .iter()
        .map(|field| (field.name.to_owned(), field.schema()));
    let properties: Map<String, Value> = properties.collect();
    let required = fields
        .iter()
        .filter(|field| field.is_required_on(Interface::Mcp));
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
