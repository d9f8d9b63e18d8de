//! A line of the log.

use mnemon_core::{Invalid, Time};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What happened, as the log's format names it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Said {
    User {
        content: String,
    },
    Thought {
        content: String,
    },
    Action {
        tool: String,
        #[serde(default)]
        params: Value,
    },
    Observation {
        result: Value,
    },
}

impl Said {
    /// That it says something. A tool may well answer with nothing.
    pub fn check(&self) -> Result<(), Invalid> {
        let (field, text, what) = match self {
            Self::User { content } | Self::Thought { content } => {
                ("content", content, "is empty; there is nothing to append")
            }
            Self::Action { tool, .. } => ("tool", tool, "is empty; name the tool"),
            Self::Observation { .. } => return Ok(()),
        };
        match text.trim().is_empty() {
            true => Err(Invalid::new(field, what)),
            false => Ok(()),
        }
    }
}

/// A line: what happened, or an object of a sort that a newer writer may know.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    Known { said: Said, ts: Option<String> },
    Other(Map<String, Value>),
}

#[derive(Serialize, Deserialize)]
struct Written {
    #[serde(flatten)]
    said: Said,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ts: Option<String>,
}

/// The time of a line that is written now: later than a purge, whatever the clock says.
pub(crate) fn after_purge(now: Time, purged: Option<Time>) -> Time {
    purged.map_or(now, |purged| now.max(purged.plus_millis(1)))
}

impl Line {
    /// What happened at this moment.
    #[must_use]
    pub fn new(said: Said, now: Time) -> Self {
        let ts = Some(now.to_string());
        Self::Known { said, ts }
    }

    /// The line as it is written, with its break, and with the id of what it is a part of.
    pub(crate) fn to_bytes_of(&self, id: &str) -> Result<Vec<u8>, Invalid> {
        let mut bytes = self.to_bytes()?;
        if !id.is_empty() {
            let id = serde_json::to_string(id);
            let id = id.map_err(|error| Invalid::new("id", error.to_string()))?;
            // Before the brace and the break at the end.
            bytes.truncate(bytes.len().saturating_sub(2));
            bytes.extend(format!(",\"id\":{id}}}\n").into_bytes());
        }
        Ok(bytes)
    }

    /// The line as it is written, with its break.
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, Invalid> {
        let written = match self {
            Self::Known { said, ts } => serde_json::to_vec(&Written {
                said: said.clone(),
                ts: ts.clone(),
            }),
            Self::Other(members) => serde_json::to_vec(members),
        };
        let mut bytes = written.map_err(|error| Invalid::new("line", error.to_string()))?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Reads a line; a JSON object is one, whatever its sort.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
        let members: Map<String, Value> =
            serde_json::from_str(text).map_err(|_| "it is not a JSON object".to_owned())?;
        let known = serde_json::from_value::<Written>(Value::Object(members.clone()));
        Ok(match known {
            Ok(Written { said, ts }) => Self::Known { said, ts },
            Err(_) => Self::Other(members),
        })
    }

    /// Whether it was written before its session was purged. Of a line without a time nobody knows,
    /// so that it counts as purged.
    pub(super) fn is_purged(&self, purged: Option<Time>) -> bool {
        let Some(purged) = purged else {
            return false;
        };
        let ts = match self {
            Self::Known { ts, .. } => ts.as_deref(),
            Self::Other(members) => members.get("ts").and_then(Value::as_str),
        };
        let at = ts.and_then(|ts| ts.parse::<Time>().ok());
        at.is_none_or(|at| at <= purged)
    }

    /// The line in words.
    #[must_use]
    pub fn text(&self) -> String {
        let plain = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        match self {
            Self::Known { said, .. } => match said {
                Said::User { content } => format!("User: {content}"),
                Said::Thought { content } => format!("Thought: {content}"),
                Said::Action { tool, params } => format!("Action: {tool} {}", plain(params)),
                Said::Observation { result } => format!("Observation: {}", plain(result)),
            },
            Self::Other(members) => Value::Object(members.clone()).to_string(),
        }
    }

    /// Whether it is the answer to the action before it.
    pub(super) fn is_observation(&self) -> bool {
        matches!(
            self,
            Self::Known {
                said: Said::Observation { .. },
                ..
            }
        )
    }
}
