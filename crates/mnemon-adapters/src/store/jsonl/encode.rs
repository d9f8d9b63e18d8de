//! From a change to the bytes of its line.

use std::borrow::Cow;
use std::io::{self, Write};

use mnemon_core::commit::{Effect, Entry};
use mnemon_core::ram::Past;
use mnemon_core::{Grant, Id, Record, StoreError, Time};

use super::checksum;
use super::foreign;
use super::line::{ERASED, Extra, Header, LINE_BYTES, Millis, Raw, RawEntry, Stamp, format_of};

impl<'a> RawEntry<'a> {
    fn of(record: &'a Record) -> Self {
        let summary = match &record.summary {
            Some(summary) => Cow::Borrowed(summary.as_str()),
            None => foreign::summary(&record.content),
        };
        Self {
            id: Cow::Borrowed(&record.id),
            namespace: record.namespace,
            content: record.content.as_str().into(),
            summary: Some(summary),
            tags: record.tags.as_slice().into(),
            created_at: Millis::of(record.created),
            updated_at: Some(Millis::of(record.updated)),
            expires_at: record.expires.map(Millis::of),
            source: record.source.as_deref().map(Cow::Borrowed),
            importance: (record.importance != 0.0).then_some(record.importance),
            metadata: (!record.metadata.is_empty()).then_some(Cow::Borrowed(&record.metadata)),
            record: Some(Extra {
                v: format_of(record.audience.is_some()),
                owner: Cow::Borrowed(&record.owner),
                audience: record.audience.as_ref().map(Cow::Borrowed),
                scope: record.scope,
                kind: record.kind,
                made_summary: record.summary.is_none(),
                body: record.body.as_ref().map(Cow::Borrowed),
                origin: record.origin,
                valid_from: record.valid_from,
                valid_to: record.valid_to,
                seq: record.seq,
                version: record.version,
                derived_from: record.derived_from.as_slice().into(),
                superseded_by: record.superseded_by.as_ref().map(Cow::Borrowed),
            }),
        }
    }
}

impl<'a> Raw<'a> {
    fn new(op: &'static str, at: Option<Time>, stamp: Stamp) -> Self {
        Self {
            op: op.into(),
            entry: None,
            id: None,
            timestamp: at.map(Millis::of),
            mnemon: Some(stamp),
            header: None,
            key: None,
            receipt: None,
            seqs: Cow::default(),
            keys: Cow::default(),
        }
    }

    fn write(record: &'a Record, at: Time, mut stamp: Stamp) -> Self {
        stamp.v = stamp.v.max(format_of(record.audience.is_some()));
        Self {
            entry: Some(RawEntry::of(record)),
            ..Self::new("add", Some(at), stamp)
        }
    }

    fn delete(id: &'a Id, at: Time, stamp: Stamp) -> Self {
        Self {
            id: Some(Cow::Borrowed(id)),
            ..Self::new("delete", Some(at), stamp)
        }
    }

    /// `stamp` says where it stands among the lines of its batch; the rest follows from the effect.
    fn effect(effect: &'a Effect, now: Time, stamp: Stamp) -> Self {
        match effect {
            Effect::Write { entry, record } => Self::write(record, entry.at, stamp.with(entry)),
            Effect::Bury { entry, id } => Self::delete(id, entry.at, stamp.with(entry)),
            Effect::Tombstone {
                entry,
                id,
                version,
                expires,
            } => {
                let (version, expires) = (Some(*version), *expires);
                let stamp = Stamp {
                    version,
                    expires,
                    ..stamp
                };
                Self::delete(id, entry.at, stamp.with(entry))
            }
            Effect::Erase { id, purged } => match purged {
                Some(entry) => Self::delete(id, entry.at, stamp.with(entry)),
                None => {
                    let cause = Some(ERASED.to_owned());
                    Self::delete(id, now, Stamp { cause, ..stamp })
                }
            },
            Effect::Receipt { key, at, receipt } => Self {
                key: Some(Cow::Borrowed(key)),
                receipt: Some(Cow::Borrowed(receipt)),
                ..Self::new("receipt", Some(*at), stamp)
            },
            Effect::Drop { seqs, keys } => Self {
                seqs: seqs.as_slice().into(),
                keys: keys.as_slice().into(),
                ..Self::new("drop", Some(now), stamp)
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
            v: format_of(false),
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

    fn with(self, entry: &Entry) -> Self {
        Self {
            commit: entry.commit,
            seq: Some(entry.seq),
            actor: Some(entry.actor.clone()),
            cause: Some(entry.cause.to_string()),
            ..self
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
    let mut entries = effects.iter().filter_map(|effect| entry_of(effect));
    let first = entries.clone().next();
    // Changes that were copied are of several commits.
    let continued = first.filter(|first| entries.any(|entry| entry.commit != first.seq));
    for (at, effect) in (1..).zip(effects) {
        let stamp = Stamp {
            v: format_of(continued.is_some()),
            commit: first.map_or(0, |first| first.commit),
            batch: continued.map(|first| first.seq),
            part: [at, of],
            accepts_clock: grant.accepts_clock(),
            ..Stamp::bare()
        };
        let line = Raw::effect(effect, grant.now(), stamp);
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

/// The change that an effect is.
pub(super) fn entry_of(effect: &Effect) -> Option<&Entry> {
    match effect {
        Effect::Write { entry, .. }
        | Effect::Bury { entry, .. }
        | Effect::Tombstone { entry, .. } => Some(entry),
        Effect::Erase { purged, .. } => purged.as_ref(),
        Effect::Receipt { .. } | Effect::Drop { .. } => None,
    }
}

/// The first line of a compacted log.
pub(super) fn header(header: &Header, out: &mut impl Write) -> io::Result<()> {
    let line = Raw {
        header: Some(Cow::Borrowed(header)),
        ..Raw::new("header", None, Stamp::bare())
    };
    line.write_to(out)
}

/// A current record of a compacted log.
pub(super) fn current(entry: &Entry, record: &Record, out: &mut impl Write) -> io::Result<()> {
    Raw::write(record, entry.at, Stamp::bare().with(entry)).write_to(out)
}

/// A replaced version or a deletion, for the history.
pub(super) fn past(past: &Past, out: &mut impl Write) -> io::Result<()> {
    if let Some(record) = &past.record {
        return current(&past.entry, record, out);
    }
    let stamp = Stamp {
        version: Some(past.version),
        expires: past.expires,
        ..Stamp::bare().with(&past.entry)
    };
    Raw::delete(&past.id, past.entry.at, stamp).write_to(out)
}

/// A receipt, for the history.
pub(super) fn receipt(effect: &Effect, out: &mut impl Write) -> io::Result<()> {
    // Only the time of an erasure comes from outside, and a receipt is none.
    Raw::effect(effect, Time::EPOCH, Stamp::bare()).write_to(out)
}
