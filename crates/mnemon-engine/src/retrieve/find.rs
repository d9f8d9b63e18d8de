//! The second stage: what the index finds, as candidates for ranking. What the index does not do
//! by itself is done here.

use std::collections::HashSet;

use mnemon_core::index::Terms;
use mnemon_core::rank::{CONTEXT_REACH, fuse_by_rank, score_in_context};
use mnemon_core::{
    Answer, Candidate, Features, Grant, Id, Match, Probe, Record, ScoreScale, SessionWindow,
};

use crate::{Error, Records};

/// An index is asked for so many times as many matches if some of them may have to be left out
/// because of a filter,
const FILTERED_LATER: usize = 4;
/// because they were deleted in the meantime,
const DELETED_LATER: usize = 2;
/// or if neighbours decide which matches are the best. What a neighbour lends is known as far as
/// the matches go.
const IN_CONTEXT: usize = 4;

/// What an index found.
pub(super) struct Candidates {
    pub(super) list: Vec<Candidate>,
    /// Matches that are not candidates: the filter does not mean them, or they are gone.
    pub(super) left_out: usize,
    /// Whether a deeper probe would find nothing else.
    pub(super) is_all: bool,
}

impl Records {
    /// The probe as this index has to be asked for the best that the probe means.
    pub(crate) fn planned(&self, probe: &Probe) -> Probe {
        let index = self.index.capabilities();
        let factors = [
            (index.filters.cover(&probe.filter), FILTERED_LATER),
            (index.deletes_at_once, DELETED_LATER),
            (index.neighbour_context, IN_CONTEXT),
        ];
        let factors = factors.iter().filter(|(is_inside, _)| !is_inside);
        let times: usize = factors.map(|(_, times)| times).product();
        let deepest = self.limits().search_depth_most.max(probe.depth);
        Probe {
            depth: probe.depth.saturating_mul(times).min(deepest),
            ..probe.clone()
        }
    }

    pub(super) async fn candidates(
        &self,
        grant: &Grant,
        probe: &Probe,
    ) -> Result<Candidates, Error> {
        let planned = self.planned(probe);
        let mut answer = self.index.find(grant, &planned).await?;
        let is_all = answer.matches.len() < planned.depth
            || planned.depth >= self.limits().search_depth_most;
        let index = self.index.capabilities();
        fuse_by_rank(&mut answer.matches, index.words, |found| &mut found.words);
        fuse_by_rank(&mut answer.matches, index.meaning, |found| {
            &mut found.meaning
        });
        let found = answer.matches.len();
        let list = match index.neighbour_context {
            true => self.described(grant, answer.matches, probe).await?,
            false => self.in_context(grant, answer, probe, planned.depth).await?,
        };
        Ok(Candidates {
            left_out: found.saturating_sub(list.len()),
            list,
            is_all,
        })
    }

    /// The matches of an index that applies neighbour context. What it does not tell of a record is
    /// taken from the record.
    async fn described(
        &self,
        grant: &Grant,
        matches: Vec<Match>,
        probe: &Probe,
    ) -> Result<Vec<Candidate>, Error> {
        let bare = matches.iter().filter(|found| found.features.is_none());
        let bare: Vec<Id> = bare.map(|found| found.id.clone()).collect();
        let mut records = Vec::with_capacity(bare.len());
        for page in bare.chunks(grant.limits().page) {
            records.extend(self.store.get(grant, page).await?);
        }
        let mut records = records.into_iter();
        let has_scale = self.index.capabilities().meaning != ScoreScale::Unknown;
        let candidates = matches.into_iter().filter_map(|found| {
            let features = match found.features {
                Some(features) => features,
                None => {
                    let record = records.next().flatten();
                    let record = record.filter(|record| self.admits(record, probe))?;
                    let cosine = found.meaning.filter(|_| has_scale);
                    // The floor on nearness is for cosines only.
                    let cosine = cosine.or(found.meaning.map(|_| 1.0)).unwrap_or(0.0);
                    Features::of(&record, &Terms::of(&record), cosine)
                }
            };
            Some(Candidate {
                id: found.id,
                words: found.words.unwrap_or(0.0),
                meaning: found.meaning.unwrap_or(0.0),
                features,
            })
        });
        Ok(candidates.collect())
    }

    /// The best matches of an index that knows no neighbours, and the neighbours, scored together.
    async fn in_context(
        &self,
        grant: &Grant,
        answer: Answer,
        probe: &Probe,
        depth: usize,
    ) -> Result<Vec<Candidate>, Error> {
        let mut ids = best(&answer.matches, probe.depth, |found| found.words);
        ids.extend(best(&answer.matches, probe.depth, |found| found.meaning));
        let ids: HashSet<&Id> = ids.into_iter().collect();
        let ids: Vec<Id> = ids.into_iter().cloned().collect();
        let mut windows: Vec<SessionWindow> = Vec::with_capacity(ids.len());
        for page in ids.chunks(grant.limits().page) {
            let found = self.store.neighbours(grant, page, CONTEXT_REACH).await?;
            windows.extend(found.into_iter().flatten());
        }
        let mut candidates = score_in_context(&answer, &probe.terms, &windows, depth);
        let records = windows.iter().flat_map(|window| &window.records);
        let admitted = records.filter(|record| self.admits(record, probe));
        let admitted: HashSet<&Id> = admitted.map(|record| &record.id).collect();
        candidates.retain(|candidate| admitted.contains(&candidate.id));
        Ok(candidates)
    }

    fn admits(&self, record: &Record, probe: &Probe) -> bool {
        probe.filter.matches(record) && self.shows(record)
    }
}

/// The best matches of one arm.
fn best(matches: &[Match], most: usize, arm: fn(&Match) -> Option<f32>) -> Vec<&Id> {
    let scored = matches
        .iter()
        .filter_map(|found| Some((arm(found)?, found)));
    let mut scored: Vec<(f32, &Match)> = scored.collect();
    scored.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let best = scored.into_iter().take(most);
    best.map(|(_, found)| &found.id).collect()
}
