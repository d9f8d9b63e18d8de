//! LoCoMo: long conversations between two people.

use std::path::Path;

use mnemon_core::{Kind, Time};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::dataset::{Conversation, Dataset, Entry, Keys, Question, malformed, read_json, utc};
use crate::Error;

/// Categories of questions that have an answer, and their names.
const CATEGORIES: [(u64, &str); 4] = [
    (1, "multi-hop"),
    (2, "temporal"),
    (3, "open domain"),
    (4, "single-hop"),
];

#[derive(Deserialize)]
struct Sample {
    #[serde(default)]
    sample_id: Option<String>,
    /// `session_N` and `session_N_date_time`, among others.
    conversation: Map<String, Value>,
    qa: Vec<Asked>,
}

#[derive(Deserialize)]
struct Asked {
    question: String,
    category: u64,
    #[serde(default)]
    answer: Value,
    #[serde(default)]
    evidence: Vec<String>,
}

#[derive(Deserialize)]
struct Turn {
    speaker: String,
    dia_id: String,
    text: String,
    #[serde(default)]
    blip_caption: Option<String>,
}

/// Reads `locomo10.json` or a part of it.
pub fn read(path: &Path) -> Result<Dataset, Error> {
    let samples: Vec<Sample> = read_json(path, "LoCoMo's JSON")?;
    let conversations = samples.into_iter().enumerate().map(|(n, sample)| {
        let name = sample.sample_id.clone();
        let name = name.unwrap_or_else(|| format!("sample-{n}"));
        conversation(name, sample)
            .map_err(|what| malformed(path, format_args!("sample {n}: {what}")))
    });
    Ok(Dataset {
        format: "locomo",
        conversations: conversations.collect::<Result<_, _>>()?,
        is_recall_capped: false,
    })
}

fn conversation(name: String, sample: Sample) -> Result<Conversation, String> {
    let mut keys = Keys::default();
    let mut conversation = Conversation {
        name,
        entries: entries(&sample.conversation, &mut keys)?,
        ..Conversation::default()
    };
    for (n, asked) in sample.qa.into_iter().enumerate() {
        let named = CATEGORIES
            .iter()
            .find(|(known, _)| *known == asked.category);
        let Some((_, category)) = named else {
            continue;
        };
        conversation.ask(Question {
            id: format!("{}:{n}", conversation.name),
            text: asked.question,
            category: Some((*category).to_owned()),
            expected: keys.evidence(asked.evidence.iter().flat_map(|entry| places(entry))),
            answer: text_of(asked.answer),
            ..Question::default()
        });
    }
    Ok(conversation)
}

/// A conversation's turns, session by session.
fn entries(sessions: &Map<String, Value>, keys: &mut Keys) -> Result<Vec<Entry>, String> {
    let numbers = sessions.keys().filter_map(|key| {
        let number = key.strip_prefix("session_")?;
        number.parse::<u32>().ok()
    });
    let mut numbers: Vec<u32> = numbers.collect();
    numbers.sort_unstable();
    let mut entries = Vec::new();
    for number in numbers {
        let name = format!("session_{number}");
        let turns = sessions.get(&name).cloned().unwrap_or_default();
        let turns: Vec<Turn> =
            serde_json::from_value(turns).map_err(|error| format!("{name}: {error}"))?;
        let key = format!("{name}_date_time");
        let start = sessions.get(&key).and_then(Value::as_str).and_then(start);
        let start = start.ok_or_else(|| format!("{key} is not like `1:56 pm on 8 May, 2023`"))?;
        for (at, turn) in (0..).zip(turns) {
            keys.add(&turn.dia_id, entries.len());
            entries.push(entry(turn, &name, start.plus_millis(at)));
        }
    }
    Ok(entries)
}

fn entry(turn: Turn, session: &str, created: Time) -> Entry {
    let content = match &turn.blip_caption {
        Some(caption) => format!("{} [shared image: {caption}]", turn.text),
        None => turn.text,
    };
    Entry {
        kind: Kind::Message,
        speaker: Some(turn.speaker),
        session: Some(session.to_owned()),
        ..Entry::note(content, created)
    }
}

/// Reads `1:56 pm on 8 May, 2023`, as UTC.
fn start(text: &str) -> Option<Time> {
    let at = jiff::fmt::strtime::parse("%I:%M %p on %d %B, %Y", text.trim()).ok()?;
    utc(at.to_datetime().ok()?)
}

/// The turns that an entry of the evidence names. Some entries name several, some are malformed:
/// everything that reads as `D<n>:<m>` counts.
fn places(entry: &str) -> Vec<String> {
    entry.split('D').skip(1).filter_map(place).collect()
}

/// `3:07; ` after a `D` is the turn `D3:7`.
fn place(text: &str) -> Option<String> {
    let (session, rest) = text.split_once(':')?;
    let turn: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let number = |text: &str| text.parse::<u32>().ok();
    Some(format!("D{}:{}", number(session)?, number(&turn)?))
}

/// Some answers are numbers.
fn text_of(answer: Value) -> Option<String> {
    match answer {
        Value::Null => None,
        Value::String(text) => Some(text),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_as_locomo_writes_them() {
        let at = |text: &str| start(text).map(|time| time.to_string());
        let spring = at("1:56 pm on 8 May, 2023");
        assert_eq!(spring.as_deref(), Some("2023-05-08T13:56:00.000Z"));
        let night = at("12:09 am on 13 September, 2023");
        assert_eq!(night.as_deref(), Some("2023-09-13T00:09:00.000Z"));
        assert_eq!(at("yesterday"), None);
    }

    #[test]
    fn evidence_is_read_as_it_comes() {
        assert_eq!(places("D1:3; D2:1"), ["D1:3", "D2:1"]);
        assert_eq!(places("D1:03 D9:9"), ["D1:3", "D9:9"]);
        assert_eq!(places("D30:05"), ["D30:5"]);
        for bad in ["D:11:26", "D", "x"] {
            assert_eq!(places(bad), [""; 0], "{bad}");
        }
    }
}
