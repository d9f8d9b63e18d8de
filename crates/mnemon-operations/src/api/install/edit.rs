//! Puts an entry into a configuration and leaves every other byte of it alone.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::{Map, Value};
use toml_edit::{Array, DocumentMut, Item, Table, value};

/// JSON, with the comments and trailing commas that editors allow in theirs.
pub(super) fn json(
    text: &str,
    section_name: &str,
    name: &str,
    entry: &Map<String, Value>,
) -> Result<String, String> {
    let text = match text.trim() {
        "" => "{}\n",
        _ => text,
    };
    let root = CstRootNode::parse(text, &ParseOptions::default())
        .map_err(|error| format!("is not JSON; nothing was changed: {error}"))?;
    let object = root
        .object_value()
        .ok_or("is not a JSON object; nothing was changed")?;
    let section = match object.get(section_name) {
        Some(there) => there.object_value().ok_or_else(|| {
            format!("has `{section_name}`, which is not an object; nothing was changed")
        })?,
        None => {
            object.ensure_multiline();
            object.object_value_or_set(section_name)
        }
    };
    // The second version of opencode has its servers one level deeper, in `mcp.servers`.
    let deeper = match section_name {
        "mcp" => section
            .get("servers")
            .and_then(|deeper| deeper.object_value()),
        _ => None,
    };
    let section = deeper.unwrap_or(section);
    match section.get(name) {
        Some(there) => match there.object_value() {
            Some(own) => entry
                .iter()
                .for_each(|(key, wanted)| put(&own, key, wanted)),
            None => there.set_value(input(&Value::Object(entry.clone()))),
        },
        None => {
            section.ensure_multiline();
            section.append(name, input(&Value::Object(entry.clone())));
        }
    }
    Ok(root.to_string())
}

/// Sets a member of an entry that is there already. What somebody has added to it stays, and so
/// does what we only want to be there.
fn put(own: &CstObject, key: &str, wanted: &Value) {
    let only_there = wanted.as_object().is_some_and(Map::is_empty);
    match own.get(key) {
        Some(_) if only_there => {}
        Some(there) => {
            let now = there.value().map(|node| node.to_string());
            let now = now.and_then(|now| serde_json::from_str::<Value>(&now).ok());
            if now.as_ref() != Some(wanted) {
                there.set_value(input(wanted));
            }
        }
        None => {
            own.append(key, input(wanted));
        }
    }
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(flag) => CstInputValue::Bool(*flag),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(map) => {
            let fields = map.iter().map(|(name, value)| (name.clone(), input(value)));
            CstInputValue::Object(fields.collect())
        }
    }
}

/// TOML: the entry is a table `[section.name]`.
pub(super) fn toml(
    text: &str,
    section: &str,
    name: &str,
    entry: &Map<String, Value>,
) -> Result<String, String> {
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        format!("is not TOML; nothing was changed: {}", error.message())
    })?;
    let fresh = || {
        let mut table = Table::new();
        // Only its entries have a heading.
        table.set_implicit(true);
        Item::Table(table)
    };
    let servers = document.entry(section).or_insert_with(fresh);
    let servers = servers
        .as_table_like_mut()
        .ok_or_else(|| format!("has `{section}`, which is not a table; nothing was changed"))?;
    let there = servers
        .entry(name)
        .or_insert_with(|| Item::Table(Table::new()));
    let there = there.as_table_like_mut().ok_or_else(|| {
        format!("has `{section}.{name}`, which is not a table; nothing was changed")
    })?;
    for (key, wanted) in entry {
        let wanted = match wanted {
            Value::Array(items) => value(items.iter().filter_map(Value::as_str).collect::<Array>()),
            other => value(other.as_str().unwrap_or_default()),
        };
        let is_same = there
            .get(key)
            .is_some_and(|now| plain(now) == plain(&wanted));
        if !is_same {
            there.insert(key, wanted);
        }
    }
    Ok(document.to_string())
}

/// A value without the spaces and comments around it.
fn plain(item: &Item) -> Option<String> {
    let mut value = item.as_value()?.clone();
    if let Some(array) = value.as_array() {
        let texts: Vec<&str> = array.iter().filter_map(toml_edit::Value::as_str).collect();
        return Some(texts.join("\0"));
    }
    value.decor_mut().clear();
    Some(value.to_string())
}
