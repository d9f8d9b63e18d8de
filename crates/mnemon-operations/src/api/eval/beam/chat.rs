//! The messages of `chat.json`.

use mnemon_core::{Kind, Role, Time};
use serde_json::{Map, Value};

use crate::api::eval::dataset::{Entry, Keys, moment, undated, utc};

/// The messages of a chat and their ids.
pub(super) struct Chat {
    pub(super) entries: Vec<Entry>,
    pub(super) keys: Keys,
}

impl Chat {
    /// Reads the messages; an error names the batch and the position in it.
    pub(super) fn read(chat: &Value) -> Result<Self, String> {
        let Some(list) = chat.as_array() else {
            return Err("is not a list of batches".to_owned());
        };
        let mut reader = Reader::default();
        reader.batches(list, "")?;
        match reader.entries.is_empty() {
            true => Err("has no messages".to_owned()),
            false => Ok(Self {
                entries: reader.dated(),
                keys: reader.keys,
            }),
        }
    }
}

/// The number of a batch is a part of the name of its session; one of more bytes is not used.
const NUMBER_BYTES: usize = 40;

/// The messages that were read, with the date that was seen last.
#[derive(Default)]
struct Reader {
    entries: Vec<(Entry, Option<Time>)>,
    keys: Keys,
    session: String,
    day: Option<Time>,
}

impl Reader {
    /// A list of batches, or of plans with batches.
    fn batches(&mut self, list: &[Value], plan: &str) -> Result<(), String> {
        for (n, batch) in (1..).zip(list) {
            match batch {
                Value::Object(map) if !map.contains_key("turns") && !is_message(batch) => {
                    self.plans(map)?;
                }
                Value::Object(map) => {
                    let number = map.get("batch_number").and_then(id_of);
                    let number = number.filter(|number| number.len() <= NUMBER_BYTES);
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

/// The id of a message is a number or a text; `7`, `7.0` and `"7"` are the same.
pub(super) fn id_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => match number.as_f64() {
            Some(float) if !number.is_i64() && float.fract() == 0.0 => Some(format!("{float:.0}")),
            _ => Some(number.to_string()),
        },
        _ => None,
    }
}

/// Sorts `plan-10` after `plan-2`.
pub(super) fn natural(name: &str) -> (String, u64, String) {
    let head: String = name.chars().take_while(|c| !c.is_ascii_digit()).collect();
    let digits = name.chars().skip_while(|c| !c.is_ascii_digit());
    let digits: String = digits.take_while(char::is_ascii_digit).collect();
    let number = digits.parse().unwrap_or_default();
    (head, number, name.to_owned())
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

    fn read_chat(chat: &Value) -> Result<Vec<Entry>, String> {
        Ok(Chat::read(chat)?.entries)
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
        let endless = json!([{"batch_number": "9".repeat(1000), "turns": [[said(1, "a")]]}]);
        assert_eq!(sessions(&endless), ["batch 1"]);
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
