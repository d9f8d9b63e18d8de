//! The rules of the original program: what its lines mean to us, and what ours must hold for it.

use std::borrow::Cow;

use mnemon_core::{Kind, Origin, Owner, Record, Tenant, Time, limits, note};

use super::decode::{lacks, ours, unknown};
use super::line::{Foreign, Millis, Raw, RawEntry, Unread};

/// Who made the changes of the original, for the history.
pub(super) const ACTOR: &str = "memory.jsonl";

/// The summary that the original would make.
pub(super) fn summary(content: &str) -> Cow<'_, str> {
    note::summary(content, note::SUMMARY_CHARS)
}

/// What a line of the original says. It knows no numbers: the reader gives them.
pub(super) fn change(raw: Raw<'_>, tenant: &Tenant) -> Result<Foreign, Unread> {
    match raw.op.as_ref() {
        "add" | "update" => {
            let entry = raw.entry.ok_or_else(|| lacks("entry"))?;
            let record = match &entry.record {
                // One of our own entries, rewritten by the original's compaction, which writes the
                // time; without it this is a line of ours that lost its end.
                Some(_) if raw.timestamp.is_none() => return Err(lacks("timestamp")),
                Some(_) => ours(entry, tenant)?,
                None => note(entry, tenant)?,
            };
            Ok(Foreign::Put {
                at: time_of(raw.timestamp, record.updated)?,
                record: Box::new(record),
            })
        }
        "delete" => Ok(Foreign::Delete {
            at: time_of(raw.timestamp, Time::EPOCH)?,
            id: raw.id.ok_or_else(|| lacks("id"))?.into_owned(),
        }),
        other => Err(unknown(other)),
    }
}

fn time_of(timestamp: Option<Millis>, otherwise: Time) -> Result<Time, Unread> {
    Ok(timestamp.map_or(Ok(otherwise), Millis::time)?)
}

fn note(raw: RawEntry<'_>, tenant: &Tenant) -> Result<Record, Unread> {
    let created = raw.created_at.time()?;
    let made = summary(&raw.content);
    let own_summary = raw.summary.filter(|own| !own.is_empty() && *own != made);
    let record = Record {
        v: mnemon_core::Format,
        id: raw.id.into_owned(),
        tenant: tenant.clone(),
        owner: Owner::default(),
        audience: None,
        scope: Kind::Note.usual_scope(),
        kind: Kind::Note,
        namespace: raw.namespace,
        summary: own_summary.map(Cow::into_owned),
        content: raw.content.into_owned(),
        body: None,
        tags: tags(&raw.tags),
        source: raw
            .source
            .and_then(|text| one_line(&text, limits::SOURCE_CHARS)),
        origin: Origin::User,
        importance: importance(raw.importance.unwrap_or(0.0)),
        created,
        updated: raw.updated_at.map_or(Ok(created), Millis::time)?,
        expires: raw.expires_at.map(Millis::time).transpose()?,
        valid_from: None,
        valid_to: None,
        seq: 0,
        version: 0,
        derived_from: Vec::new(),
        superseded_by: None,
        metadata: raw.metadata.unwrap_or_default().into_owned(),
    };
    record.check()?;
    Ok(record)
}

/// The original says 0 to 1 and accepts up to 10.
fn importance(value: f64) -> f64 {
    let scaled = if value > 1.0 { value / 10.0 } else { value };
    scaled.clamp(0.0, 1.0)
}

fn tags(tags: &[String]) -> Vec<String> {
    tags.iter()
        .filter_map(|tag| one_line(tag, limits::TAG_CHARS))
        .take(limits::TAGS)
        .collect()
}

/// The text within our rules for a line, if anything of it is left.
fn one_line(text: &str, most: usize) -> Option<String> {
    let clean = text.chars().filter(|char| !char.is_control()).take(most);
    let clean: String = clean.collect();
    (!clean.trim().is_empty()).then_some(clean)
}

/// The line with each half of a surrogate pair that lacks its other half replaced by U+FFFD.
///
/// The original cuts texts by UTF-16 units, through the middle of an emoji if need be, and its
/// JSON then holds an escape that is no character. `None` when there is none.
pub(super) fn without_lone_surrogates(line: &[u8]) -> Option<Vec<u8>> {
    let mut mended = Vec::with_capacity(line.len());
    let mut found = false;
    let mut rest = line;
    while let Some((&byte, after)) = rest.split_first() {
        if byte != b'\\' {
            mended.push(byte);
            rest = after;
            continue;
        }
        let taken = match (surrogate(rest), rest.get(6..).and_then(surrogate)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(_), _) => {
                found = true;
                mended.extend_from_slice(b"\\ufffd");
                rest = rest.get(6..).unwrap_or_default();
                continue;
            }
            (None, _) => 2.min(rest.len()),
        };
        let (escape, after) = rest.split_at(taken);
        mended.extend_from_slice(escape);
        rest = after;
    }
    found.then_some(mended)
}

/// The surrogate that the text begins with, as an escape of six characters.
fn surrogate(text: &[u8]) -> Option<u32> {
    let digits = std::str::from_utf8(text.strip_prefix(b"\\u")?.get(..4)?).ok()?;
    let unit = u32::from_str_radix(digits, 16).ok()?;
    (0xd800..=0xdfff).contains(&unit).then_some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_follow_the_original() {
        assert_eq!(summary("short"), "short");
        assert_eq!(summary(&"A".repeat(1200)), "A".repeat(1200));
        assert_eq!(summary(&"A".repeat(2000)).len(), 1203);
        let late_space = format!("{} {}", "a".repeat(1000), "b".repeat(1000));
        assert_eq!(summary(&late_space), format!("{}...", "a".repeat(1000)));
        // A space at exactly four fifths is too early: the rule says strictly more.
        let early_space = format!("{} {}", "a".repeat(960), "b".repeat(1000));
        assert_eq!(summary(&early_space).len(), 1203);
        // Emoji are two units each; the cut never splits one.
        let emoji = format!("a{}", "😀".repeat(700));
        assert_eq!(summary(&emoji).chars().count(), 1 + 599 + 3);
    }

    #[test]
    fn lone_surrogates_are_replaced() {
        let mend = |text: &str| {
            without_lone_surrogates(text.as_bytes()).map(|line| String::from_utf8(line).unwrap())
        };
        assert_eq!(mend(r#""a\ud83d""#).unwrap(), r#""a\ufffd""#);
        assert_eq!(
            mend(r#""\ud83d\ud83d\ude00""#).unwrap(),
            r#""\ufffd\ud83d\ude00""#
        );
        assert_eq!(mend(r#""\ude00x""#).unwrap(), r#""\ufffdx""#);
        assert_eq!(mend(r#""\ud83d\ude00""#), None);
        assert_eq!(mend(r#""\\ud83d""#), None, "an escaped backslash");
        assert_eq!(mend(r#""\"#), None);
    }

    #[test]
    fn importance_above_one_was_meant_out_of_ten() {
        assert_eq!(importance(0.4), 0.4);
        assert_eq!(importance(7.0), 0.7);
        assert_eq!(importance(50.0), 1.0);
        assert_eq!(importance(-1.0), 0.0);
    }
}
