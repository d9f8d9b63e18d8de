//! From the bytes of a line to what it says.

use std::borrow::Cow;

use mnemon_core::commit::{Effect, Entry};
use mnemon_core::ram::Past;
use mnemon_core::{Cause, Record, Tenant, Time};
use serde::Deserialize;

use super::checksum::{self, Checksum};
use super::foreign;
use super::line::{ERASED, FORMAT, Kept, Line, Millis, Part, Raw, RawEntry, Stamp, Unread};

/// Reads a line of the log of this tenant.
pub(super) fn decode(line: &[u8], tenant: &Tenant) -> Result<Line, Unread> {
    let checksum = verify(line)?;
    let mut raw = parse(line)?;
    let Some(stamp) = raw.stamp(checksum)? else {
        return foreign::change(raw, tenant).map(Line::Foreign);
    };
    if raw.op == "header" {
        let header = raw.header.ok_or_else(|| lacks("header"))?.into_owned();
        number("header.last_seq", header.last_seq)?;
        number("header.generation", header.generation)?;
        return Ok(Line::Header(header));
    }
    let [at, of] = stamp.part;
    if at == 0 || at > of {
        return Err(bad(format!("it claims to be line {at} of {of}")));
    }
    let time = raw.timestamp.ok_or_else(|| lacks("timestamp"))?.time()?;
    let (batch, accepts_clock) = (stamp.batch.unwrap_or(stamp.commit), stamp.accepts_clock);
    let effect = effect(raw, stamp, tenant)?;
    Ok(Line::Ours(Part {
        effect,
        batch,
        time,
        accepts_clock,
        at,
        of,
    }))
}

/// Reads a line of the history of this tenant.
pub(super) fn decode_kept(line: &[u8], tenant: &Tenant) -> Result<Kept, Unread> {
    let checksum = verify(line)?;
    let mut raw = parse(line)?;
    let stamp = raw.stamp(checksum)?.ok_or_else(|| lacks("mnemon"))?;
    Ok(match effect(raw, stamp, tenant)? {
        Effect::Write { entry, record } => Kept::Past(Box::new(Past::of(entry, *record))),
        Effect::Tombstone {
            entry,
            id,
            version,
            expires,
        } => Kept::Past(Box::new(Past {
            entry,
            id,
            version,
            record: None,
            expires,
        })),
        Effect::Bury { .. } => return Err(lacks("mnemon.version")),
        receipt @ Effect::Receipt { .. } => Kept::Receipt(receipt),
        Effect::Erase {
            id,
            purged: Some(entry),
        } => Kept::Past(Box::new(Past::purged(entry, id))),
        Effect::Erase { .. } | Effect::Drop { .. } => {
            return Err(bad("such a line is not valid in a history file".to_owned()));
        }
    })
}

impl Raw<'_> {
    /// The stamp of a line that is ours, if this version knows its format.
    fn stamp(&mut self, checksum: Checksum) -> Result<Option<Stamp>, Unread> {
        let stamp = self.mnemon.take();
        match &stamp {
            Some(stamp) if stamp.v > FORMAT => Err(Unread::TooNew(stamp.v)),
            Some(stamp) if stamp.checked && checksum == Checksum::Absent => {
                Err(bad("its checksum is missing".to_owned()))
            }
            _ => Ok(stamp),
        }
    }
}

/// Comes before everything else: a damaged version number must not look like a newer format.
fn verify(line: &[u8]) -> Result<Checksum, Unread> {
    match checksum::check(line) {
        Checksum::Wrong => Err(bad("its checksum does not match".to_owned())),
        checksum => Ok(checksum),
    }
}

fn parse(line: &[u8]) -> Result<Raw<'static>, Unread> {
    let error = match serde_json::from_slice::<Raw<'_>>(line) {
        Ok(raw) => return Ok(raw),
        Err(error) => error,
    };
    if let Some(mended) = foreign::without_lone_surrogates(line)
        && let Ok(raw) = serde_json::from_slice(&mended)
    {
        return Ok(raw);
    }
    // A later version may have changed the rest of the line, but not where its version stands.
    #[derive(Deserialize)]
    struct Peek {
        mnemon: Version,
    }
    #[derive(Deserialize)]
    struct Version {
        v: i64,
    }
    match serde_json::from_slice::<Peek>(line) {
        Ok(peek) if peek.mnemon.v > FORMAT => Err(Unread::TooNew(peek.mnemon.v)),
        _ => Err(error.into()),
    }
}

