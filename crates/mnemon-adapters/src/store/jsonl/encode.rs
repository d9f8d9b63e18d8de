//! From a change to the bytes of its line.

use std::borrow::Cow;
use std::io::{self, Write};

use mnemon_core::commit::{Effect, Entry};
use mnemon_core::ram::Past;
use mnemon_core::{
    Audience, Grant, Id, IdempotencyKey, Kind, Namespace, Origin, Owner, Receipt, Record, Scope,
    StoreError, Time,
};
use serde::Serialize;
use serde_json::{Map, Value};

use super::checksum;
use super::foreign;
use super::line::{ERASED, FORMAT, Header, LINE_BYTES, Stamp};

/// A line to be written; the fields in the original's order.
#[derive(Serialize)]
struct Out<'a> {
    op: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<OutEntry<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a Id>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<i64>,
    mnemon: Stamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    header: Option<&'a Header>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a IdempotencyKey>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<&'a Receipt>,
    #[serde(skip_serializing_if = "<[u64]>::is_empty")]
    seqs: &'a [u64],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    keys: &'a [String],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OutEntry<'a> {
    id: &'a Id,
    namespace: Namespace,
    content: &'a str,
    summary: Cow<'a, str>,
    tags: &'a [String],
    created_at: i64,
    updated_at: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    importance: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Map<String, Value>>,
    record: OutExtra<'a>,
}

/// What the original has no field for; read back as `decode::Extra`.
#[derive(Serialize)]
struct OutExtra<'a> {
    v: i64,
    #[serde(skip_serializing_if = "Owner::is_empty")]
    owner: &'a Owner,
    #[serde(skip_serializing_if = "Option::is_none")]
    audience: Option<&'a Audience>,
    scope: Scope,
    kind: Kind,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    made_summary: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a Value>,
    origin: Origin,
    #[serde(skip_serializing_if = "Option::is_none")]
    valid_from: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    valid_to: Option<Time>,
    seq: u64,
    version: u64,
    #[serde(skip_serializing_if = "<[Id]>::is_empty")]
    derived_from: &'a [Id],
    #[serde(skip_serializing_if = "Option::is_none")]
    superseded_by: Option<&'a Id>,
}

impl<'a> OutEntry<'a> {
    fn of(record: &'a Record) -> Self {
        let summary = match &record.summary {
            Some(summary) => Cow::Borrowed(summary.as_str()),
            None => foreign::summary(&record.content),
        };
        Self {
            id: &record.id,
            namespace: record.namespace,
            content: &record.content,
            summary,
            tags: &record.tags,
            created_at: record.created.millis(),
            updated_at: record.updated.millis(),
            expires_at: record.expires.map(Time::millis),
            source: record.source.as_deref(),
            importance: (record.importance != 0.0).then_some(record.importance),
            metadata: (!record.metadata.is_empty()).then_some(&record.metadata),
            record: OutExtra {
                v: FORMAT,
                owner: &record.owner,
                audience: record.audience.as_ref(),
                scope: record.scope,
                kind: record.kind,
                made_summary: record.summary.is_none(),
                body: record.body.as_ref(),
                origin: record.origin,
                valid_from: record.valid_from,
                valid_to: record.valid_to,
                seq: record.seq,
                version: record.version,
                derived_from: &record.derived_from,
                superseded_by: record.superseded_by.as_ref(),
            },
        }
    }
}

impl<'a> Out<'a> {
    fn new(op: &'static str, at: Option<Time>, mnemon: Stamp) -> Self {
        Self {
            op,
            entry: None,
            id: None,
            timestamp: at.map(Time::millis),
            mnemon,
            header: None,
            key: None,
            receipt: None,
            seqs: &[],
            keys: &[],
        }
    }

    fn write(entry: &Entry, record: &'a Record) -> Self {
        Self {
            entry: Some(OutEntry::of(record)),
            ..Self::new("add", Some(entry.at), Stamp::of(entry))
        }
    }

    fn bury(entry: &Entry, id: &'a Id) -> Self {
        Self {
            id: Some(id),
            ..Self::new("delete", Some(entry.at), Stamp::of(entry))
        }
    }

