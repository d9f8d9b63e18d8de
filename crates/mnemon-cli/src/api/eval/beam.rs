//! BEAM: long chats of a user with an assistant.
//!
//! A chat is a folder with `chat.json` and `probing_questions.json`, or the latter in a folder of
//! that name. `chat.json` is a list of batches; a batch is an object with `turns`, or directly a
//! list of turns or messages; a turn is a list of messages. The largest chats have a list of plans
//! instead: objects that map `plan-1`, `plan-2` … to lists of batches.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mnemon_core::{Kind, Role, Time};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::dataset::{
    Conversation, Dataset, Entry, Keys, Question, malformed, moment, read_json, undated, utc,
};
use crate::Error;

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
        natural(&name.to_string_lossy())
    });
    if depth > 0 {
        for path in inside {
            find_chats(&path, depth - 1, found)?;
        }
    }
    Ok(())
}

/// Sorts `plan-10` after `plan-2`.
fn natural(name: &str) -> (String, u64, String) {
    let head: String = name.chars().take_while(|c| !c.is_ascii_digit()).collect();
    let digits = name.chars().skip_while(|c| !c.is_ascii_digit());
    let digits: String = digits.take_while(char::is_ascii_digit).collect();
    let number = digits.parse().unwrap_or_default();
    (head, number, name.to_owned())
}

