//! One line of a log: ours, and those of the program that the format comes from.
//!
//! Our lines are the original's with more in them. `entry.record` holds what the original has no
//! field for, `mnemon` says which change of which commit the line is; the original ignores both.

use std::borrow::Cow;

use mnemon_core::commit::Effect;
use mnemon_core::ram::Past;
use mnemon_core::{
    Audience, Clock, Id, IdempotencyKey, Invalid, Kind, Namespace, Origin, Owner, Receipt, Record,
    Scope, Time,
};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// The newest version of our part of the format that is read.
pub(super) const FORMAT: i64 = 2;

/// The version of a line. One without an audience or a batch of its own says nothing that the
/// first version cannot say; an older program must not read the others, because it would show
/// them to everybody, or take the batch for a part of another.
pub(super) fn format_of(is_newer: bool) -> i64 {
    if is_newer { FORMAT } else { 1 }
}

/// The longest line that is read or written. The largest record there can be, every character of
/// it escaped, fits.
pub(super) const LINE_BYTES: usize = 128 * 1024 * 1024;

/// What a line says.
#[derive(Debug)]
pub(super) enum Line {
    /// A part of one of our commits.
    Ours(Part),
    /// A change by the original.
    Foreign(Foreign),
    /// The first line of a compacted log.
    Header(Header),
}

/// One effect of a commit, and its place among the commit's lines.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) effect: Effect,
    /// The number that the lines of one batch share.
    pub(super) batch: u64,
    /// When it was written.
    pub(super) time: Time,
    /// Whether the clock of that moment was accepted, however far ahead it was.
    pub(super) accepts_clock: bool,
    /// This is line `at` of `of`, from 1. A batch counts when all its lines are there.
    pub(super) at: u64,
    pub(super) of: u64,
}

/// A change that carries no numbers: they follow from its place in the log.
#[derive(Debug)]
pub(super) enum Foreign {
    Put { at: Time, record: Box<Record> },
    Delete { at: Time, id: Id },
}

impl Foreign {
    pub(super) fn at(&self) -> Time {
        match self {
            Self::Put { at, .. } | Self::Delete { at, .. } => *at,
        }
    }
}

/// What a compacted log must know that its lines do not say.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Header {
    /// Counts the rewrites, so that names of history files are never used twice.
    pub(super) generation: u64,
    pub(super) last_seq: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) history: Option<HistoryRef>,
    /// The clock as the lines that the rewrite removed left it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) clock: Option<Clock>,
}

/// Where the history is, and how much of that file counts: what lies beyond was appended by a
/// compaction that never finished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HistoryRef {
    pub(super) file: String,
    pub(super) bytes: u64,
}

/// A line of the history file.
#[derive(Debug)]
pub(super) enum Kept {
    Past(Box<Past>),
    Receipt(Effect),
}

/// Why a line cannot be used.
#[derive(Debug)]
pub(super) enum Unread {
    Bad(String),
    /// A later version of this program wrote it.
    TooNew(i64),
}

impl From<Invalid> for Unread {
    fn from(invalid: Invalid) -> Self {
        Self::Bad(invalid.to_string())
    }
}

impl From<serde_json::Error> for Unread {
    fn from(error: serde_json::Error) -> Self {
        Self::Bad(error.to_string())
    }
}

/// Milliseconds since 1970; JavaScript may write them as a float.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Millis(pub(super) i64);

impl<'de> Deserialize<'de> for Millis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = serde_json::Number::deserialize(deserializer)?;
        // A float beyond the range saturates, and is then refused as a time.
        let millis = number.as_i64().or(number.as_f64().map(|ms| ms as i64));
        Ok(Self(millis.unwrap_or(i64::MAX)))
    }
}

impl Millis {
    pub(super) fn of(time: Time) -> Self {
        Self(time.millis())
    }

    pub(super) fn time(self) -> Result<Time, Invalid> {
        Time::from_millis(self.0)
    }
}

/// A line as it is written and read; the fields in the original's order.
#[derive(Serialize, Deserialize)]
pub(super) struct Raw<'a> {
    pub(super) op: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) entry: Option<RawEntry<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<Cow<'a, Id>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) timestamp: Option<Millis>,
    /// `None` on a line of the original.
    pub(super) mnemon: Option<Stamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) header: Option<Cow<'a, Header>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<Cow<'a, IdempotencyKey>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) receipt: Option<Cow<'a, Receipt>>,
    #[serde(default, skip_serializing_if = "<[u64]>::is_empty")]
    pub(super) seqs: Cow<'a, [u64]>,
    #[serde(default, skip_serializing_if = "<[String]>::is_empty")]
    pub(super) keys: Cow<'a, [String]>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawEntry<'a> {
    pub(super) id: Cow<'a, Id>,
    pub(super) namespace: Namespace,
    pub(super) content: Cow<'a, str>,
    pub(super) summary: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(super) tags: Cow<'a, [String]>,
    pub(super) created_at: Millis,
    pub(super) updated_at: Option<Millis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<Millis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) source: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) importance: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) metadata: Option<Cow<'a, Map<String, Value>>>,
    pub(super) record: Option<Extra<'a>>,
}

/// What the original has no field for.
#[derive(Serialize, Deserialize)]
pub(super) struct Extra<'a> {
    pub(super) v: i64,
    #[serde(default, skip_serializing_if = "Owner::is_empty")]
    pub(super) owner: Cow<'a, Owner>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) audience: Option<Cow<'a, Audience>>,
    pub(super) scope: Scope,
    pub(super) kind: Kind,
    /// The original needs a summary; this one was made for it and is not the record's own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) made_summary: bool,
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub(super) body: Option<Cow<'a, Value>>,
    pub(super) origin: Origin,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) valid_from: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) valid_to: Option<Time>,
    pub(super) seq: u64,
    pub(super) version: u64,
    #[serde(default, skip_serializing_if = "<[Id]>::is_empty")]
    pub(super) derived_from: Cow<'a, [Id]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) superseded_by: Option<Cow<'a, Id>>,
}

/// A body that is there, even if it is `null`.
fn present<'de, 'a, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Cow<'a, Value>>, D::Error> {
    Cow::deserialize(deserializer).map(Some)
}

/// Which change of which commit a line is.
#[derive(Serialize, Deserialize)]
pub(super) struct Stamp {
    pub(super) v: i64,
    #[serde(default)]
    pub(super) commit: u64,
    /// The first number of a batch that continues an earlier commit: its lines have the number of
    /// that commit, and are whole or torn by themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) batch: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) seq: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) actor: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cause: Option<String>,
    /// A deletion's version, where the line before it is not there to count from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) version: Option<u64>,
    /// When the version that was deleted expires, where the line before it is not there to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expires: Option<Time>,
    #[serde(default = "alone")]
    pub(super) part: [u64; 2],
    /// The line ends with a checksum.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) checked: bool,
    /// Somebody said that the clock is right although it is far ahead of the commit before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) accepts_clock: bool,
}

fn alone() -> [u64; 2] {
    [1, 1]
}

/// The cause of a deletion that leaves nothing: no entry in the history, no way back.
pub(super) const ERASED: &str = "erased";
