//! Filter expressions, in the SQL of DataFusion.
//!
//! [`literal`] is the only place where a text becomes a part of an expression.

use std::fmt::Write;

use mnemon_adapters::external_index::Audience;
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

/// The documents that are asked for. Metadata, sources, flows and nodes are not in the index.
pub(crate) fn filter(asked: &Audience<'_>) -> String {
    let filter = asked.filter;
    let mut all = of_tenant(asked.tenant);
    let mut and = |condition: std::fmt::Arguments<'_>| {
        // Writing to a string cannot fail.
        let _ = write!(all, " AND {condition}");
    };
    and(format_args!("expires >= {}", asked.now.millis()));
    let owner = &filter.owner;
    for (column, part) in [
        ("owner_user", &owner.user),
        ("owner_agent", &owner.agent),
        ("owner_session", &owner.session),
    ] {
        if let Some(name) = part {
            and(format_args!("{column} = {}", literal(name)));
        }
    }
    if let Some(audiences) = filter.viewer.audiences() {
        let seen: Vec<String> = audiences.iter().map(ToString::to_string).collect();
        let seen = seen.iter().map(String::as_str).chain(["everyone"]);
        and(format_args!("audience IN ({})", list(seen)));
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
    for (column, values) in sorts {
        if !values.is_empty() {
            and(format_args!("{column} IN ({})", list(values)));
        }
    }
    let tags: Vec<String> = filter.tags.iter().map(|tag| tag.to_lowercase()).collect();
    if !tags.is_empty() {
        let tags = list(tags.iter().map(String::as_str));
        and(format_args!("array_has_any(tags, make_array({tags}))"));
    }
    if let Some(since) = filter.since {
        and(format_args!("created >= {}", since.millis()));
    }
    if let Some(until) = filter.until {
        and(format_args!("created < {}", until.millis()));
    }
    all
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