    fn receipt(key: &'a IdempotencyKey, at: Time, receipt: &'a Receipt) -> Self {
        Self {
            key: Some(key),
            receipt: Some(receipt),
            ..Self::new("receipt", Some(at), Stamp::bare())
        }
    }

    fn effect(effect: &'a Effect, now: Time) -> Self {
        match effect {
            Effect::Write { entry, record } => Self::write(entry, record),
            Effect::Bury { entry, id } => Self::bury(entry, id),
            Effect::Erase { id } => {
                let mut out = Self::new("delete", Some(now), Stamp::bare());
                out.mnemon.cause = Some(ERASED.to_owned());
                out.id = Some(id);
                out
            }
            Effect::Receipt { key, at, receipt } => Self::receipt(key, *at, receipt),
            Effect::Drop { seqs, keys } => Self {
                seqs,
                keys,
                ..Self::new("drop", Some(now), Stamp::bare())
            },
        }
    }

    /// Appends the line with its checksum.
    fn append_to(&self, out: &mut Vec<u8>) -> io::Result<()> {
        let start = out.len();
        serde_json::to_writer(&mut *out, self)?;
        checksum::seal(out, start);
        out.push(b'\n');
        Ok(())
    }

    fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        let mut line = Vec::new();
        self.append_to(&mut line)?;
        out.write_all(&line)
    }
}

impl Stamp {
    fn bare() -> Self {
        Self {
            v: FORMAT,
            commit: 0,
            batch: None,
            seq: None,
            actor: None,
            cause: None,
            version: None,
            expires: None,
            part: [1, 1],
            checked: true,
            accepts_clock: false,
        }
    }

    fn of(entry: &Entry) -> Self {
        Self {
            commit: entry.commit,
            seq: Some(entry.seq),
            actor: Some(entry.actor.clone()),
            cause: Some(entry.cause.to_string()),
            ..Self::bare()
        }
    }
}

/// The lines of one batch, each saying which of how many it is.
pub(super) fn batch(
    effects: &[&Effect],
    grant: &Grant,
    out: &mut Vec<u8>,
) -> Result<(), StoreError> {
    let of = effects.len() as u64;
    let first = effects.iter().find_map(|effect| match effect {
        Effect::Write { entry, .. } | Effect::Bury { entry, .. } => Some(entry),
        _ => None,
    });
    for (at, effect) in (1..).zip(effects) {
        let mut line = Out::effect(effect, grant.now());
        line.mnemon.accepts_clock = grant.accepts_clock();
        if let Some(first) = first {
            line.mnemon.commit = first.commit;
            line.mnemon.batch = (first.seq != first.commit).then_some(first.seq);
        }
        line.mnemon.part = [at, of];
        let start = out.len();
        line.append_to(out)
            .map_err(|error| StoreError::Internal(format!("a line cannot be written: {error}")))?;
        let count = out.len() - start;
        if count > LINE_BYTES {
            return Err(StoreError::TooLarge {
                what: "bytes in one line of the log",
                count,
                most: LINE_BYTES,
            });
        }
    }
    Ok(())
}

/// The first line of a compacted log.
pub(super) fn header(header: &Header, out: &mut impl Write) -> io::Result<()> {
    let line = Out {
        header: Some(header),
        ..Out::new("header", None, Stamp::bare())
    };
    line.write_to(out)
}

/// A current record of a compacted log.
pub(super) fn current(entry: &Entry, record: &Record, out: &mut impl Write) -> io::Result<()> {
    Out::write(entry, record).write_to(out)
}

/// A replaced version or a deletion, for the history.
pub(super) fn past(past: &Past, out: &mut impl Write) -> io::Result<()> {
    if let Some(record) = &past.record {
        return Out::write(&past.entry, record).write_to(out);
    }
    let mut line = Out::bury(&past.entry, &past.id);
    line.mnemon.version = Some(past.version);
    line.mnemon.expires = past.expires;
    line.write_to(out)
}

/// A receipt, for the history.
pub(super) fn receipt(effect: &Effect, out: &mut impl Write) -> io::Result<()> {
    // Only the time of an erasure comes from outside, and a receipt is none.
    Out::effect(effect, Time::EPOCH).write_to(out)
}
