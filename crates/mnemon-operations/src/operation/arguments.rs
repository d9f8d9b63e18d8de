//! Checks what a caller sent against the fields of an operation, and says exactly what is wrong.

use mnemon_core::{Cursor, Id, Invalid, Owner, secrets};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::field::{Field, Interface, Shape, Spelling};
use crate::Error;

mod strict;

/// Arguments that keep the limits of their fields, under the fields' own names.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Arguments(Map<String, Value>);

impl Arguments {
    /// Of an MCP client.
    pub fn check(fields: &[Field], sent: Map<String, Value>) -> Result<Self, Invalid> {
        Self::check_on(Interface::Mcp, fields, sent)
    }

    /// What is wrong names the fields as this interface spells them.
    pub fn check_on(
        interface: Interface,
        fields: &[Field],
        sent: Map<String, Value>,
    ) -> Result<Self, Invalid> {
        let arguments = Self(object(interface, fields, sent, "")?);
        arguments.check_alternatives(interface, fields)?;
        Ok(arguments)
    }

    /// Of fields that stand for the same at most one is given, or exactly one.
    fn check_alternatives(&self, interface: Interface, fields: &[Field]) -> Result<(), Invalid> {
        for field in fields {
            let others = field.alternatives.iter().copied().chain(field.excludes);
            let is_other = |other: &&Field| other.is_on(interface);
            let others = others.filter_map(|name| {
                let mut named = fields.iter().filter(|field| field.name == name);
                named.find(is_other)
            });
            let others: Vec<&Field> = others.collect();
            let all = std::iter::once(field).chain(others.iter().copied());
            let given: Vec<String> = all
                .filter(|field| self.has(field.name))
                .map(|field| field.spelled(interface))
                .collect();
            let is_needed = !field.alternatives.is_empty();
            match given.as_slice() {
                [one, other, ..] if is_needed || self.has(field.name) => {
                    let what = format!("is given together with {other}; use one of the two");
                    return Err(Invalid::new(one, what));
                }
                [] if is_needed => {
                    let names: Vec<_> = others
                        .iter()
                        .map(|other| other.spelled(interface))
                        .collect();
                    let or = match names.is_empty() {
                        true => String::new(),
                        false => format!("; or give {}", names.join(" or ")),
                    };
                    let what = format!("is missing: {}{or}", field.about);
                    return Err(Invalid::new(field.spelled(interface), what));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Arguments that a server checks.
    pub fn from_fields(fields: Map<String, Value>) -> Self {
        Self(fields)
    }

    /// All fields under their own names.
    pub fn into_fields(self) -> Map<String, Value> {
        self.0
    }

    /// Ids of records, keys or sessions that are named.
    pub fn ids(&self) -> Vec<String> {
        let single = ["id", "record", "prefix", "session", "webhook"].into_iter();
        let mut ids: Vec<String> = single.filter_map(|name| self.text(name)).collect();
        ids.extend(self.texts("ids"));
        ids
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The text of a field, if it was sent.
    pub fn text(&self, name: &str) -> Option<String> {
        self.0.get(name)?.as_str().map(str::to_owned)
    }

    /// The place in a list that a field names, if it was sent.
    pub fn cursor(&self, name: &str) -> Result<Option<Cursor>, Invalid> {
        let cursor = self.text(name).map(|text| text.parse::<Cursor>());
        let cursor = cursor.transpose();
        cursor.map_err(|wrong| Invalid::new(name, wrong.what))
    }

    /// The text of a field that must be sent.
    pub fn needed(&self, name: &str) -> String {
        self.text(name).unwrap_or_default()
    }

    pub fn whole(&self, name: &str) -> Option<usize> {
        usize::try_from(self.0.get(name)?.as_u64()?).ok()
    }

    pub fn number(&self, name: &str) -> Option<f64> {
        self.0.get(name)?.as_f64()
    }

    pub fn flag(&self, name: &str) -> Option<bool> {
        self.0.get(name)?.as_bool()
    }

    pub fn texts(&self, name: &str) -> Vec<String> {
        let items = self.0.get(name).and_then(Value::as_array);
        let texts = items.into_iter().flatten().filter_map(Value::as_str);
        texts.map(str::to_owned).collect()
    }

    /// How many items the list of a field has.
    pub fn items(&self, name: &str) -> Option<usize> {
        self.0.get(name)?.as_array().map(Vec::len)
    }

    pub fn object(&self, name: &str) -> Option<&Map<String, Value>> {
        self.0.get(name)?.as_object()
    }

    /// Everything as the request of an operation. What it finds wrong is the caller's to mend.
    pub fn read<T: DeserializeOwned>(self) -> Result<T, Error> {
        read(Value::Object(self.0))
    }

    /// Takes a text out.
    pub fn take_text(&mut self, name: &str) -> Option<String> {
        let text = self.text(name);
        self.take(name);
        text
    }

    /// Takes a text out that must be sent.
    pub fn take_needed(&mut self, name: &str) -> String {
        self.take_text(name).unwrap_or_default()
    }

    /// Takes the names out that say whose a record is.
    pub fn take_owner(&mut self) -> Owner {
        Owner {
            user: self.take_text("user"),
            agent: self.take_text("agent"),
            session: self.take_text("session"),
            flow: self.take_text("flow"),
            node: self.take_text("node"),
        }
    }

    /// Takes an id out that must be sent.
    pub fn take_id(&mut self, name: &str) -> Result<Id, Invalid> {
        let id = self.take_needed(name).trim().parse();
        id.map_err(|wrong: Invalid| Invalid::new(name, wrong.what))
    }

    /// Takes a field out.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name)
    }

    /// Sets a field that the caller does not send.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }
}

pub fn read<T: DeserializeOwned>(value: Value) -> Result<T, Error> {
    let read = serde_json::from_value(value);
    Ok(read.map_err(|error| Invalid::new("arguments", error.to_string()))?)
}

fn object(
    interface: Interface,
    fields: &[Field],
    sent: Map<String, Value>,
    within: &str,
) -> Result<Map<String, Value>, Invalid> {
    let mut taken: Map<String, Value> = Map::new();
    let mut named: Vec<(&str, String)> = Vec::new();
    for (name, value) in sent {
        let mut here = fields.iter().filter(|field| field.is_on(interface));
        let is_meant = |field: &&Field| match interface {
            Interface::Http => field.name == name,
            _ => field.is_called(&name),
        };
        let Some(field) = here.find(is_meant) else {
            let here = fields.iter().filter(|field| field.is_on(interface));
            let known: Vec<String> = here.map(|field| field.spelled(interface)).collect();
            let what = match known.is_empty() {
                true => "is not a known field: this call has no fields".to_owned(),
                false => format!("is not a known field; the fields are: {}", known.join(", ")),
            };
            return Err(Invalid::new(path(within, &short(&name)), what));
        };
        let value = match (interface, field.is_lenient) {
            (Interface::Mcp, true) => without_blanks(value),
            (Interface::Http, _) => value,
            _ if field.is_joined => joined(value),
            (Interface::Mcp, _) if field.is_clamped => clamped(&field.shape, value),
            _ => value,
        };
        // A client that sends null for what it leaves out means just that.
        if value.is_null() && interface != Interface::Http {
            continue;
        }
        if let Some((_, before)) = named.iter().find(|(known, _)| *known == field.name) {
            let what = format!(
                "is sent twice, as `{}` and `{}`",
                short(before),
                short(&name)
            );
            return Err(Invalid::new(path(within, field.name), what));
        }
        let place = path(within, &field.spelled(interface));
        let value = match (interface, field.spelling, value) {
            // Its parts are options.
            (Interface::CommandLine, Spelling::Parts, Value::Object(parts)) => {
                object(interface, field.inner(), parts, within)?.into()
            }
            (Interface::Http, _, value) => {
                strict::check(&field.shape, &value, &place)?;
                value_of(&field.shape, value, &place)?
            }
            (_, _, value) => value_of(&field.shape, value, &place)?,
        };
        taken.insert(field.name.to_owned(), value);
        named.push((field.name, name));
    }
    let missing = fields
        .iter()
        .filter(|field| field.is_on(interface))
        .filter(|field| field.is_required_on(interface))
        .filter(|field| !field.is_lenient || interface == Interface::Http)
        .find(|field| !taken.contains_key(field.name));
    match missing {
        Some(field) => {
            let what = match &field.shape {
                Shape::Choice(words) | Shape::Choices(words) => {
                    format!("is missing: {}; one of {}", field.about, words.join(", "))
                }
                _ => format!("is missing: {}", field.about),
            };
            Err(Invalid::new(path(within, &field.spelled(interface)), what))
        }
        None => Ok(taken),
    }
}

/// A text without words is null; a null in a list is an empty text.
fn without_blanks(value: Value) -> Value {
    let unnull = |item: Value| match item {
        Value::Null => Value::String(String::new()),
        item => item,
    };
    match opened(value) {
        Value::Array(items) => items.into_iter().map(unnull).collect(),
        Value::String(text) if text.trim().is_empty() => Value::Null,
        value => value,
    }
}

/// At most the largest number that is allowed.
fn clamped(shape: &Shape, value: Value) -> Value {
    match (shape, whole_in(&value)) {
        (Shape::Whole { max, .. }, Some(number)) if number > *max => (*max).into(),
        _ => value,
    }
}

/// A list of texts as one text.
fn joined(value: Value) -> Value {
    let texts = value.as_array().map(|items| {
        let texts = items.iter().map(Value::as_str);
        texts.collect::<Option<Vec<&str>>>()
    });
    match texts {
        Some(Some(texts)) => Value::String(texts.join("\n")),
        _ => value,
    }
}

fn path(within: &str, name: &str) -> String {
    match within {
        "" => name.to_owned(),
        _ => format!("{within}.{name}"),
    }
}

/// A name of the caller's, short enough for a message.
fn short(name: &str) -> String {
    let masked = secrets::mask(name, &secrets::find(name));
    let line: Vec<&str> = masked.split_whitespace().collect();
    let line = line.join(" ");
    match line.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

fn value_of(shape: &Shape, value: Value, place: &str) -> Result<Value, Invalid> {
    let wrong = |value: &Value, wanted: &str| {
        let what = match value {
            Value::String(text) => format!("`{}` is not {wanted}", short(text)),
            value => format!("must be {wanted}, not {}", kind_of(value)),
        };
        Invalid::new(place, what)
    };
    match (shape, value) {
        (Shape::Text { min, max }, Value::String(text)) => {
            text_of(&text, *min, *max, place)?;
            Ok(Value::String(text))
        }
        (Shape::Text { .. }, value) => Err(wrong(&value, "a text")),
        (Shape::Whole { min, max }, value) => {
            let number = value.as_u64().or_else(|| whole_in(&value));
            match number {
                Some(number) if (*min..=*max).contains(&number) => Ok(number.into()),
                Some(number) => {
                    let what = format!("is {number}; from {min} to {max} is allowed");
                    Err(Invalid::new(place, what))
                }
                None => {
                    let wanted = format!("a whole number from {min} to {max}");
                    Err(match &value {
                        Value::Number(number) => {
                            Invalid::new(place, format!("must be {wanted}, not {number}"))
                        }
                        other => wrong(other, &wanted),
                    })
                }
            }
        }
        (Shape::Number { min, max }, value) => match number_in(&value) {
            Some(number) if (*min..=*max).contains(&number) => Ok(number.into()),
            Some(number) => {
                let what = format!("is {number}; from {min} to {max} is allowed");
                Err(Invalid::new(place, what))
            }
            None => Err(wrong(&value, &format!("a number from {min} to {max}"))),
        },
        (Shape::Flag, value) => match (&value, value.as_str()) {
            (Value::Bool(_), _) => Ok(value),
            (_, Some("true")) => Ok(Value::Bool(true)),
            (_, Some("false")) => Ok(Value::Bool(false)),
            _ => Err(wrong(&value, "true or false")),
        },
        (Shape::Choice(words), value) => choice_of(words, &value, place),
        (Shape::Choices(words), value) => {
            let texts = texts_of(parted(value), words.len(), usize::MAX, place)?;
            let texts = texts.as_array().into_iter().flatten();
            texts.map(|word| choice_of(words, word, place)).collect()
        }
        (Shape::Texts { most, max }, value) => texts_of(value, *most, *max, place),
        (Shape::Words { most, max }, value) => texts_of(parted(value), *most, *max, place),
        (Shape::Parts(fields), value) => match opened(value) {
            Value::Object(sent) => object(Interface::Mcp, fields, sent, place).map(Value::Object),
            value => Err(wrong(&value, "an object")),
        },
        (Shape::List { of, most }, value) => list_of(of, value, *most, place),
        (Shape::Object | Shape::Json, value) => match opened(value) {
            value @ Value::Object(_) => Ok(value),
            value @ Value::Array(_) if matches!(shape, Shape::Json) => Ok(value),
            value => Err(wrong(&value, "an object")),
        },
    }
}

fn text_of(text: &str, min: usize, max: usize, place: &str) -> Result<(), Invalid> {
    let length = text.chars().count();
    if length > max {
        let what = format!("has {length} characters; at most {max} are allowed");
        return Err(Invalid::new(place, what));
    }
    if min > 0 && text.trim().is_empty() {
        return Err(Invalid::new(place, "is empty"));
    }
    Ok(())
}

fn whole_in(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        // 5.0 is what some clients make of 5.
        Value::Number(number) => {
            let number = number.as_f64()?;
            let is_whole = number.fract() == 0.0 && (0.0..1e15).contains(&number);
            is_whole.then(|| format!("{number:.0}").parse().ok())?
        }
        _ => None,
    }
}

fn number_in(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok().filter(|n: &f64| n.is_finite()),
        _ => None,
    }
}

fn choice_of(words: &[&str], value: &Value, place: &str) -> Result<Value, Invalid> {
    let expected = words.join(", ");
    let Some(word) = value.as_str() else {
        let what = format!("must be one of {expected}, not {}", kind_of(value));
        return Err(Invalid::new(place, what));
    };
    let plain = |word: &str| word.trim().to_lowercase().replace(['_', ' '], "-");
    let known = words.iter().find(|known| plain(known) == plain(word));
    match known {
        Some(known) => Ok(Value::String((*known).to_owned())),
        None => {
            let word = short(word);
            let what = format!("is `{word}`; it must be one of: {expected}");
            Err(Invalid::new(place, what))
        }
    }
}

fn texts_of(value: Value, most: usize, max: usize, place: &str) -> Result<Value, Invalid> {
    let items = match opened(value) {
        Value::Array(items) => items,
        single @ Value::String(_) => vec![single],
        other => {
            let what = format!("must be a list of texts, not {}", kind_of(&other));
            return Err(Invalid::new(place, what));
        }
    };
    check_count(items.len(), most, place)?;
    for (at, item) in items.iter().enumerate() {
        let place = format!("{place}[{at}]");
        match item {
            Value::String(text) => text_of(text, 0, max, &place)?,
            other => {
                let what = format!("must be a text, not {}", kind_of(other));
                return Err(Invalid::new(place, what));
            }
        }
    }
    Ok(Value::Array(items))
}

/// `"ops, deploy"` is a list of words: none of them has a space.
fn parted(value: Value) -> Value {
    match opened(value) {
        Value::String(text) if text.contains(',') => {
            let words = text.split(',').map(str::trim);
            words.filter(|word| !word.is_empty()).collect()
        }
        value => value,
    }
}

fn list_of(of: &[Field], value: Value, most: usize, place: &str) -> Result<Value, Invalid> {
    let items = match opened(value) {
        Value::Array(items) => items,
        single @ Value::Object(_) => vec![single],
        other => {
            let what = format!("must be a list of objects, not {}", kind_of(&other));
            return Err(Invalid::new(place, what));
        }
    };
    check_count(items.len(), most, place)?;
    let items = items.into_iter().enumerate().map(|(at, item)| {
        let place = format!("{place}[{at}]");
        match opened(item) {
            Value::Object(sent) => object(Interface::Mcp, of, sent, &place).map(Value::Object),
            other => {
                let what = format!("must be an object, not {}", kind_of(&other));
                Err(Invalid::new(place, what))
            }
        }
    });
    Ok(Value::Array(items.collect::<Result<_, _>>()?))
}

fn check_count(count: usize, most: usize, place: &str) -> Result<(), Invalid> {
    if count > most {
        let what = format!("has {count} entries; at most {most} are allowed");
        return Err(Invalid::new(place, what));
    }
    Ok(())
}

/// Some models send an object or a list as a text that holds its JSON.
fn opened(value: Value) -> Value {
    let Value::String(text) = &value else {
        return value;
    };
    match serde_json::from_str(text) {
        Ok(inner @ (Value::Object(_) | Value::Array(_))) => inner,
        _ => value,
    }
}

fn kind_of(value: &Value) -> &'static str {
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
mod tests;
