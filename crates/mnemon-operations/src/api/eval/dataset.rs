//! Records and questions of a data set, in the form that every format is read into.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use mnemon_core::{Invalid, Kind, Role, Time};
use serde::de::DeserializeOwned;

use crate::Error;

/// Larger files are not read into memory.
const FILE_BYTES: usize = 4 << 30;

/// Conversations, or collections of documents, with questions about them.
#[derive(Debug, Clone, Default)]
pub struct Dataset {
    /// The name of the format.
    pub format: &'static str,
    pub conversations: Vec<Conversation>,
    /// Recall at k is found ÷ min(evidence, k), not found ÷ evidence.
    pub is_recall_capped: bool,
}

#[derive(Debug, Clone, Default)]
pub struct Conversation {
    pub name: String,
    pub entries: Vec<Entry>,
    pub questions: Vec<Question>,
    /// Questions that cannot be measured: no entry is known to answer them.
    pub left_out: usize,
}

/// A record to be found.
#[derive(Debug, Clone)]
pub struct Entry {
    pub kind: Kind,
    pub content: String,
    /// The name of the person who said it.
    pub speaker: Option<String>,
    pub role: Option<Role>,
    pub session: Option<String>,
    pub user: Option<String>,
    pub created: Time,
}

#[derive(Debug, Clone, Default)]
pub struct Question {
    /// The same in every run, so that two runs can be paired.
    pub id: String,
    pub text: String,
    pub category: Option<String>,
    pub expected: Vec<Evidence>,
    /// When it is asked; by default a day after the last entry.
    pub asked: Option<Time>,
    pub user: Option<String>,
    /// The reference answer.
    pub answer: Option<String>,
}

/// An entry that answers a question.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// Indices of entries. Where a data set gave the same id to several, any of them will do.
    pub entries: Vec<usize>,
    /// The gain of NDCG.
    pub gain: f64,
}

impl Dataset {
    /// The entries of all conversations.
    pub fn entries(&self) -> usize {
        self.conversations.iter().map(|one| one.entries.len()).sum()
    }

    pub fn questions(&self) -> usize {
        let questions = self.conversations.iter().map(|one| one.questions.len());
        questions.sum()
    }
}

impl Conversation {
    /// Adds the question if there is evidence for it.
    pub fn ask(&mut self, question: Question) {
        match question.expected.is_empty() {
            true => self.left_out += 1,
            false => self.questions.push(question),
        }
    }
}

impl Entry {
    pub fn note(content: String, created: Time) -> Self {
        Self {
            kind: Kind::Note,
            content,
            speaker: None,
            role: None,
            session: None,
            user: None,
            created,
        }
    }
}

/// The entries that have an id of the data set.
#[derive(Debug, Default)]
pub(super) struct Keys(HashMap<String, Vec<usize>>);

impl Keys {
    /// Whether the id is new.
    pub(super) fn add(&mut self, key: &str, entry: usize) -> bool {
        let entries = self.0.entry(key.to_owned()).or_default();
        entries.push(entry);
        entries.len() == 1
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// The entries of these ids, each id once; unknown ids are left out.
    pub(super) fn evidence(&self, keys: impl IntoIterator<Item = String>) -> Vec<Evidence> {
        let mut found: Vec<Evidence> = Vec::new();
        for key in keys {
            let Some(entries) = self.0.get(&key) else {
                continue;
            };
            if !found.iter().any(|known| known.entries == *entries) {
                found.push(Evidence {
                    entries: entries.clone(),
                    gain: 1.0,
                });
            }
        }
        found
    }
}

pub(super) fn read_text(path: &Path) -> Result<String, Error> {
    let failed = |source| Error::File {
        path: path.to_owned(),
        verb: "read",
        source,
    };
    // Opening a pipe would wait for its writer.
    if !path.metadata().map_err(failed)?.is_file() {
        return Err(malformed(path, "is not a file"));
    }
    let file = File::open(path).map_err(failed)?;
    let mut text = String::new();
    let mut file = file.take(FILE_BYTES as u64 + 1);
    file.read_to_string(&mut text).map_err(failed)?;
    if text.len() > FILE_BYTES {
        return Err(Error::TooLarge {
            what: path.display().to_string(),
            most: FILE_BYTES,
        });
    }
    // Some editors begin a file with a byte order mark.
    match text.strip_prefix('\u{feff}') {
        Some(rest) => Ok(rest.to_owned()),
        None => Ok(text),
    }
}

/// The JSON in a file that should be `form`.
pub(super) fn read_json<T: DeserializeOwned>(path: &Path, form: &str) -> Result<T, Error> {
    let text = read_text(path)?;
    serde_json::from_str(&text).map_err(|error| malformed(path, format!("is not {form}: {error}")))
}

/// Each line that is not empty, with its number.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (u64, &str)> {
    let lines = (1..).zip(text.lines());
    lines.filter(|(_, line)| !line.trim().is_empty())
}

/// The file breaks the rules of its format; `what` begins with a verb or a place in the file.
pub(super) fn malformed(path: &Path, what: impl std::fmt::Display) -> Error {
    Invalid::new("data", format!("{} {what}", path.display())).into()
}

pub(super) fn malformed_line(path: &Path, line: u64, what: impl std::fmt::Display) -> Error {
    Invalid::new("data", format!("{}, line {line}: {what}", path.display())).into()
}

/// RFC 3339, a date, or a date and time, which are UTC here, so that results do not depend on the
/// time zone of the machine.
pub(super) fn moment(field: &str, text: &str) -> Result<Time, Invalid> {
    let civil = || {
        let civil: DateTime = text.parse().ok()?;
        utc(civil)
    };
    text.parse().ok().or_else(civil).ok_or_else(|| {
        let text = text.escape_debug();
        let what = format!("`{text}` is not a time; write 2026-01-31 or 2026-01-31T12:00:00Z");
        Invalid::new(field, what)
    })
}

pub(super) fn utc(civil: DateTime) -> Option<Time> {
    let at = civil.to_zoned(TimeZone::UTC).ok()?;
    Time::from_millis(at.timestamp().as_millisecond()).ok()
}

/// The time of entries whose data set has no times: 2000-01-01.
pub(super) fn undated() -> Time {
    Time::EPOCH.plus_days(10_957)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_do_not_depend_on_the_machine() {
        let at = |text: &str| moment("created", text).map(|time| time.to_string());
        assert_eq!(at("2026-01-31").unwrap(), "2026-01-31T00:00:00.000Z");
        assert_eq!(at("2026-01-31T12:30").unwrap(), "2026-01-31T12:30:00.000Z");
        assert!(at("2026-01-31T12:00:00+07:00").unwrap().contains("T05:00"));
        assert!(at("soon").unwrap_err().to_string().contains("`soon`"));
        assert_eq!(undated().to_string(), "2000-01-01T00:00:00.000Z");
    }

    #[test]
    fn an_id_that_several_entries_have_is_one_piece_of_evidence() {
        let mut keys = Keys::default();
        assert!(keys.add("7", 0) && keys.add("8", 1) && !keys.add("7", 2));
        let evidence = keys.evidence(["7", "8", "7", "9"].map(str::to_owned));
        let entries: Vec<_> = evidence.iter().map(|one| one.entries.clone()).collect();
        assert_eq!(entries, [vec![0, 2], vec![1]]);
    }
}
