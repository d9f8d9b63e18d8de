//! The second stage: what the index finds, as candidates for ranking. What the index does not do
//! by itself is done here.

use std::collections::HashSet;

use mnemon_core::index::Terms;
use mnemon_core::rank::{CONTEXT_REACH, fuse_by_rank, score_in_context};
use mnemon_core::{
    Background, Candidate, Features, Grant, Id, Match, Probe, Record, ScoreScale, SessionWindow,
};

use crate::records::{Error, Records};

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
    pub(super) background: Option<Background>,
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
        let refused = self.describe(grant, &mut answer.matches, probe).await?;
        let is_left = |found: &Match| !refused.contains(&found.id);
        let list = match index.neighbour_context {
            true => {
                let left = std::mem::take(&mut answer.matches).into_iter();
                left.filter(is_left).filter_map(candidate).collect()
            }
            false => {
                let words = best(&answer.matches, probe.depth, is_left, |found| found.words);
                let meaning = best(&answer.matches, probe.depth, is_left, |found| found.meaning);
                let ids: HashSet<Id> = words.into_iter().chain(meaning).collect();
                let windows = self.windows(grant, ids).await?;
                let scored = score_in_context(&answer, &probe.terms, &windows, planned.depth);
                self.admitted(scored, &windows, probe)
            }
        };
        Ok(Candidates {
            list,
            left_out: refused.len(),
            is_all,
            background: answer.background,
        })
    }

    /// Fetches the records of the matches if the index does not tell enough of them: ranking needs
    /// to know more of them, or they may have to be left out. Answers which have to be.
    async fn describe(
        &self,
        grant: &Grant,
        matches: &mut [Match],
        probe: &Probe,
    ) -> Result<HashSet<Id>, Error> {
        let index = self.index.capabilities();
        let is_exact = index.deletes_at_once && index.filters.cover(&probe.filter);
        let is_bare = |found: &Match| index.neighbour_context && found.features.is_none();
        let mut refused = HashSet::new();
        for page in matches.chunks_mut(grant.limits().page) {
            if is_exact && !page.iter().any(is_bare) {
                continue;
            }
            let ids: Vec<Id> = page.iter().map(|found| found.id.clone()).collect();
            let records = self.store.get(grant, &ids).await?;
            for (found, record) in page.iter_mut().zip(records) {
                let Some(record) = record.filter(|record| self.admits(record, probe)) else {
                    refused.insert(found.id.clone());
                    continue;
                };
                if is_bare(found) {
                    let cosine = match (found.meaning, index.meaning) {
                        // The floor on nearness is for cosines only.
                        (Some(_), ScoreScale::Unknown) => 1.0,
                        (nearness, _) => nearness.unwrap_or(0.0),
                    };
                    let terms = Terms::of(&record);
                    let coverage = terms.covers(&probe.terms);
                    found.features = Some(Features::of(&record, &terms, cosine, coverage));
                }
            }
        }
        Ok(refused)
    }

    /// The sessions around these records.
    async fn windows(&self, grant: &Grant, ids: HashSet<Id>) -> Result<Vec<SessionWindow>, Error> {
        let ids: Vec<Id> = ids.into_iter().collect();
        let mut windows = Vec::with_capacity(ids.len());
        for page in ids.chunks(grant.limits().page) {
            let found = self.store.neighbours(grant, page, CONTEXT_REACH).await?;
            windows.extend(found.into_iter().flatten());
        }
        Ok(windows)
    }

    /// Those of the candidates that the probe means: neighbours lend to them, whatever the filter
    /// says, but are no hits unless it means them, too.
    fn admitted(
        &self,
        mut candidates: Vec<Candidate>,
        windows: &[SessionWindow],
        probe: &Probe,
    ) -> Vec<Candidate> {
        let records = windows.iter().flat_map(|window| &window.records);
        let meant = records.filter(|record| self.admits(record, probe));
        let meant: HashSet<&Id> = meant.map(|record| &record.id).collect();
        candidates.retain(|candidate| meant.contains(&candidate.id));
        candidates
    }

    fn admits(&self, record: &Record, probe: &Probe) -> bool {
        probe.filter.matches(record) && self.shows(record)
    }
}

fn candidate(found: Match) -> Option<Candidate> {
    Some(Candidate {
        id: found.id,
        words: found.words.unwrap_or(0.0),
        meaning: found.meaning.unwrap_or(0.0),
        features: found.features?,
    })
}

/// The best matches of one arm.
fn best(
    matches: &[Match],
    most: usize,
    is_left: impl Fn(&Match) -> bool,
    arm: fn(&Match) -> Option<f32>,
) -> Vec<Id> {
    let left = matches.iter().filter(|found| is_left(found));
    let scored = left.filter_map(|found| Some((arm(found)?, found)));
    let mut scored: Vec<(f32, &Match)> = scored.collect();
    scored.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let best = scored.into_iter().take(most);
    best.map(|(_, found)| found.id.clone()).collect()
}
