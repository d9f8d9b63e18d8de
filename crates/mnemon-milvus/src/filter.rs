//! Filter expressions.
//!
//! Values stand in the expression itself, because `milvus-lite` has no templates. [`literal`] is the
//! only place where a text becomes a part of an expression.

use std::fmt::Write;

use mnemon_adapters::external_index::{Audience, Condition};
use mnemon_core::Tenant;

use crate::schema;

/// A string literal. Every character that could end it or begin an escape is escaped.
pub(crate) fn literal(text: &str) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    literal.push('"');
    for character in text.chars() {
        match character {
            '"' => literal.push_str("\\\""),
            '\\' => literal.push_str("\\\\"),
            '\n' => literal.push_str("\\n"),
            '\r' => literal.push_str("\\r"),
            '\t' => literal.push_str("\\t"),
            other => literal.push(other),
        }
    }
    literal.push('"');
    literal
}

fn list<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let texts: Vec<String> = texts.into_iter().map(literal).collect();
    format!("[{}]", texts.join(", "))
}

/// Documents with these keys.
pub(crate) fn keys<'a>(keys: impl IntoIterator<Item = &'a str>) -> String {
    format!("{} in {}", schema::KEY, list(keys))
}

/// All documents of a tenant.
pub(crate) fn of_tenant(tenant: &Tenant) -> String {
    format!("tenant == {}", literal(tenant.as_str()))
}

/// The documents that are asked for.
pub(crate) fn filter(asked: &Audience<'_>) -> String {
    let all: Vec<String> = asked.conditions().iter().map(condition).collect();
    all.join(" and ")
}

fn condition(condition: &Condition) -> String {
    let texts = |texts: &[String]| list(texts.iter().map(String::as_str));
    match condition {
        Condition::Is(field, text) => format!("{field} == {}", literal(text)),
        Condition::In(field, all) => format!("{field} in {}", texts(all)),
        Condition::HasAny(field, all) => format!("array_contains_any({field}, {})", texts(all)),
        Condition::AtLeast(field, least) => format!("{field} >= {least}"),
        Condition::Below(field, most) => format!("{field} < {most}"),
    }
}

/// The same documents, as far as they have this term.
pub(crate) fn having(filter: &str, term: u32) -> String {
    format!("{filter} and array_contains(terms, {term})")
}

/// The same documents, as far as they were created at this time or later.
pub(crate) fn since(filter: &str, millis: i64) -> String {
    format!("{filter} and created >= {millis}")
}

/// The same documents, as far as their speaker has one of these first words and is not known.
pub(crate) fn spoken(filter: &str, words: &[&str], known: &[String]) -> String {
    let mut filter = format!(
        "{filter} and speaker_word in {}",
        list(words.iter().copied())
    );
    if !known.is_empty() {
        let known = list(known.iter().map(String::as_str));
        // Writing to a string cannot fail.
        let _ = write!(filter, " and speaker not in {known}");
    }
    filter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_its_literal() {
        for (text, expected) in [
            ("ann", r#""ann""#),
            (r#"" or tenant != ""#, r#""\" or tenant != \"""#),
            (r"\", r#""\\""#),
            (r#"\" or 1 == 1"#, r#""\\\" or 1 == 1""#),
            ("a\nb\tc\r", r#""a\nb\tc\r""#),
            ("it's {x} 日本", r#""it's {x} 日本""#),
        ] {
            assert_eq!(literal(text), expected);
        }
    }
}
