//! Answering a probe.

mod words;

use std::cmp::Reverse;
use std::collections::HashSet;

use super::chain::length_with;
use super::docs::{bits, clear_bit, count_bits as count, each_bit, has_bit as has, spaced_bits};
use super::{Index, NOBODY, Sampled};
use crate::model::{Asked, Filter, Time, Told, limits};
use crate::ports::{Answer, Background, Features, Match, Probe};
use crate::search::rank::{LENT_MEANING, lends, mean_nearness};
use crate::search::vector::{Candidates, ScanConfig, TopK, VectorError, VectorSet};

/// Documents whose cosine tells the background of a query: enough for a mean within 0.01.
const BACKGROUND_SAMPLE: usize = 128;

/// The neighbours of so many of the nearest are found with them, where nothing is searched by its words.
pub const NEIGHBOURS_FOUND: usize = 50;

/// Documents that are found by the days that are asked for, at the most.
const OF_DAYS: usize = 150;
/// A document of a day that is asked for, beside those that tell of it.
const OF_DAY: f32 = 0.5;

/// Documents whose lengths tell the mean length.
const LENGTH_SAMPLE: usize = 4096;

/// Up to this many documents of an audience all vectors are compared. The sketches, which choose
/// among more, are centred on the vectors of the whole tenant.
const EXACT_AUDIENCE: usize = 100_000;

/// The documents that a probe may find: a bit for each.
type Mask = Vec<u64>;

/// The documents that the caller may see, whatever else the filter asks for. Every statistic is
/// taken from them alone, so that order and scores do not depend on records of others.
struct Visible<'a> {
    /// `None` if that is every document.
    mask: Option<Mask>,
    /// Statistics of all visible documents, where this index holds only some of them.
    sampled: Option<&'a Sampled<'a>>,
    count: usize,
    mean_length: f32,
    /// Whether the caller sees a part of the tenant, or would if there were records of others.
    is_restricted: bool,
    /// Whether a document's neighbours may be of another user than the one that the filter names.
    mixes_users: bool,
    /// Whether a question lends twice its words to the document after it.
    after_question: bool,
}

impl Index {
    /// The best of each arm, with the scores of both. `within` limits the search to documents
    /// that a store has chosen by what is not in this index.
    pub fn find(
        &self,
        probe: &Probe,
        now: Time,
        within: Option<&HashSet<u64>>,
    ) -> Result<Answer, VectorError> {
        self.find_sampled(probe, now, within, None)
    }

    /// The same where this index holds only the candidates of a larger one and their neighbours:
    /// the statistics are those of all documents.
    pub fn find_sampled(
        &self,
        probe: &Probe,
        now: Time,
        within: Option<&HashSet<u64>>,
        sampled: Option<&Sampled<'_>>,
    ) -> Result<Answer, VectorError> {
        if probe.terms.is_empty() && probe.vectors.is_empty() && probe.asked.is_empty() {
            return Ok(Answer {
                matches: self.newest(&probe.filter, now, within, probe.depth),
                ..Answer::default()
            });
        }
        let audience = probe.filter.audience_only();
        let visible = Visible {
            after_question: probe.after_question,
            ..self.visible(&audience, now, within, sampled)
        };
        let mask = match within {
            None if probe.filter == audience => visible.mask.clone(),
            _ => self.mask(&probe.filter, within, now),
        };
        if mask.as_ref().is_some_and(|mask| count(mask) == 0) {
            return Ok(Answer::default());
        }
        Ok(Answer {
            background: self.background(probe, &visible)?,
            matches: self.matches(probe, now, &visible, mask)?,
            statistics: None,
        })
    }

    /// Speakers of live documents of this audience whose first word is among these, which are in
    /// lower case: by name, at most [`limits::SPEAKERS`].
    pub fn speakers(&self, audience: &Filter, words: &[impl AsRef<str>], now: Time) -> Vec<String> {
        let mut named = self.docs.speakers_named(words);
        let mut left = count(&named);
        if left == 0 {
            return Vec::new();
        }
        let mask = self.mask(&audience.audience_only(), None, now);
        let mask = mask.as_deref().unwrap_or_else(|| self.docs.living());
        let mut found = Vec::new();
        // One pass over a column finds all of them, or ends sooner.
        for doc in bits(mask) {
            let number = self.docs.speaker_number(doc);
            if has(&named, number) {
                clear_bit(&mut named, number);
                found.extend(self.docs.speaker(doc).map(str::to_owned));
                left -= 1;
                if left == 0 {
                    break;
                }
            }
        }
        found.sort_unstable();
        found.truncate(limits::SPEAKERS);
        found
    }