fn conversation(folder: &Path, name: String) -> Result<Conversation, Error> {
    let path = folder.join(CHAT);
    let chat: Value = read_json(&path, "the JSON of a BEAM chat")?;
    let mut reader = Reader::default();
    reader.chat(&chat).map_err(|what| malformed(&path, what))?;
    if reader.entries.is_empty() {
        return Err(malformed(&path, "has no messages"));
    }
    let path = match folder.join(QUESTIONS) {
        beside if beside.is_file() => beside,
        _ => folder.join("probing_questions").join(QUESTIONS),
    };
    let form = "BEAM's questions (a category with a list of questions in each)";
    let probes: BTreeMap<String, Vec<Probe>> = read_json(&path, form)?;
    let mut conversation = Conversation {
        name,
        entries: reader.dated(),
        ..Conversation::default()
    };
    for (category, probes) in probes {
        if category == ABSTENTION {
            continue;
        }
        for (n, probe) in probes.into_iter().enumerate() {
            let mut ids = Vec::new();
            source_ids(&probe.source_chat_ids, &reader.keys, &mut ids);
            conversation.ask(Question {
                id: format!("{}:{category}:{n}", conversation.name),
                category: Some(category.replace('_', " ")),
                expected: reader.keys.evidence(ids),
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
        Value::Number(_) => ids.extend(id_of(value)),
        Value::String(text) if keys.has(text.trim()) => ids.push(text.trim().to_owned()),
        Value::String(text) => {
            let numbers = text.split(|c: char| !c.is_ascii_digit());
            ids.extend(numbers.filter(|part| !part.is_empty()).map(str::to_owned));
        }
        Value::Null | Value::Bool(_) => {}
    }
}

/// The id of a message is a number or a text; `7`, `7.0` and `"7"` are the same.
fn id_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => match number.as_f64() {
            Some(float) if !number.is_i64() && float.fract() == 0.0 => Some(format!("{float:.0}")),
            _ => Some(number.to_string()),
        },
        _ => None,
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

/// The messages of a chat, with the date that was seen last.
#[derive(Default)]
struct Reader {
    entries: Vec<(Entry, Option<Time>)>,
    keys: Keys,
    session: String,
    day: Option<Time>,
}

impl Reader {
    fn chat(&mut self, chat: &Value) -> Result<(), String> {
        let Some(list) = chat.as_array() else {
            return Err("is not a list of batches".to_owned());
        };
        self.batches(list, "")
    }

    /// A list of batches, or of plans with batches.
    fn batches(&mut self, list: &[Value], plan: &str) -> Result<(), String> {
        for (n, batch) in (1..).zip(list) {
            match batch {
                Value::Object(map) if !map.contains_key("turns") && !is_message(batch) => {
                    self.plans(map)?;
                }
                Value::Object(map) => {
                    let number = map.get("batch_number").and_then(id_of);
                    let number = number.unwrap_or_else(|| n.to_string());
                    self.session = format!("{plan}batch {number}");
                    self.anchor(map.get("time_anchor"));
                    let turns = map.get("turns").unwrap_or(batch);
                    let place = self.session.clone();
                    self.turns(turns, &place)?;
                }
                other => {
                    self.session = format!("{plan}batch {n}");
                    let place = self.session.clone();
                    self.turns(other, &place)?;
                }
            }
        }
        Ok(())
    }

    fn plans(&mut self, plans: &Map<String, Value>) -> Result<(), String> {
        let mut names: Vec<(&String, &Value)> = plans.iter().collect();
        names.sort_by_key(|(name, _)| natural(name));
        for (name, batches) in names {
            match batches {
                Value::Array(list) => self.batches(list, &format!("{name}, "))?,
                Value::Null => {}
                _ => {
                    return Err(format!(
                        "{name}: is neither a message nor a list of batches"
                    ));
                }
            }
        }
        Ok(())
    }

    /// A message, or messages in lists.
    fn turns(&mut self, value: &Value, place: &str) -> Result<(), String> {
        match value {
            Value::Array(list) => {
                for (n, inner) in (1..).zip(list) {
                    self.turns(inner, &format!("{place}, {n}"))?;
                }
                Ok(())
            }
            Value::Null => Ok(()),
            Value::Object(map) => {
                let message = self.message(map);
                message.map_err(|what| format!("{place}: {what}"))
            }
            _ => Err(format!("{place}: is not a message")),
        }
    }

    fn message(&mut self, message: &Map<String, Value>) -> Result<(), String> {
        let Some(content) = message.get("content").and_then(Value::as_str) else {
            return Err("the message has no `content`".to_owned());
        };
        let role = match message.get("role").and_then(Value::as_str) {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            _ => return Err("the `role` of the message is neither user nor assistant".to_owned()),
        };
        self.anchor(message.get("time_anchor"));
        let content = spoken(content);
        if content.is_empty() {
            return Ok(());
        }
        if let Some(id) = message.get("id").and_then(id_of) {
            self.keys.add(&id, self.entries.len());
        }
        let entry = Entry {
            kind: Kind::Message,
            role: Some(role),
            session: Some(self.session.clone()),
            ..Entry::note(content.to_owned(), undated())
        };
        self.entries.push((entry, self.day));
        Ok(())
    }

    /// Without a date that can be read the last one holds.
    fn anchor(&mut self, anchor: Option<&Value>) {
        let read = anchor.and_then(Value::as_str).and_then(day);
        self.day = read.or(self.day);
    }

    /// Messages before the first date have that date. A millisecond between messages keeps their
    /// order.
    fn dated(&mut self) -> Vec<Entry> {
        let first = self.entries.iter().find_map(|(_, day)| *day);
        let mut last = first.unwrap_or_else(undated);
        let entries = (0..).zip(std::mem::take(&mut self.entries));
        let dated = entries.map(|(n, (entry, day))| {
            last = day.unwrap_or(last);
            Entry {
                created: last.plus_millis(n),
                ..entry
            }
        });
        dated.collect()
    }
}

fn is_message(value: &Value) -> bool {
    value.get("content").is_some() && value.get("role").is_some()
}

/// The content without the mark ` ->-> 1,2` at its end, which links it to the plan of the chat.
fn spoken(content: &str) -> &str {
    let end = match content.rfind("->->") {
        Some(at) if !content.get(at..).unwrap_or_default().contains('\n') => at,
        _ => content.len(),
    };
    content.get(..end).unwrap_or(content).trim()
}

/// `March-15-2024`, the same with other punctuation, or an ISO date.
fn day(text: &str) -> Option<Time> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let written = || {
        let month = words
            .iter()
            .find(|word| word.starts_with(char::is_alphabetic))?;
        let numbers: Vec<&&str> = words
            .iter()
            .filter(|word| word.bytes().all(|b| b.is_ascii_digit()))
            .collect();
        let (day, year) = (numbers.first()?, numbers.get(1)?);
        let month = month.get(..3)?;
        let date = format!("{month} {day} {year}");
        let date = jiff::fmt::strtime::parse("%b %d %Y", date).ok()?;
        utc(date.to_date().ok()?.into())
    };
    moment("time_anchor", text.trim()).ok().or_else(written)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn anchors_are_read_with_any_punctuation() {
        let at = |text: &str| day(text).map(|time| time.to_string()[..10].to_owned());
        for same in [
            "March-15-2024",
            "March 15, 2024",
            "2024-03-15",
            "Mar-15-2024",
        ] {
            assert_eq!(at(same).as_deref(), Some("2024-03-15"), "{same}");
        }
        assert_eq!(at("July-04-2024").as_deref(), Some("2024-07-04"));
        for bad in ["", "soon", "March", "March-2024", "15", "é-1-2024"] {
            assert_eq!(at(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_mark_of_the_plan_is_not_content() {
        assert_eq!(spoken("I moved to Oslo. ->-> 1,2"), "I moved to Oslo.");
        assert_eq!(spoken("a ->-> b\nc"), "a ->-> b\nc");
        assert_eq!(spoken(" ->-> 3"), "");
    }

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

    fn read_chat(chat: &Value) -> Result<Vec<Entry>, String> {
        let mut reader = Reader::default();
        reader.chat(chat)?;
        Ok(reader.dated())
    }

    fn said(id: usize, text: &str) -> Value {
        json!({"id": id, "role": "user", "content": text})
    }

    #[test]
    fn plans_and_bare_lists_are_chats_too() {
        let batch = |n: usize| json!({"batch_number": n, "turns": [[said(n, "hello")]]});
        let plans =
            json!([{"plan-10": [batch(1)], "plan-2": [batch(1), batch(2)], "plan-3": null}]);
        let sessions = |chat: &Value| -> Vec<String> {
            let entries = read_chat(chat).unwrap().into_iter();
            entries.filter_map(|entry| entry.session).collect()
        };
        let expected = ["plan-2, batch 1", "plan-2, batch 2", "plan-10, batch 1"];
        assert_eq!(sessions(&plans), expected);
        let bare = json!([[said(1, "a"), said(2, "b")], [[said(3, "c")]]]);
        assert_eq!(sessions(&bare), ["batch 1", "batch 1", "batch 2"]);
    }

    #[test]
    fn the_last_date_holds() {
        let mut dated = said(2, "b");
        dated["time_anchor"] = json!("May-02-2024");
        let chat = json!([
            {"batch_number": 1, "turns": [[said(1, "a"), dated, said(3, "c")]]},
            {"batch_number": 2, "time_anchor": "May-09-2024", "turns": [[said(4, "d")]]},
        ]);
        let entries = read_chat(&chat).unwrap();
        let days: Vec<String> = entries.iter().map(|e| e.created.to_string()).collect();
        assert_eq!(days[0], "2024-05-02T00:00:00.000Z");
        assert_eq!(days[2], "2024-05-02T00:00:00.002Z");
        assert_eq!(days[3], "2024-05-09T00:00:00.003Z");
    }

    #[test]
    fn a_broken_chat_is_refused_with_its_place() {
        let error = |chat: Value| read_chat(&chat).map(|_| ()).unwrap_err();
        assert_eq!(error(json!({})), "is not a list of batches");
        let bad = json!([{"batch_number": 7, "turns": [[said(1, "a"), {"role": "user"}]]}]);
        assert_eq!(error(bad), "batch 7, 1, 2: the message has no `content`");
        let bad = json!([[{"role": "system", "content": "x"}]]);
        assert!(error(bad).contains("neither user nor assistant"));
        assert!(error(json!([{"plan-1": 3}])).contains("plan-1"));
        assert!(error(json!([[4]])).contains("is not a message"));
    }
}
