//! `[window]` and `[memory]`: how conversations are kept small.

use mnemon_core::Invalid;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::risk::HARMLESS;
use super::{ConfigError, Key, Layers, Origin, file_key};

/// Every key of both tables. Their names after the point are those of the settings. A project may
/// set them: they say when a conversation is made shorter, and all that is left out of it can be
/// read back.
pub(super) const KEYS: &[&Key] = &[
    &file_key("window.msg_threshold", HARMLESS),
    &file_key("window.max_token", HARMLESS),
    &file_key("window.token_ratio", HARMLESS),
    &file_key("window.last_keep", HARMLESS),
    &file_key("window.large_payload_threshold", HARMLESS),
    &file_key("window.offload_single_preview", HARMLESS),
    &file_key("window.min_consecutive_tool_messages", HARMLESS),
    &file_key("window.current_round_compression_ratio", HARMLESS),
    &file_key("window.min_compression_token_threshold", HARMLESS),
    &file_key("memory.hot_window_size", HARMLESS),
    &file_key("memory.compression_threshold", HARMLESS),
    &file_key("memory.chunk_size", HARMLESS),
    &file_key("memory.max_tokens", HARMLESS),
];

/// Numbers that are checked together.
pub(super) fn read<T: DeserializeOwned + Serialize + Default>(
    layers: &Layers<'_>,
    table: &str,
    check: impl Fn(&T) -> Result<(), Invalid>,
) -> Result<T, ConfigError> {
    let mut members = Map::new();
    let mut found: Vec<(&Key, Origin)> = Vec::new();
    let keys = KEYS.iter().filter(|key| key.name.starts_with(table));
    for key in keys.clone() {
        let Some((text, origin)) = layers.find(key)? else {
            continue;
        };
        let number = number(&text).map_err(|what| value_error(key, origin.clone(), what))?;
        let name = key.name.trim_start_matches(table);
        // By itself first, so that the message names the right line.
        T::deserialize(json!({ name: number }))
            .map_err(|error| value_error(key, origin.clone(), error.to_string()))?;
        members.insert(name.to_owned(), number);
        found.push((key, origin));
    }
    let origin = |name: &str| {
        let one = found.iter().find(|(key, _)| key.name == name);
        one.map_or(Origin::Default, |(_, origin)| origin.clone())
    };
    let value = T::deserialize(Value::Object(members)).unwrap_or_default();
    if let Err(invalid) = check(&value) {
        let name = format!("{table}{}", invalid.field);
        let key = keys.clone().find(|key| key.name == name);
        // What does not go together was said somewhere, if not there.
        let said = found
            .iter()
            .find(|(key, _)| key.name == name)
            .or(found.first());
        if let Some((said, origin)) = said {
            let what = format!("{} {}", invalid.field, invalid.what);
            return Err(value_error(key.unwrap_or(said), origin.clone(), what));
        }
    }
    let all = serde_json::to_value(&value).unwrap_or_default();
    for key in keys {
        let number = all.get(key.name.trim_start_matches(table));
        layers.remember(key, number, &origin(key.name));
    }
    Ok(value)
}

fn number(text: &str) -> Result<Value, String> {
    match serde_json::from_str::<Value>(text) {
        Ok(number @ Value::Number(_)) => Ok(number),
        _ => Err(format!("`{}` is not a number", text.escape_debug())),
    }
}

fn value_error(key: &Key, origin: Origin, what: String) -> ConfigError {
    ConfigError::Value {
        key: key.name,
        origin,
        what,
    }
}
