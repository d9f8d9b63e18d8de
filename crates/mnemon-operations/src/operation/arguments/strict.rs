//! The types of a JSON body, exactly as its schema has them: programs are told about a wrong type,
//! where a model is understood.

use mnemon_core::Invalid;
use serde_json::Value;

use super::{Field, Interface, Shape, kind_of, object, path};

pub(super) fn check(shape: &Shape, value: &Value, place: &str) -> Result<(), Invalid> {
    let wanted = match (shape, value) {
        (Shape::Text { .. }, Value::String(_))
        | (Shape::Number { .. }, Value::Number(_))
        | (Shape::Flag, Value::Bool(_))
        | (Shape::Object | Shape::Json, Value::Object(_))
        | (Shape::Json, Value::Array(_)) => return Ok(()),
        (Shape::Choice(words), Value::String(word)) => return known(words, word, place),
        (Shape::Whole { .. }, Value::Number(number)) if super::whole_in(value).is_some() => {
            let _ = number;
            return Ok(());
        }
        (Shape::Whole { min, max }, Value::Number(number)) => {
            let what = format!("is {number}; a whole number from {min} to {max} is allowed");
            return Err(Invalid::new(place, what));
        }
        (Shape::Choices(words), Value::Array(items)) => {
            texts(items, place)?;
            let mut given = items.iter().filter_map(Value::as_str);
            return given.try_for_each(|word| known(words, word, place));
        }
        (Shape::Texts { .. } | Shape::Words { .. }, Value::Array(items)) => {
            return texts(items, place);
        }
        (Shape::Parts(fields), Value::Object(sent)) => {
            return inner(fields, sent.clone(), place);
        }
        (Shape::List { of, .. }, Value::Array(items)) => {
            for (at, item) in items.iter().enumerate() {
                let place = path("", &format!("{place}[{at}]"));
                match item {
                    Value::Object(sent) => inner(of, sent.clone(), &place)?,
                    other => return Err(wrong(other, "an object", &place)),
                }
            }
            return Ok(());
        }
        (Shape::Text { .. } | Shape::Choice(_), _) => "a text",
        (Shape::Whole { .. }, _) => "a whole number",
        (Shape::Number { .. }, _) => "a number",
        (Shape::Flag, _) => "true or false",
        (Shape::Choices(_) | Shape::Texts { .. } | Shape::Words { .. }, _) => "a list of texts",
        (Shape::Parts(_) | Shape::Object, _) => "an object",
        (Shape::List { .. }, _) => "a list of objects",
        (Shape::Json, _) => "an object or a list",
    };
    Err(wrong(value, wanted, place))
}

fn wrong(value: &Value, wanted: &str, place: &str) -> Invalid {
    Invalid::new(place, format!("must be {wanted}, not {}", kind_of(value)))
}

fn known(words: &[&str], word: &str, place: &str) -> Result<(), Invalid> {
    match words.contains(&word) {
        true => Ok(()),
        false => {
            let word = super::short(word);
            let what = format!("is `{word}`; it must be one of: {}", words.join(", "));
            Err(Invalid::new(place, what))
        }
    }
}

fn texts(items: &[Value], place: &str) -> Result<(), Invalid> {
    match items.iter().find(|item| !item.is_string()) {
        Some(item) => Err(wrong(item, "a list of texts", place)),
        None => Ok(()),
    }
}

fn inner(
    fields: &[Field],
    sent: serde_json::Map<String, Value>,
    place: &str,
) -> Result<(), Invalid> {
    object(Interface::Http, fields, sent, place).map(drop)
}
