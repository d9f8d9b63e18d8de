//! The forms in which a window is kept.

use std::collections::HashSet;

use mnemon_core::window::CompressionEvent;
use mnemon_core::{Cursor, Id, Invalid, Message, Order, Record};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::records::draft::to_json;

/// Marks the records that keep what was replaced.
pub(super) const TAG: &str = "window";
/// Marks those whose summary a model is still to write.
pub(super) const PENDING: &str = "model-pending";

/// A place in the order of what was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "(i64, u64)", into = "(i64, u64)")]
pub(super) struct Position {
    /// In milliseconds.
    pub(super) created: i64,
    pub(super) seq: u64,
}

impl From<(i64, u64)> for Position {
    fn from((created, seq): (i64, u64)) -> Self {
        Self { created, seq }
    }
}

impl From<Position> for (i64, u64) {
    fn from(at: Position) -> Self {
        (at.created, at.seq)
    }
}

impl Position {
    pub(super) fn of(record: &Record) -> Self {
        let Cursor { key, seq } = Cursor::after(record, Order::Oldest);
        Self { created: key, seq }
    }

    pub(super) fn cursor(self) -> Cursor {
        Cursor {
            key: self.created,
            seq: self.seq,
        }
    }

    pub(super) fn just_before(self) -> Cursor {
        Cursor {
            key: self.created,
            seq: self.seq.saturating_sub(1),
        }
    }
}

/// How far a window reaches into what was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Covered {
    /// The last message that it knows of.
    pub(super) at: Position,
    /// The highest number among those that it knows of. A message with a higher one that stands
    /// before `at` was written meanwhile and not seen.
    pub(super) newest: u64,
}

impl Covered {
    pub(super) fn by(record: &Record) -> Self {
        Self {
            at: Position::of(record),
            newest: record.seq,
        }
    }

    /// The place that a record keeps.
    pub(super) fn of(record: &Record) -> Result<Self, Invalid> {
        from_json("place of the window", record)
    }

    pub(super) fn to_json(self) -> Result<Value, Invalid> {
        to_json("window", &self)
    }

    pub(super) fn after(self, before: Option<Self>) -> Self {
        Self {
            at: self.at,
            newest: before.map_or(self.newest, |b| b.newest.max(self.newest)),
        }
    }
}

/// One message of a window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// The record of the message, or of what replaced it.
    pub(super) of: Id,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) replaced: bool,
    /// Where the messages stand that it stands for.
    pub(super) first: Position,
    pub(super) last: Position,
    /// How many they are.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub(super) covers: u64,
}

fn one() -> u64 {
    1
}

fn is_one(count: &u64) -> bool {
    *count == 1
}

impl Entry {
    /// A message as it was said.
    pub(super) fn original(record: &Record) -> Self {
        let at = Position::of(record);
        Self {
            of: record.id.clone(),
            replaced: false,
            first: at,
            last: at,
            covers: 1,
        }
    }

    /// What stands in the place of these.
    pub(super) fn replacing(uuid: Id, entries: &[Self]) -> Option<Self> {
        let first = entries.iter().map(|entry| entry.first).min()?;
        let last = entries.iter().map(|entry| entry.last).max()?;
        Some(Self {
            of: uuid,
            replaced: true,
            first,
            last,
            covers: entries.iter().map(|entry| entry.covers).sum(),
        })
    }
}

/// The window's own record.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Working {
    pub(super) entries: Vec<Entry>,
    pub(super) covered: Option<Covered>,
}

impl Working {
    pub(super) fn of(record: &Record) -> Result<Self, Invalid> {
        from_json("window", record)
    }

    pub(super) fn to_json(&self) -> Result<Value, Invalid> {
        to_json("window", self)
    }

    /// The records that its entries point at.
    pub(super) fn ids(&self) -> HashSet<Id> {
        self.entries.iter().map(|entry| entry.of.clone()).collect()
    }
}

/// What was replaced: the entries as they were, and the message in their place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Offload {
    pub(super) entries: Vec<Entry>,
    pub(super) message: Message,
    pub(super) event: CompressionEvent,
}

impl Offload {
    pub(super) fn of(record: &Record) -> Option<Self> {
        Self::deserialize(record.body.as_ref()?).ok()
    }

    pub(super) fn to_json(&self) -> Result<Value, Invalid> {
        to_json("offload", self)
    }
}

fn from_json<T: serde::de::DeserializeOwned>(what: &str, record: &Record) -> Result<T, Invalid> {
    let body = record.body.as_ref().unwrap_or(&Value::Null);
    T::deserialize(body).map_err(|error| {
        let what = format!("record {} is not a {what}: {error}", record.id);
        Invalid::new("window", what)
    })
}
