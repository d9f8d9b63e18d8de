//! `memory.json`, the configuration of the notes document, taken as it is: its members become our
//! keys.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::ConfigError;

/// A key of ours, its value as text, its line.
pub(super) type Setting = (String, String, usize);

/// What each member is called here.
const MEMBERS: &[(&str, &str)] = &[
    ("maxEntries", "max_entries"),
    ("ttlDays", "ttl_days"),
    ("maxContentChars", "max_content_chars"),
    ("maxSummaryChars", "max_summary_chars"),
];
const OTHERS: &[(&str, &str, &str)] = &[
    ("retrieval", "topK", "notes.top_k"),
    ("retrieval", "minScore", "notes.min_score"),
    ("output", "includeContentByDefault", "notes.include_content"),
    ("output", "contentPreviewChars", "notes.preview_chars"),
    ("mcp", "defaultNamespace", "mcp.namespace"),
];
const NAMESPACES: [&str; 2] = ["short-term", "long-term"];

/// Whether the file is one of these, by its name.
pub(super) fn is_one(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
}

/// The settings of the file. Members that mean nothing here are left alone.
pub(super) fn read(path: &PathBuf, text: &str) -> Result<Vec<Setting>, ConfigError> {
    let document: Value = serde_json::from_str(text).map_err(|error| ConfigError::Syntax {
        path: path.clone(),
        line: error.line().max(1),
        what: error.to_string(),
    })?;
    if !document.is_object() {
        return Err(ConfigError::Syntax {
            path: path.clone(),
            line: 1,
            what: "is not a JSON object with storage, namespaces, retrieval or output".to_owned(),
        });
    }
    let reader = Reader {
        path,
        text,
        document: &document,
    };
    let mut settings = Vec::new();
    settings.extend(reader.store()?);
    for namespace in NAMESPACES {
        for (member, ours) in MEMBERS {
            let key = format!("namespaces.{namespace}.{ours}");
            settings.extend(reader.value(&["namespaces", namespace, member], key)?);
        }
    }
    for (group, member, key) in OTHERS {
        settings.extend(reader.value(&[group, member], (*key).to_owned())?);
    }
    Ok(settings)
}

struct Reader<'a> {
    path: &'a PathBuf,
    text: &'a str,
    document: &'a Value,
}

impl Reader<'_> {
    fn store(&self) -> Result<Option<Setting>, ConfigError> {
        let backend = ["storage", "defaultBackend"];
        let Some((_, backend, line)) = self.value(&backend, String::new())? else {
            return Ok(None);
        };
        let folder = self.value(&["storage", "directory"], String::new())?;
        let store = match (backend.as_str(), folder) {
            ("inmemory", _) => "ram:".to_owned(),
            ("jsonl", Some((_, folder, _))) => format!("jsonl:{folder}"),
            ("jsonl", None) => return Err(self.wrong(line, "storage.directory is missing")),
            // The service is the one of long_term.url; the store keeps its usual place.
            ("mem0" | "zep", _) => {
                let (key, is_on) = ("notes.long_term".to_owned(), "true".to_owned());
                return Ok(Some((key, is_on, line)));
            }
            (other, _) => {
                let other = other.escape_debug();
                let what =
                    format!("the backend `{other}` is not one of: inmemory, jsonl, mem0, zep");
                return Err(self.wrong(line, &what));
            }
        };
        Ok(Some(("store".to_owned(), store, line)))
    }

    /// The value at a path of members, if there is one.
    fn value(&self, names: &[&str], key: String) -> Result<Option<Setting>, ConfigError> {
        let pointer = format!("/{}", names.join("/"));
        let line = self.line(names);
        let text = match self.document.pointer(&pointer) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            Some(Value::Bool(truth)) => truth.to_string(),
            Some(_) => {
                let name = names.join(".");
                let what = format!("{name} must be a text, a number, or true or false");
                return Err(self.wrong(line, &what));
            }
        };
        Ok(Some((key, text, line)))
    }

    /// The line of a member: each name is looked for after the one before it.
    fn line(&self, names: &[&str]) -> usize {
        let mut at = 0;
        for name in names {
            let rest = self.text.get(at..).unwrap_or_default();
            at += rest.find(&format!("\"{name}\"")).unwrap_or_default();
        }
        super::file::line_of(self.text, at)
    }

    fn wrong(&self, line: usize, what: &str) -> ConfigError {
        ConfigError::Syntax {
            path: self.path.clone(),
            line,
            what: what.to_owned(),
        }
    }
}
