//! BEAM: long chats of a user with an assistant.
//!
//! A chat is a folder with `chat.json` and `probing_questions.json`, or the latter in a folder of
//! that name. `chat.json` is a list of batches; a batch is an object with `turns`, or directly a
//! list of turns or messages; a turn is a list of messages. The largest chats have a list of plans
//! instead: objects that map `plan-1`, `plan-2` … to lists of batches.

mod chat;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::dataset::{Conversation, Dataset, Keys, Question, malformed, read_json};
use crate::Error;
use chat::Chat;

const CHAT: &str = "chat.json";
const QUESTIONS: &str = "probing_questions.json";
/// Questions that no message answers.
const ABSTENTION: &str = "abstention";
/// Folders below the one that was named: `chats/100K/1`.
const FOLDER_DEPTH: usize = 3;
/// The names of the reference answer; which of them a question has depends on its category.
const ANSWERS: [&str; 5] = [
    "answer",
    "ideal_response",
    "ideal_answer",
    "ideal_summary",
    "expected_compliance",
];

#[derive(Deserialize)]
struct Probe {
    question: String,
    #[serde(default)]
    source_chat_ids: Value,
    #[serde(flatten)]
    other: Map<String, Value>,
}

/// Reads a chat, or every chat below a folder.
pub fn read(folder: &Path) -> Result<Dataset, Error> {
    let mut chats = Vec::new();
    find_chats(folder, FOLDER_DEPTH, &mut chats)?;
    if chats.is_empty() {
        return Err(malformed(
            folder,
            format_args!("has no chat: no folder in it has {CHAT}"),
        ));
    }
    let conversations = chats.iter().map(|chat| {
        let name = chat.strip_prefix(folder).unwrap_or(chat);
        let name = match name.as_os_str().is_empty() {
            true => Path::new(chat.file_name().unwrap_or(chat.as_os_str())),
            false => name,
        };
        conversation(chat, name.to_string_lossy().replace('\\', "/"))
    });
    Ok(Dataset {
        format: "beam",
        conversations: conversations.collect::<Result<_, _>>()?,
        is_recall_capped: true,
    })
}

/// Folders with a chat, in the order of their numbers. Folders inside a chat belong to it.
fn find_chats(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), Error> {
    if folder.join(CHAT).is_file() {
        found.push(folder.to_owned());
        return Ok(());
    }
    let failed = |source| Error::File {
        path: folder.to_owned(),
        verb: "read",
        source,
    };
    let mut inside = Vec::new();
    for entry in folder.read_dir().map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            inside.push(path);
        }
    }
    inside.sort_by_key(|path| {
        let name = path.file_name().unwrap_or_default();
        chat::natural(&name.to_string_lossy())
    });
    if depth > 0 {
        for path in inside {
            find_chats(&path, depth - 1, found)?;
        }
    }
    Ok(())
}

fn conversation(folder: &Path, name: String) -> Result<Conversation, Error> {
    let path = folder.join(CHAT);
    let chat: Value = read_json(&path, "the JSON of a BEAM chat")?;
    let chat = Chat::read(&chat).map_err(|what| malformed(&path, what))?;
    let path = match folder.join(QUESTIONS) {
        beside if beside.is_file() => beside,
        _ => folder.join("probing_questions").join(QUESTIONS),
    };
    let form = "BEAM's questions (a category with a list of questions in each)";
    let probes: BTreeMap<String, Vec<Probe>> = read_json(&path, form)?;
    let mut conversation = Conversation {
        name,
        entries: chat.entries,
        ..Conversation::default()
    };
    for (category, probes) in probes {
        if category == ABSTENTION {
            continue;
        }
        for (n, probe) in probes.into_iter().enumerate() {
            let mut ids = Vec::new();
            source_ids(&probe.source_chat_ids, &chat.keys, &mut ids);
            conversation.ask(Question {
                id: format!("{}:{category}:{n}", conversation.name),
                category: Some(category.replace('_', " ")),
                expected: chat.keys.evidence(ids),
                answer: answer(&probe.other),
                text: probe.question,
                ..Question::default()
            });
        }
    }
    Ok(conversation)
}

/// Ids of messages, however they are nested: numbers, texts, and texts with several numbers.
fn source_ids(value: &Value, keys: &Keys, ids: &mut Vec<String>) {
    match value {
        Value::Array(list) => list.iter().for_each(|one| source_ids(one, keys, ids)),
        Value::Object(map) => map.values().for_each(|one| source_ids(one, keys, ids)),
        Value::Number(_) => ids.extend(chat::id_of(value)),
        Value::String(text) if keys.has(text.trim()) => ids.push(text.trim().to_owned()),
        Value::String(text) => {
            let numbers = text.split(|c: char| !c.is_ascii_digit());
            ids.extend(numbers.filter(|part| !part.is_empty()).map(str::to_owned));
        }
        Value::Null | Value::Bool(_) => {}
    }
}

/// The reference answer, or else the criteria by which answers are judged.
fn answer(probe: &Map<String, Value>) -> Option<String> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut answers = ANSWERS.iter().filter_map(|name| probe.get(*name));
    let answer = answers.find(|value| !value.is_null()).map(text);
    let rubric = || {
        let rubric = probe.get("rubric")?.as_array()?;
        Some(rubric.iter().map(text).collect::<Vec<_>>().join("\n"))
    };
    answer.or_else(rubric).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ids_are_found_in_every_nesting() {
        let mut keys = Keys::default();
        for (n, key) in ["1", "2", "3", "m-4", "5"].iter().enumerate() {
            keys.add(key, n);
        }
        let found = |value: Value| {
            let mut ids = Vec::new();
            source_ids(&value, &keys, &mut ids);
            ids
        };
        assert_eq!(found(json!([1, [2, ["3"]]])), ["1", "2", "3"]);
        assert_eq!(
            found(json!({"first": [1], "second": {"a": 2.0}})),
            ["1", "2"]
        );
        assert_eq!(found(json!("m-4")), ["m-4"]);
        assert_eq!(found(json!("[2, 3] and 5")), ["2", "3", "5"]);
        assert_eq!(found(json!([null, true])), [""; 0]);
    }
}
