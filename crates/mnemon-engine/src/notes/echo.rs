//! The echo guard: what is known already is not stored as something new.

use std::sync::atomic::Ordering;

use mnemon_core::budget::similarity;
use mnemon_core::{
    Ctx, Filter, Id, Kind, Namespace, Probe, QueryTerm, Record, Right, Scope, StoreError, limits,
    note,
};

use serde::{Deserialize, Serialize};

use super::{Notes, is_note};
use crate::records::{Draft, Error, Records};

/// Words that a known text is looked for by,
const WORDS: usize = 24;
/// of so much of its beginning.
const LOOKED_AT: usize = 2000;
/// Records that are compared.
const COMPARED: usize = 16;

/// A note is written again only if that keeps it longer by at least so much.
const WORTHWHILE_MS: i64 = 3_600_000;

/// Records of a store whose index is small enough to be read for one note.
const QUICKLY_READ: u64 = 5_000;

/// How much of the words of two notes is the same if one is a near-duplicate.
const NEAR: f64 = 0.7;

/// A record that says nearly the same as a new one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NearDuplicate {
    pub id: Id,
    /// The share of their words that both have, from 0 to 1.
    pub similarity: f64,
}

/// What is known about the text of a new note.
#[derive(Default)]
pub(super) struct Resemblance {
    /// A record that says exactly this.
    pub(super) same: Option<Record>,
    pub(super) near: Option<NearDuplicate>,
}

impl Notes {
    /// The record that says nearly what the draft says, if there is one.
    pub async fn near_duplicate(
        &self,
        ctx: &Ctx,
        draft: &Draft,
    ) -> Result<Option<NearDuplicate>, Error> {
        Ok(self.resembling(ctx, draft).await?.near)
    }

    /// Records that say this already, or nearly, whoever wrote them and under whichever id.
    ///
    /// It is asked of the index, which may have to be read first. So it is asked only where
    /// something was searched for before, as then the index is there and what was never recalled
    /// cannot come back, or where the index is small.
    pub(super) async fn resembling(&self, ctx: &Ctx, draft: &Draft) -> Result<Resemblance, Error> {
        let is_loaded = self.records.recalled.load(Ordering::Relaxed);
        if !is_loaded && self.records.stats(ctx).await?.records() > QUICKLY_READ {
            return Ok(Resemblance::default());
        }
        let mut terms = QueryTerm::words_of(note::head(&draft.content, LOOKED_AT));
        terms.truncate(WORDS);
        // Only what its readers may see is known to them.
        let filter = Filter {
            owner: draft.owner.clone(),
            scopes: vec![Scope::Semantic],
            kinds: vec![Kind::Note, Kind::Fact, Kind::Decision],
            ..Filter::seen_by(draft.audience().viewer())
        };
        // A note that lacks all of the rarest words has too few of the others to be near. Common words
        // would take most of the time: with 100,000 records ten times that of the write itself.
        let others = terms.len() as f64 * (1.0 - NEAR);
        let probe = Probe {
            rarest: Some(others as usize + 1),
            terms,
            may_run_inline: true,
            ..Probe::new(filter, COMPARED)
        };
        if probe.terms.is_empty() {
            return Ok(Resemblance::default());
        }
        let records = &self.records;
        let grant = records.policy.check(ctx, Right::Read)?;
        let mut found = match records.index.find(&grant, &records.planned(&probe)).await {
            Ok(found) => found,
            // An index in a search server may be away while the store itself can be written.
            Err(error @ StoreError::Unavailable { .. }) => {
                ctx.notices.add(format!(
                    "Older records were not searched for the same text: {error}"
                ));
                return Ok(Resemblance::default());
            }
            Err(error) => return Err(error.into()),
        };
        found
            .matches
            .sort_by(|a, b| b.words.unwrap_or(0.0).total_cmp(&a.words.unwrap_or(0.0)));
        let ids: Vec<Id> = found.matches.into_iter().map(|found| found.id).collect();
        let ids = ids.get(..COMPARED * 2).unwrap_or(&ids);
        let there = records.get_all(ctx, ids).await?.into_iter().flatten();
        let there = there.filter(|record| probe.filter.matches(record));
        let (same, others): (Vec<Record>, Vec<Record>) =
            there.partition(|record| says(&record.content, &draft.content));
        Ok(Resemblance {
            same: same.into_iter().next(),
            near: nearest(&others, &draft.content),
        })
    }

    /// The first of these pieces of knowledge that readers of the draft may see. The ids come from
    /// the caller's text, which may name anything.
    pub(super) async fn first_of(
        &self,
        ctx: &Ctx,
        draft: &Draft,
        ids: &[Id],
    ) -> Result<Option<Record>, Error> {
        let viewer = draft.audience().viewer();
        let found = self.records.get_seen_by(ctx, &viewer, ids).await?;
        let mut found = found.into_iter().flatten();
        Ok(found.find(|record| record.scope == Scope::Semantic))
    }
}

fn nearest(records: &[Record], content: &str) -> Option<NearDuplicate> {
    let compared = records.iter().map(|record| NearDuplicate {
        id: record.id.clone(),
        similarity: similarity(&record.content, content),
    });
    compared
        .filter(|near| near.similarity >= NEAR)
        .max_by(|a, b| a.similarity.total_cmp(&b.similarity))
}

/// Brings what is known up to what was said about it now: more tags, more important, kept longer.
/// Whether anything changed.
pub(super) async fn renew(
    records: &Records,
    ctx: &Ctx,
    known: Record,
    draft: &Draft,
) -> Result<(Record, bool), Error> {
    let mut record = known;
    for _ in 0..limits::CHANGE_TRIES {
        let mut better = record.clone();
        improve(&mut better, draft, records, ctx);
        if better == record {
            return Ok((record, false));
        }
        match records.update_screened(ctx, better.clone()).await {
            Ok(_) => return Ok((better, true)),
            Err(Error::Store(StoreError::Conflict { .. })) => {
                match records.find(ctx, &record.id).await? {
                    Some(now) => record = now,
                    None => return Ok((record, false)),
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok((record, false))
}

fn improve(record: &mut Record, draft: &Draft, records: &Records, ctx: &Ctx) {
    if !is_note(record) {
        return;
    }
    for tag in &draft.tags {
        if !record.tags.contains(tag) && record.tags.len() < limits::TAGS {
            record.tags.push(tag.clone());
        }
    }
    record.importance = record.importance.max(draft.importance.unwrap_or(0.0));
    if draft.namespace == Some(Namespace::LongTerm) {
        record.namespace = Namespace::LongTerm;
    }
    let usual = records.retention.expiry(record.namespace, ctx.now);
    let expires = draft.expires.or(usual);
    record.expires = match (record.expires, expires) {
        (Some(old), Some(new)) if new.millis() - old.millis() < WORTHWHILE_MS => Some(old),
        (Some(_), Some(new)) => Some(new),
        _ => None,
    };
    if record.source.is_none() {
        record.source.clone_from(&draft.source);
    }
    let before = record.metadata.clone();
    for (name, value) in &draft.metadata {
        record.metadata.insert(name.clone(), value.clone());
    }
    if record.check().is_err() {
        // Together they would be too much; what is there stays.
        record.metadata = before;
    }
}

/// Whether a note says this already. Answers tell a note on one line, and as such it may come back.
fn says(known: &str, new: &str) -> bool {
    known == new || (!new.contains('\n') && known.split_whitespace().eq(new.split_whitespace()))
}
