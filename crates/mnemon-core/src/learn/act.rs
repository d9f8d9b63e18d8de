//! One step of a run, cut down to what is learnt from.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::words;
use crate::model::{Id, limits};
use crate::search::text;

words! {
    /// How a step ended. Its word is the tag by which such steps are found.
    Ended, "ended" {
        Done = "done",
        Failed = "failed",
        /// It was begun, and nobody has said how it ended: it was cancelled, its process was
        /// killed, or it is still running.
        Cancelled = "cancelled",
    }
}

/// A step, cut down. Outputs are not kept: nothing is learnt from them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Act {
    /// The step it was.
    pub id: Id,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    pub ended: Ended,
    /// What it was called with, one entry for each value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, String>,
    /// What was the case: the plain values of the step's metadata.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub context: BTreeMap<String, String>,
    /// Words of what was asked for; where nobody said what that was, of what it was called with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
    /// Whether somebody said what was asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asked: bool,
    /// The class of its error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// What the user put right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correction: Option<String>,
    /// What the user asked to remember.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remember: Option<String>,
}

/// Metadata with a meaning of its own; it is no context.
const SPOKEN: [&str; 6] = [
    "correction",
    "remember",
    "outcome",
    "request",
    "query",
    "goal",
];

impl Act {
    /// A step without anything but its name and its end.
    pub fn new(id: Id, tool: Option<&str>, ended: Ended) -> Self {
        Self {
            id,
            tool: tool.map(str::to_owned),
            ended,
            params: BTreeMap::new(),
            context: BTreeMap::new(),
            words: Vec::new(),
            asked: false,
            error: None,
            latency_ms: None,
            cost: None,
            correction: None,
            remember: None,
        }
    }

    /// With what it was called with, and the words in that.
    #[must_use]
    pub fn called_with(mut self, input: &Value) -> Self {
        flatten(input, "", 0, &mut self.params);
        for text in self.params.values() {
            add_words(text, &mut self.words);
        }
        self
    }

    /// With what its metadata says.
    #[must_use]
    pub fn known(mut self, metadata: &Map<String, Value>) -> Self {
        let text = |name: &str| metadata.get(name).and_then(Value::as_str).map(cut);
        self.correction = text("correction").filter(|text| !text.trim().is_empty());
        self.remember = text("remember").filter(|text| !text.trim().is_empty());
        let mut asked = Vec::new();
        for text in ["request", "query", "goal"].into_iter().filter_map(text) {
            add_words(&text, &mut asked);
        }
        // A command's words are no words of the request, if there is one.
        if !asked.is_empty() {
            self.words = asked;
            self.asked = true;
        }
        for (name, value) in metadata {
            let plain = !matches!(value, Value::Array(_) | Value::Object(_) | Value::Null);
            let room = self.context.len() < limits::LEARN_PARAMS;
            if plain && room && !SPOKEN.contains(&name.as_str()) {
                self.context.insert(cut(name), shown(value));
            }
        }
        self
    }
}

/// One entry for each value in the input, named by its path; what is nested deeper than
/// [`limits::LEARN_DEPTH`] counts as one value.
fn flatten(input: &Value, path: &str, depth: usize, into: &mut BTreeMap<String, String>) {
    if into.len() >= limits::LEARN_PARAMS {
        return;
    }
    match input {
        Value::Null => {}
        Value::Object(members) if depth < limits::LEARN_DEPTH => {
            for (name, value) in members {
                let path = match path {
                    "" => cut(name),
                    path => cut(&format!("{path}.{name}")),
                };
                flatten(value, &path, depth + 1, into);
            }
        }
        value => {
            let path = if path.is_empty() { "input" } else { path };
            into.insert(path.to_owned(), shown(value));
        }
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => cut(text),
        value => cut(&value.to_string()),
    }
}

/// At most [`limits::LEARN_VALUE_CHARS`] characters. A longer text is known by its beginning and
/// its length, so that two of them are rarely taken for one.
fn cut(text: &str) -> String {
    let mut head: String = text.chars().take(limits::LEARN_VALUE_CHARS).collect();
    if head.len() < text.len() {
        head.push_str(&format!("… ({} bytes)", text.len()));
    }
    head
}

/// The words of a text that say something, each once, in small letters.
pub(super) fn add_words(text: &str, into: &mut Vec<String>) {
    for word in text.split(|c: char| !c.is_alphanumeric()) {
        if into.len() >= limits::LEARN_WORDS {
            return;
        }
        let starts = word.chars().next().is_some_and(char::is_alphabetic);
        let word = word.to_lowercase();
        if starts && word.chars().count() > 1 && !into.contains(&word) && !is_stop(&word) {
            into.push(word);
        }
    }
}

fn is_stop(word: &str) -> bool {
    text::analyse(word).terms().any(|term| term.stop)
}

/// What sort of error a message tells of: its first line, in small letters, with whatever differs
/// from one time to the next (numbers, ids, paths, addresses, what is quoted) taken out.
pub fn error_class(message: &str) -> String {
    let line = message.lines().find(|line| !line.trim().is_empty());
    let line = line.unwrap_or_default();
    let head: String = line.chars().take(1000).collect();
    let plain = without_quotes(&head.to_lowercase());
    let words = plain.split_whitespace().map(|word| {
        let core = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '/' && c != '\\');
        let varies = core.contains(['/', '\\', '@', '='])
            || core.chars().any(|c| c.is_ascii_digit())
            || core.contains("::") && core.len() > 40;
        match varies {
            true => "*",
            false => core,
        }
    });
    let mut class: Vec<&str> = Vec::new();
    for word in words.filter(|word| !word.is_empty()) {
        if class.len() == 12 {
            break;
        }
        if !(word == "*" && class.last() == Some(&"*")) {
            class.push(word);
        }
    }
    if class.iter().all(|word| *word == "*") {
        return "error".to_owned();
    }
    class.join(" ")
}

/// The text with what stands between quotes replaced. An apostrophe within a word is no quote.
fn without_quotes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut open: Option<char> = None;
    let mut held = String::new();
    let mut before = ' ';
    for c in text.chars() {
        match open {
            None if matches!(c, '"' | '`') || c == '\'' && !before.is_alphanumeric() => {
                open = Some(c);
                held.clear();
            }
            None => plain.push(c),
            Some(quote) if c == quote => {
                plain.push_str(" * ");
                open = None;
            }
            Some(_) => held.push(c),
        }
        before = c;
    }
    // A quote that never ended was none.
    if open.is_some() {
        plain.push_str(&held);
    }
    plain
}
