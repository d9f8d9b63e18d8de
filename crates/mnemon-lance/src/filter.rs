//! Filter expressions, in the SQL of DataFusion.
//!
//! [`literal`] is the only place where a text becomes a part of an expression.

use mnemon_adapters::external_index::{Audience, Condition};
use mnemon_core::Tenant;

/// A string literal. Only a quote could end it; there are no escapes.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn list<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let texts: Vec<String> = texts.into_iter().map(literal).collect();
    texts.join(", ")
}

/// All documents of a tenant.
pub(crate) fn of_tenant(tenant: &Tenant) -> String {
    format!("tenant = {}", literal(tenant.as_str()))
}

/// The tenant's documents with these ids, of which there is at least one.
pub(crate) fn ids<'a>(tenant: &Tenant, ids: impl IntoIterator<Item = &'a str>) -> String {
    format!("{} AND id IN ({})", of_tenant(tenant), list(ids))
}

/// The tenant's documents after this id.
pub(crate) fn after(tenant: &Tenant, id: Option<&str>) -> String {
    match id {
        Some(id) => format!("{} AND id > {}", of_tenant(tenant), literal(id)),
        None => of_tenant(tenant),
    }
}

/// The documents that are asked for.
pub(crate) fn filter(asked: &Audience<'_>) -> String {
    let all: Vec<String> = asked.conditions().iter().map(condition).collect();
    all.join(" AND ")
}

fn condition(condition: &Condition) -> String {
    let texts = |texts: &[String]| list(texts.iter().map(String::as_str));
    match condition {
        Condition::Is(field, text) => format!("{} = {}", column(field), literal(text)),
        Condition::In(field, all) => format!("{field} IN ({})", texts(all)),
        Condition::HasAny(field, all) => {
            format!("array_has_any({field}, make_array({}))", texts(all))
        }
        Condition::AtLeast(field, least) => format!("{field} >= {least}"),
        Condition::Below(field, most) => format!("{field} < {most}"),
    }
}

/// The column of a field.
fn column(field: &'static str) -> &'static str {
    match field {
        "user" => "owner_user",
        "agent" => "owner_agent",
        "session" => "owner_session",
        other => other,
    }
}

/// The same documents, as far as they have a vector in this column.
pub(crate) fn placed(filter: &str, column: &str) -> String {
    format!("{filter} AND {column} IS NOT NULL")
}

/// The same documents, as far as their speaker has one of these first words.
pub(crate) fn spoken(filter: &str, words: &[&str]) -> String {
    format!(
        "{filter} AND speaker_word IN ({})",
        list(words.iter().copied())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_its_literal() {
        for (text, expected) in [
            ("ann", "'ann'"),
            ("' OR tenant <> '", "''' OR tenant <> '''"),
            (r"\' OR 1 = 1", r"'\'' OR 1 = 1'"),
            (r"\", r"'\'"),
            (r#"it "is" {x} 日本"#, r#"'it "is" {x} 日本'"#),
        ] {
            assert_eq!(literal(text), expected);
        }
    }
}