    fn visible<'a>(
        &self,
        audience: &Filter,
        now: Time,
        within: Option<&HashSet<u64>>,
        sampled: Option<&'a Sampled<'a>>,
    ) -> Visible<'a> {
        let mask = self.mask(audience, None, now);
        let is_restricted = !audience.is_empty();
        let mixes_users = audience.owner.user.is_some() && self.docs.mixes_users();
        let mut visible = Visible {
            count: mask.as_deref().map_or(self.docs.len(), count),
            mask,
            sampled,
            mean_length: self.chain.mean_length(self.docs.alive()),
            is_restricted,
            mixes_users,
            after_question: true,
        };
        if is_restricted {
            let docs = self.sample(&visible, LENGTH_SAMPLE);
            let lengths = docs.iter().map(|doc| self.length(*doc, &visible));
            let total: f64 = lengths.map(f64::from).sum();
            visible.mean_length = (total / docs.len().max(1) as f64) as f32;
        }
        if let Some(sampled) = sampled {
            visible.count = visible.count.max(sampled.population.documents);
            visible.mean_length = sampled.population.mean_length + self.mean_lent(&visible, within);
        }
        visible
    }

    /// The mean length that neighbours lend, by the documents whose neighbours are here.
    fn mean_lent(&self, visible: &Visible<'_>, within: Option<&HashSet<u64>>) -> f32 {
        let docs = 0..self.docs.len() as u32;
        let docs = docs.filter(|doc| within.is_none_or(|it| it.contains(&self.docs.seq(*doc))));
        let (mut sum, mut count) = (0.0, 0_usize);
        for doc in docs {
            sum += self.length(doc, visible) - self.docs.length(doc);
            count += 1;
        }
        sum / count.max(1) as f32
    }

    /// At most so many visible documents, evenly spaced.
    fn sample(&self, visible: &Visible<'_>, most: usize) -> Vec<u32> {
        let mask = visible.mask.as_deref();
        spaced_bits(mask.unwrap_or_else(|| self.docs.living()), most)
    }

    /// The length of the document with what its neighbours lend it.
    fn length(&self, doc: u32, visible: &Visible<'_>) -> f32 {
        match visible.mixes_users {
            false => self.chain.length(doc),
            true => length_with(&self.docs, doc, self.around(doc, visible)),
        }
    }

    /// The neighbours that lend to the document.
    #[inline]
    fn around(&self, doc: u32, visible: &Visible<'_>) -> [u32; 4] {
        if !visible.mixes_users {
            return self.chain.around(doc);
        }
        let is_ours = |other: u32| self.docs.is_of_same_user(doc, other);
        self.chain.around_among(doc, is_ours)
    }

    fn matches(
        &self,
        probe: &Probe,
        now: Time,
        visible: &Visible<'_>,
        mask: Option<Mask>,
    ) -> Result<Vec<Match>, VectorError> {
        let mut scratch = self.scratch.borrow(self.docs.len());
        let mut words = self.rare_words(probe, visible, mask.as_ref(), &mut scratch);
        let mut found = self.near(probe, visible, mask.as_deref())?;
        found.extend(self.of_days(&probe.asked, now, mask.as_ref()));
        let (depth, only) = (probe.depth, mask.as_ref());
        self.common_words(&mut words, &found, depth, visible, only, &mut scratch);
        let (matched, information) = (words.matched, words.information.max(f32::MIN_POSITIVE));
        let score = |doc: u32| scratch.words.get(doc as usize).copied().unwrap_or(0.0);
        let mut top = TopK::new(probe.depth);
        for doc in &matched {
            if mask.as_ref().is_none_or(|mask| has(mask, *doc)) {
                top.push(score(*doc), *doc);
            }
        }
        found.extend(top.into_sorted().into_iter().map(|(_, doc)| doc));
        found.sort_unstable();
        found.dedup();
        let looked_at = self.nearness(probe, visible, &found, &mut scratch.near)?;
        let own = |doc: u32| scratch.near.get(doc as usize).copied().unwrap_or(0.0);
        let covered = |doc: u32| scratch.covered.get(doc as usize).copied().unwrap_or(0.0);
        let has_vectors = !probe.vectors.is_empty();
        let matches = found.into_iter().filter_map(|doc| {
            Some(Match {
                words: Some(score(doc)).filter(|score| *score > 0.0),
                meaning: has_vectors.then(|| self.with_neighbours(doc, now, visible, own)),
                ..self.describe(doc, own(doc), covered(doc) / information)?
            })
        });
        let mut matches: Vec<Match> = matches.collect();
        if !probe.asked.is_empty() {
            for found in &mut matches {
                self.tell_days(found);
            }
        }
        zero(&mut scratch.words, &matched);
        zero(&mut scratch.covered, &matched);
        zero(&mut scratch.near, &looked_at);
        self.scratch.give_back(scratch);
        Ok(matches)
    }

    /// The documents whose vectors are nearest to those of the probe. Without words their neighbours, too:
    /// one that is between two near documents may be better than they are.
    fn near(
        &self,
        probe: &Probe,
        visible: &Visible<'_>,
        mask: Option<&[u64]>,
    ) -> Result<Vec<u32>, VectorError> {
        let candidates = mask.map_or(Candidates::All, Candidates::Mask);
        let mut scan = ScanConfig::default();
        if visible.is_restricted {
            scan.exact_up_to = EXACT_AUDIENCE;
        }
        let mut found = Vec::new();
        for (set, query) in self.queries(probe) {
            let near = set.search(query, probe.depth, candidates, &scan)?;
            let near = near.into_iter().filter(|scored| scored.score > 0.0);
            let near: Vec<u32> = near.map(|scored| scored.slot).collect();
            if probe.terms.is_empty() {
                let around = self.around_all(near.iter().take(NEIGHBOURS_FOUND), visible, mask);
                let cosines = set.similarities(query, &around)?;
                let cosines = around.into_iter().zip(cosines);
                found.extend(
                    cosines
                        .filter(|(_, cosine)| *cosine > 0.0)
                        .map(|(doc, _)| doc),
                );
            }
            found.extend(near);
        }
        Ok(found)
    }

    /// The neighbours of these documents that may be found.
    fn around_all<'a>(
        &self,
        docs: impl Iterator<Item = &'a u32>,
        visible: &Visible<'_>,
        mask: Option<&[u64]>,
    ) -> Vec<u32> {
        let around = docs.flat_map(|doc| self.around(*doc, visible));
        let around = around.filter(|doc| *doc != NOBODY);
        let mut around: Vec<u32> = around
            .filter(|doc| mask.is_none_or(|mask| has(mask, *doc)))
            .collect();
        around.sort_unstable();
        around.dedup();
        around
    }

    /// Whether a probe with this filter looks at so many documents at the most.
    pub fn is_among(&self, filter: &Filter, most: usize) -> bool {
        self.docs.is_among(filter, most)
    }

    /// The newest documents that a probe may find, for a query that says nothing: newest first.
    fn newest(
        &self,
        filter: &Filter,
        now: Time,
        within: Option<&HashSet<u64>>,
        most: usize,
    ) -> Vec<Match> {
        let mut newest = TopK::new(most);
        let mut push = |doc: u32| newest.push(0.0, Reverse((self.docs.created(doc), doc)));
        match self.mask(filter, within, now) {
            Some(mask) => each_bit(&mask, &mut push),
            None => each_bit(self.docs.living(), &mut push),
        }
        let newest = newest.into_sorted().into_iter();
        newest
            .filter_map(|(_, Reverse((_, doc)))| self.describe(doc, 0.0, 0.0))
            .collect()
    }

    /// The documents that a probe may find: neither removed nor expired, so that no arm spends
    /// its depth on documents which are not shown. `None` if every document may be found.
    fn mask(&self, filter: &Filter, within: Option<&HashSet<u64>>, now: Time) -> Option<Mask> {
        let all_live = self.docs.all_live(now);
        if filter.is_empty() && within.is_none() && all_live {
            return None;
        }
        let mut mask = self.docs.meant(filter);
        let mut remove_unless = |keep: &dyn Fn(u32) -> bool| {
            let among = mask.clone();
            each_bit(&among, &mut |doc| {
                if !keep(doc) {
                    clear_bit(&mut mask, doc);
                }
            });
        };
        if let Some(within) = within {
            remove_unless(&|doc| within.contains(&self.docs.seq(doc)));
        }
        if self.docs.some_expired(now) {
            remove_unless(&|doc| !self.docs.has_expired(doc, now));
        }
        (count(&mask) < self.docs.len()).then_some(mask)
    }

    /// The cosine of the first of the probe's models that has vectors of visible documents, over
    /// documents spread evenly among these. `None` if no model has any.
    fn background(
        &self,
        probe: &Probe,
        visible: &Visible<'_>,
    ) -> Result<Option<Background>, VectorError> {
        if let Some(sampled) = visible.sampled {
            return Ok(sampled.background);
        }
        let mut queries = self.queries(probe).peekable();
        if queries.peek().is_none() {
            return Ok(None);
        }
        let sample = self.sample(visible, BACKGROUND_SAMPLE);
        for (set, query) in queries {
            let docs = sample.iter().copied().filter(|doc| set.has(*doc));
            let docs: Vec<u32> = docs.collect();
            if !docs.is_empty() {
                return Ok(Background::of(set.similarities(query, &docs)?));
            }
        }
        Ok(None)
    }

    fn queries<'a>(&'a self, probe: &'a Probe) -> impl Iterator<Item = (&'a VectorSet, &'a [f32])> {
        probe.vectors.iter().filter_map(|query| {
            let set = self.vectors.get(&query.model)?;
            Some((set, query.vector.as_slice()))
        })
    }

    /// How near these documents and their neighbours are to the probe, each by the first of the
    /// models that knows it. Answers which were looked at.
    fn nearness(
        &self,
        probe: &Probe,
        visible: &Visible<'_>,
        found: &[u32],
        near: &mut [f32],
    ) -> Result<Vec<u32>, VectorError> {
        if probe.vectors.is_empty() {
            return Ok(Vec::new());
        }
        let around = found.iter().flat_map(|doc| self.around(*doc, visible));
        let mut docs: Vec<u32> = found.iter().copied().chain(around).collect();
        docs.sort_unstable();
        docs.dedup();
        docs.retain(|doc| *doc != NOBODY);
        let mut unknown = docs.clone();
        for (set, query) in self.queries(probe) {
            for (doc, cosine) in unknown.iter().zip(set.similarities(query, &unknown)?) {
                if let Some(near) = near.get_mut(*doc as usize) {
                    *near = cosine.max(0.0);
                }
            }
            unknown.retain(|doc| !set.has(*doc));
        }
        Ok(docs)
    }

    /// How near it is with its neighbours: their mean, weighed by what they lend. One that has
    /// expired lends nothing.
    fn with_neighbours(
        &self,
        doc: u32,
        now: Time,
        visible: &Visible<'_>,
        own: impl Fn(u32) -> f32,
    ) -> f32 {
        let around = self.around(doc, visible).into_iter().zip(LENT_MEANING);
        let live = around.filter(|(neighbour, _)| self.is_live(*neighbour, now));
        let lent = live.map(|(neighbour, share)| {
            let share = share * lends(self.docs.length(neighbour));
            (share, own(neighbour))
        });
        mean_nearness(own(doc), lent)
    }

    /// The documents that tell of the days that are asked for, and those that are of such a day:
    /// the best of them.
    fn of_days(&self, asked: &[Asked], now: Time, mask: Option<&Mask>) -> Vec<u32> {
        if asked.is_empty() {
            return Vec::new();
        }
        let may_be_found = |doc: u32| match mask {
            Some(mask) => has(mask, doc),
            None => self.is_live(doc, now),
        };
        let told = self.told.all().filter(|(doc, _)| may_be_found(*doc));
        let told: Vec<(u32, Told)> = told.collect();
        let docs = (0..self.docs.len() as u32).filter(|doc| may_be_found(*doc));
        let docs: Vec<(u32, i32)> = docs.map(|doc| (doc, self.docs.day(doc))).collect();
        // Only the years of what may be found: other users' records must not count.
        let days = docs.iter().map(|(_, day)| *day);
        let days = days.chain(
            told.iter()
                .flat_map(|(_, told)| [told.days.from, told.days.to]),
        );
        let (first, last) = days.fold((i32::MAX, i32::MIN), |(first, last), day| {
            (first.min(day), last.max(day))
        });
        let asked = asked.iter().flat_map(|asked| asked.in_years(first, last));
        let asked: Vec<Asked> = asked.collect();
        let mut top = TopK::new(OF_DAYS);
        for (doc, told) in told {
            let fits = asked.iter().map(|asked| told.fits(asked));
            let fit = fits.fold(0.0, f32::max);
            if fit > 0.0 {
                top.push(fit, doc);
            }
        }
        for (doc, day) in docs {
            if let Some(asked) = asked.iter().find(|asked| asked.has(day)) {
                let share = if asked.is_short() { 1.0 } else { 0.5 };
                top.push(OF_DAY * share, doc);
            }
        }
        top.into_sorted().into_iter().map(|(_, doc)| doc).collect()
    }

    fn tell_days(&self, found: &mut Match) {
        if let Some(features) = &mut found.features
            && let Some(doc) = self.docs.of_seq(features.seq)
        {
            features.told = self.told.of(doc);
        }
    }

    fn describe(&self, doc: u32, cosine: f32, coverage: f32) -> Option<Match> {
        Some(Match {
            id: self.docs.id(doc)?,
            words: None,
            meaning: None,
            features: Some(Features {
                seq: self.docs.seq(doc),
                cosine,
                coverage,
                created: Time::EPOCH.plus_millis(self.docs.created(doc)),
                importance: self.docs.importance(doc),
                asking: self.docs.asking(doc),
                length: self.docs.length(doc),
                speaker: self.docs.speaker(doc).map(str::to_owned),
                traits: self.docs.traits(doc),
                told: Vec::new(),
            }),
        })
    }
}

fn zero(numbers: &mut [f32], docs: &[u32]) {
    for doc in docs {
        if let Some(number) = numbers.get_mut(*doc as usize) {
            *number = 0.0;
        }
    }
}

#[cfg(test)]
mod tests;
