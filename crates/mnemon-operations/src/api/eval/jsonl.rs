//! Your own records and questions, as JSON lines.

use std::collections::HashSet;
use std::path::Path;

use mnemon_core::{Invalid, Kind, Role, Time};
use serde::Deserialize;
use serde_json::Value;

use super::dataset::{
    Conversation, Dataset, Entry, Keys, Question, lines, malformed, malformed_line, moment,
    read_text, undated,
};
use crate::Error;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    id: Value,
    content: String,
    #[serde(default)]
    speaker: Option<String>,
    #[serde(default)]
    role: Option<Role>,
    #[serde(default)]
    session: Option<String>,
    #[serde(default)]
    created: Option<String>,
    #[serde(default)]
    user: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    #[serde(default)]
    id: Option<String>,
    question: String,
    expected: Vec<Value>,
    #[serde(default)]
    category: Option<String>,
    #[serde(default)]
    asked: Option<String>,
    #[serde(default)]
    user: Option<String>,
    #[serde(default)]
    answer: Option<String>,
}

#[derive(Default)]
struct Reader {
    conversation: Conversation,
    keys: Keys,
    /// Ids of the questions.
    asked: HashSet<String>,
    /// The time of the record before; a record without one follows it by a millisecond.
    last: Option<Time>,
}

/// Reads records and questions from one file, or the questions from a second one.
pub fn read(records: &Path, questions: Option<&Path>) -> Result<Dataset, Error> {
    let mut reader = Reader::default();
    reader.conversation.name = "jsonl".to_owned();
    let mut asked = Vec::new();
    let files = std::iter::once(records).chain(questions);
    for path in files {
        for (n, line) in lines(&read_text(path)?) {
            let wrong = |what: String| malformed_line(path, n, what);
            let value: Value = serde_json::from_str(line).map_err(|e| wrong(e.to_string()))?;
            match value.get("question").is_some() {
                true => asked.push((path, n, value)),
                false => reader.record(value).map_err(wrong)?,
            }
        }
    }
    // Questions may stand before the records that answer them.
    for (path, n, value) in asked {
        let read = reader.question(value);
        read.map_err(|what| malformed_line(path, n, what))?;
    }
    if reader.conversation.questions.is_empty() {
        let path = questions.unwrap_or(records);
        let what = "has no question that names a record: write {\"question\":\"…\",\"expected\":[\"id\"]} on a line";
        return Err(malformed(path, what));
    }
    Ok(Dataset {
        format: "jsonl",
        conversations: vec![reader.conversation],
        is_recall_capped: false,
    })
}

impl Reader {
    fn record(&mut self, value: Value) -> Result<(), String> {
        let record: Record = serde_json::from_value(value).map_err(|e| e.to_string())?;
        let Some(id) = id_of(&record.id) else {
            return Err("id: is neither a text nor a number".to_owned());
        };
        if record.content.trim().is_empty() {
            return Err("content: is empty".to_owned());
        }
        if !self.keys.add(&id, self.conversation.entries.len()) {
            return Err(format!(
                "id: there is another record `{}`",
                id.escape_debug()
            ));
        }
        let created = time("created", record.created.as_deref())?;
        let follows = || self.last.map(|last| last.plus_millis(1));
        let created = created.or_else(follows).unwrap_or_else(undated);
        self.last = Some(created);
        let is_said = record.role.is_some() || record.speaker.is_some();
        self.conversation.entries.push(Entry {
            kind: if is_said { Kind::Message } else { Kind::Note },
            speaker: record.speaker,
            role: record.role,
            session: record.session,
            user: record.user,
            ..Entry::note(record.content, created)
        });
        Ok(())
    }

    fn question(&mut self, value: Value) -> Result<(), String> {
        let asked: Asked = serde_json::from_value(value).map_err(|e| e.to_string())?;
        if asked.question.trim().is_empty() {
            return Err("question: is empty".to_owned());
        }
        let ids: Option<Vec<String>> = asked.expected.iter().map(id_of).collect();
        let ids = ids.ok_or("expected: ids are texts or numbers")?;
        if let Some(unknown) = ids.iter().find(|id| !self.keys.has(id)) {
            let unknown = unknown.escape_debug();
            return Err(format!("expected: there is no record `{unknown}`"));
        }
        let expected = self.keys.evidence(ids);
        let number = self.asked.len();
        let id = asked.id.unwrap_or_else(|| format!("{number}"));
        if !self.asked.insert(id.clone()) {
            let id = id.escape_debug();
            return Err(format!("id: there is another question `{id}`"));
        }
        let first = expected.first().and_then(|one| one.entries.first());
        let first = first.and_then(|entry| self.conversation.entries.get(*entry));
        self.conversation.ask(Question {
            id,
            asked: time("asked", asked.asked.as_deref())?,
            user: asked.user.or_else(|| first?.user.clone()),
            text: asked.question,
            category: asked.category,
            answer: asked.answer,
            expected,
        });
        Ok(())
    }
}

fn id_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn time(field: &str, text: Option<&str>) -> Result<Option<Time>, String> {
    let time = text.map(|text| moment(field, text)).transpose();
    time.map_err(|error: Invalid| error.to_string())
}