fn effect(raw: Raw<'_>, stamp: Stamp, tenant: &Tenant) -> Result<Effect, Unread> {
    let at = raw.timestamp.ok_or_else(|| lacks("timestamp"))?.time()?;
    Ok(match raw.op.as_ref() {
        "add" | "update" => {
            let entry = entry(at, stamp)?;
            let mut record = ours(raw.entry.ok_or_else(|| lacks("entry"))?, tenant)?;
            record.seq = entry.seq;
            Effect::Write {
                entry,
                record: Box::new(record),
            }
        }
        "delete" => {
            let id = raw.id.ok_or_else(|| lacks("id"))?.into_owned();
            if stamp.cause.as_deref() == Some(ERASED) {
                return Ok(Effect::Erase { id, purged: None });
            }
            let (version, expires) = (stamp.version, stamp.expires);
            let entry = entry(at, stamp)?;
            match entry.cause {
                Cause::Purged => Effect::Erase {
                    id,
                    purged: Some(entry),
                },
                _ => match version {
                    Some(version) => Effect::Tombstone {
                        entry,
                        id,
                        version: number("mnemon.version", version)?,
                        expires,
                    },
                    None => Effect::Bury { entry, id },
                },
            }
        }
        "receipt" => Effect::Receipt {
            key: raw.key.ok_or_else(|| lacks("key"))?.into_owned(),
            at,
            receipt: raw.receipt.ok_or_else(|| lacks("receipt"))?.into_owned(),
        },
        "drop" => Effect::Drop {
            seqs: raw.seqs.into_owned(),
            keys: raw.keys.into_owned(),
        },
        other => return Err(unknown(other)),
    })
}

fn entry(at: Time, stamp: Stamp) -> Result<Entry, Unread> {
    let cause = stamp.cause.ok_or_else(|| lacks("mnemon.cause"))?;
    let seq = stamp.seq.ok_or_else(|| lacks("mnemon.seq"))?;
    Ok(Entry {
        seq: number("mnemon.seq", seq)?,
        commit: number("mnemon.commit", stamp.commit)?,
        at,
        actor: stamp.actor.ok_or_else(|| lacks("mnemon.actor"))?,
        cause: cause.parse::<Cause>()?,
    })
}

/// A record that we wrote. It keeps the limits, unless somebody changed the line by hand.
pub(super) fn ours(raw: RawEntry<'_>, tenant: &Tenant) -> Result<Record, Unread> {
    let extra = raw.record.ok_or_else(|| lacks("entry.record"))?;
    if extra.v > FORMAT {
        return Err(Unread::TooNew(extra.v));
    }
    let created = raw.created_at.time()?;
    let record = Record {
        v: mnemon_core::Format,
        id: raw.id.into_owned(),
        tenant: tenant.clone(),
        owner: extra.owner.into_owned(),
        audience: extra.audience.map(Cow::into_owned),
        scope: extra.scope,
        kind: extra.kind,
        namespace: raw.namespace,
        content: raw.content.into_owned(),
        summary: raw
            .summary
            .filter(|_| !extra.made_summary)
            .map(Cow::into_owned),
        body: extra.body.map(Cow::into_owned),
        tags: raw.tags.into_owned(),
        source: raw.source.map(Cow::into_owned),
        origin: extra.origin,
        importance: raw.importance.unwrap_or(0.0),
        created,
        updated: raw.updated_at.map_or(Ok(created), Millis::time)?,
        expires: raw.expires_at.map(Millis::time).transpose()?,
        valid_from: extra.valid_from,
        valid_to: extra.valid_to,
        seq: extra.seq,
        version: number("version", extra.version)?,
        derived_from: extra.derived_from.into_owned(),
        superseded_by: extra.superseded_by.map(Cow::into_owned),
        metadata: raw.metadata.unwrap_or_default().into_owned(),
    };
    record.check()?;
    Ok(record)
}

/// A number that can be counted on from, and that JavaScript can hold.
fn number(field: &str, number: u64) -> Result<u64, Unread> {
    if number < 1 << 53 {
        return Ok(number);
    }
    Err(bad(format!("`{field}` is too large")))
}

pub(super) fn lacks(field: &str) -> Unread {
    bad(format!("it lacks `{field}`"))
}

pub(super) fn unknown(op: &str) -> Unread {
    bad(format!("`{}` is not an op", op.escape_debug()))
}

fn bad(why: String) -> Unread {
    Unread::Bad(why)
}
