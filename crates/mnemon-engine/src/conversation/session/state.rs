//! A saved session as JSON: one shape is written, three are read.

use mnemon_core::{Ctx, Invalid};
use serde_json::{Map, Value, json};

use super::SessionId;
use crate::records::safety::TakenOut;
use crate::records::{Error, Safety};

/// The states of a session's parts.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionState {
    pub session: SessionId,
    /// The state of each part, by its name.
    pub components: Map<String, Value>,
    /// When it was saved, as it was written.
    pub timestamp: Option<String>,
    /// What else stood in the envelope: it is kept.
    pub extra: Map<String, Value>,
}

const ID: &str = "sessionId";
const COMPONENTS: &str = "components";
const TIMESTAMP: &str = "timestamp";

impl SessionState {
    /// The same without secrets. The name of a session is refused if it holds one: a masked name
    /// would be another session's.
    pub(super) fn screened(&self, ctx: &Ctx, safety: Safety) -> Result<Self, Invalid> {
        safety.check_identifier("session", self.session.as_str())?;
        let mut taken = TakenOut::default();
        let mut screened = self.clone();
        safety.clean_map("components", &mut screened.components, &mut taken)?;
        safety.clean_map("session", &mut screened.extra, &mut taken)?;
        ctx.notices.extend(taken.sentences());
        Ok(screened)
    }

    /// A session without parts.
    pub fn new(session: SessionId) -> Self {
        Self {
            session,
            components: Map::new(),
            timestamp: None,
            extra: Map::new(),
        }
    }

    /// The envelope: `sessionId`, `components`, `timestamp`.
    pub fn to_json(&self) -> Value {
        let mut envelope = self.extra.clone();
        envelope.insert(ID.to_owned(), json!(self.session));
        envelope.insert(
            COMPONENTS.to_owned(),
            Value::Object(self.components.clone()),
        );
        if let Some(timestamp) = &self.timestamp {
            envelope.insert(TIMESTAMP.to_owned(), json!(timestamp));
        }
        Value::Object(envelope)
    }

    /// The envelope for people to read.
    pub(super) fn to_text(&self) -> Result<Vec<u8>, Error> {
        let mut text = serde_json::to_vec_pretty(&self.to_json())
            .map_err(|error| Invalid::new("session", error.to_string()))?;
        text.push(b'\n');
        Ok(text)
    }

    /// Reads the envelope, or an object with the parts directly in it. `place` is for the error.
    pub fn from_json(session: &SessionId, json: Value, place: &str) -> Result<Self, Error> {
        let shape = |what: String| Error::NoSessionFile {
            place: place.to_owned(),
            what,
        };
        let Value::Object(mut members) = json else {
            let what = format!("it holds {}, not an object", sort(&json));
            return Err(shape(what));
        };
        // A part could be called `components`; an envelope names its session, too.
        if !members.get(ID).is_some_and(Value::is_string) || !members.contains_key(COMPONENTS) {
            return Self::from_parts(session, members).map_err(shape);
        }
        let named = members.remove(ID).unwrap_or_default();
        if named != json!(session) {
            return Err(shape(format!(
                "it holds session {named}, not `{session}`; to copy a session, fork it"
            )));
        }
        let components = match members.remove(COMPONENTS).unwrap_or_default() {
            Value::Object(components) => components,
            other => {
                let what = format!("`{COMPONENTS}` is {}, not an object", sort(&other));
                return Err(shape(what));
            }
        };
        let timestamp = match members.remove(TIMESTAMP) {
            Some(Value::String(timestamp)) => Some(timestamp),
            None | Some(Value::Null) => None,
            Some(other) => Some(other.to_string()),
        };
        Ok(Self {
            session: session.clone(),
            components,
            timestamp,
            extra: members,
        })
    }

    fn from_parts(session: &SessionId, parts: Map<String, Value>) -> Result<Self, String> {
        if let Some((name, state)) = parts.iter().find(|(_, state)| !state.is_object()) {
            return Err(format!(
                "it is neither a saved session nor an object of states: `{}` is {}",
                name.escape_debug(),
                sort(state)
            ));
        }
        Ok(Self {
            components: parts,
            ..Self::new(session.clone())
        })
    }

    /// Reads the text of a session file.
    pub(super) fn from_text(session: &SessionId, text: &[u8], place: &str) -> Result<Self, Error> {
        // Some editors begin UTF-8 with a byte order mark.
        let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
        let json = serde_json::from_slice(text).map_err(|error| Error::NoSessionFile {
            place: place.to_owned(),
            what: format!("it is not JSON: {error}"),
        })?;
        Self::from_json(session, json, place)
    }
}

/// What sort of JSON it is, in words.
fn sort(json: &Value) -> &'static str {
    match json {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Under which of these names there is a part: as it is written, or else with its first letter in
/// the other case (`InMemoryMemory`, `inMemoryMemory`).
pub(super) fn find<'a>(components: &'a Map<String, Value>, names: &[&str]) -> Option<&'a str> {
    let exact = names
        .iter()
        .find_map(|name| components.get_key_value(*name));
    let found = exact.or_else(|| {
        let alike = |key: &str| names.iter().any(|name| same_but_for_first_case(key, name));
        components.iter().find(|(key, _)| alike(key))
    });
    found.map(|(key, _)| key.as_str())
}

fn same_but_for_first_case(a: &str, b: &str) -> bool {
    let (mut left, mut right) = (a.chars(), b.chars());
    let first = match (left.next(), right.next()) {
        (Some(a), Some(b)) => a.to_lowercase().eq(b.to_lowercase()),
        _ => false,
    };
    first && left.as_str() == right.as_str()
}
