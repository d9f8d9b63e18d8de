//! Filter expressions.
//!
//! Values stand in the expression itself, because `milvus-lite` has no templates. [`literal`] is the
//! only place where a text becomes a part of an expression.

use std::fmt::Write;

use mnemon_adapters::external_index::Audience;
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

/// The documents that are asked for. Metadata, sources, flows and nodes are not in the index.
pub(crate) fn filter(asked: &Audience<'_>) -> String {
    let filter = asked.filter;
    let mut all = of_tenant(asked.tenant);
    let mut and = |condition: std::fmt::Arguments<'_>| {
        // Writing to a string cannot fail.
        let _ = write!(all, " and {condition}");
    };
    and(format_args!("expires >= {}", asked.now.millis()));
    let owner = &filter.owner;
    for (field, part) in [
        ("user", &owner.user),
        ("agent", &owner.agent),
        ("session", &owner.session),
    ] {
        if let Some(name) = part {
            and(format_args!("{field} == {}", literal(name)));
        }
    }
    if let Some(audiences) = filter.viewer.audiences() {
        let seen: Vec<String> = audiences.iter().map(ToString::to_string).collect();
        let seen = seen.iter().map(String::as_str).chain(["everyone"]);
        and(format_args!("audience in {}", list(seen)));
    }
    let sorts: [(&str, Vec<&str>); 3] = [
        (
            "scope",
            filter.scopes.iter().map(|it| it.as_str()).collect(),
        ),
        ("kind", filter.kinds.iter().map(|it| it.as_str()).collect()),
        (
            "namespace",
            filter.namespaces.iter().map(|it| it.as_str()).collect(),
        ),
    ];
    for (field, values) in sorts {
        if !values.is_empty() {
            and(format_args!("{field} in {}", list(values)));
        }
    }
    let tags: Vec<String> = filter.tags.iter().map(|tag| tag.to_lowercase()).collect();
    if !tags.is_empty() {
        let tags = list(tags.iter().map(String::as_str));
        and(format_args!("array_contains_any(tags, {tags})"));
    }
    if let Some(since) = filter.since {
        and(format_args!("created >= {}", since.millis()));
    }
    if let Some(until) = filter.until {
        and(format_args!("created < {}", until.millis()));
    }
    all
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
