//! Answering a probe.

use std::cmp::Reverse;
use std::collections::HashSet;

use super::docs::each_bit;
use super::scratch::Scratch;
use super::{Index, NOBODY, hash};
use crate::model::{Filter, Time};
use crate::ports::{Answer, Background, Features, Match, Probe, QueryTerm};
use crate::search::dates::Asked;
use crate::search::rank::{Bm25, LENT_MEANING, lends, lent_words, mean_nearness};
use crate::search::vector::{Candidates, ScanConfig, TopK, VectorError, VectorSet};

/// Once this many places were touched by rarer words, commoner words only weigh what was found.
const SPREAD: usize = 10_000;

/// A filter that means one document in so many spares the others' words.
const FEW: usize = 4;

/// Of a posting that is so many times as long, only the documents that are heard are looked up.
const SELDOM: usize = 8;

/// Documents whose cosine tells the background of a query: enough for a mean within 0.01.
const BACKGROUND_SAMPLE: usize = 128;

/// Documents that are found by the days that are asked for, at the most.
const OF_DAYS: usize = 150;
/// A document of a day that is asked for, beside those that tell of it.
const OF_DAY: f32 = 0.5;

/// The documents that a probe may find: a bit for each.
type Mask = Vec<u64>;

/// Documents whose words count, and how many they are.
struct Heard {
    mask: Mask,
    count: usize,
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
        if probe.terms.is_empty() && probe.vectors.is_empty() {
            return Ok(Answer {
                matches: self.newest(&probe.filter, now, within, probe.depth),
                ..Answer::default()
            });
        }
        let mask = self.mask(&probe.filter, within, now);
        if mask.as_ref().is_some_and(|mask| count(mask) == 0) {
            return Ok(Answer::default());
        }
        Ok(Answer {
            background: self.background(probe, mask.as_deref())?,
            matches: self.matches(probe, now, mask)?,
            statistics: None,
        })
    }

    fn matches(
        &self,
        probe: &Probe,
        now: Time,
        mask: Option<Mask>,
    ) -> Result<Vec<Match>, VectorError> {
        let mut scratch = self.scratch.borrow(self.docs.len());
        let heard = mask.as_ref().and_then(|mask| self.heard_by(mask));
        let (matched, information) = self.words(&probe.terms, now, heard.as_ref(), &mut scratch);
        let score = |doc: u32| scratch.words.get(doc as usize).copied().unwrap_or(0.0);
        let mut top = TopK::new(probe.depth);
        for doc in &matched {
            if mask.as_ref().is_none_or(|mask| has(mask, *doc)) {
                top.push(score(*doc), *doc);
            }
        }
        let mut found: Vec<u32> = top.into_sorted().into_iter().map(|(_, doc)| doc).collect();
        let candidates = mask.as_deref().map_or(Candidates::All, Candidates::Mask);
        for (set, query) in self.queries(probe) {
            let near = set.search(query, probe.depth, candidates, &ScanConfig::default())?;
            let near = near.into_iter().filter(|scored| scored.score > 0.0);
            found.extend(near.map(|scored| scored.slot));
        }
        found.extend(self.of_days(&probe.asked, now, mask.as_ref()));
        found.sort_unstable();
        found.dedup();
        let looked_at = self.nearness(probe, &found, &mut scratch.near)?;
        let own = |doc: u32| scratch.near.get(doc as usize).copied().unwrap_or(0.0);
        let score = |doc: u32| scratch.words.get(doc as usize).copied().unwrap_or(0.0);
        let covered = |doc: u32| scratch.covered.get(doc as usize).copied().unwrap_or(0.0);
        let has_vectors = !probe.vectors.is_empty();
        let matches = found.into_iter().filter_map(|doc| {
            Some(Match {
                words: Some(score(doc)).filter(|score| *score > 0.0),
                meaning: has_vectors.then(|| self.with_neighbours(doc, now, own)),
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
                if !keep(doc)
                    && let Some(word) = mask.get_mut(doc as usize / 64)
                {
                    *word &= !(1 << (doc % 64));
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

    /// The documents whose words count for those in the mask: they themselves and their
    /// neighbours. `None` where it is not worth telling them from the others.
    fn heard_by(&self, mask: &Mask) -> Option<Heard> {
        if count(mask) * FEW > self.docs.len() {
            return None;
        }
        let mut heard = mask.clone();
        each_bit(mask, &mut |doc| {
            for neighbour in self.chain.around(doc) {
                if let Some(word) = heard.get_mut(neighbour as usize / 64) {
                    *word |= 1 << (neighbour % 64);
                }
            }
        });
        let count = count(&heard);
        Some(Heard { mask: heard, count })
    }

    /// The cosine of the first of the probe's models, over documents spread evenly among those
    /// that the probe may find. `None` if none of them has a vector of that model.
    fn background(
        &self,
        probe: &Probe,
        mask: Option<&[u64]>,
    ) -> Result<Option<Background>, VectorError> {
        let Some((set, query)) = self.queries(probe).next() else {
            return Ok(None);
        };
        let mask = mask.unwrap_or_else(|| self.docs.living());
        let mut docs: Vec<u32> = Vec::new();
        let apart = count(mask).div_ceil(BACKGROUND_SAMPLE).max(1);
        let mut place = 0;
        each_bit(mask, &mut |doc| {
            if place % apart == 0 && set.has(doc) {
                docs.push(doc);
            }
            place += 1;
        });
        let cosines = set.similarities(query, &docs)?;
        Ok(Background::of(cosines))
    }

    /// BM25 of every document, with what its neighbours lend it counted as its own words; answers
    /// which documents have any, and how much information the terms hold in all.
    fn words(
        &self,
        terms: &[QueryTerm],
        now: Time,
        heard: Option<&Heard>,
        scratch: &mut Scratch,
    ) -> (Vec<u32>, f32) {
        let Scratch {
            words: scores,
            occurs: lent,
            covered,
            ..
        } = scratch;
        let mut touched: Vec<u32> = Vec::new();
        let mut matched: Vec<u32> = Vec::new();
        let bm25 = Bm25::new(self.chain.mean_length(self.docs.alive()));
        let all_live = self.docs.all_live(now);
        let alive = self.docs.alive();
        let mut information = 0.0;
        let mut known = Vec::with_capacity(terms.len());
        for term in terms {
            match self.postings.of(hash(&term.text)) {
                Some(posting) => known.push((posting, term)),
                None => information += Bm25::worth(term.information(), alive, 1),
            }
        }
        known.sort_by_key(|(posting, _)| posting.len());
        let mut spread = 0;
        for (posting, term) in known {
            let common = spread > SPREAD;
            // Postings still hold what was removed or has expired, and it must have no say.
            let mut having = 0;
            let mut occurs = |doc: u32, tf: f32| {
                let known = || scores.get(doc as usize).is_some_and(|score| *score != 0.0);
                if !common || known() {
                    self.spread(doc, tf, lent, &mut touched);
                }
            };
            match heard {
                Some(heard) if all_live && heard.count * SELDOM < posting.len() => {
                    having = posting.len();
                    posting.among(&heard.mask, &mut occurs);
                }
                _ => {
                    for (doc, tf) in posting.iter() {
                        if !all_live && !self.is_live(doc, now) {
                            continue;
                        }
                        having += 1;
                        if heard.is_none_or(|heard| has(&heard.mask, doc)) {
                            occurs(doc, tf);
                        }
                    }
                }
            }
            spread += touched.len();
            let worth = Bm25::worth(term.weight, alive, having);
            let informs = Bm25::worth(term.information(), alive, having.max(1));
            information += informs;
            for doc in touched.drain(..) {
                let at = doc as usize;
                let (Some(tf), Some(score), Some(covered)) =
                    (lent.get_mut(at), scores.get_mut(at), covered.get_mut(at))
                else {
                    continue;
                };
                if *score == 0.0 {
                    matched.push(doc);
                }
                *score += bm25.score(worth, *tf, self.chain.length(doc));
                *covered += informs * tf.min(1.0);
                *tf = 0.0;
            }
        }
        (matched, information.max(f32::MIN_POSITIVE))
    }

    /// Counts an occurrence for the document and, in part, for those it is a neighbour of.
    fn spread(&self, doc: u32, tf: f32, lent: &mut [f32], touched: &mut Vec<u32>) {
        let mut add = |doc: u32, tf: f32| {
            if let Some(sum) = lent.get_mut(doc as usize) {
                if *sum == 0.0 {
                    touched.push(doc);
                }
                *sum += tf;
            }
        };
        add(doc, tf);
        let around = self.chain.around(doc);
        if around == [NOBODY; 4] {
            return;
        }
        let tf = tf * lends(self.docs.length(doc));
        let shares = lent_words(self.docs.traits(doc).asks());
        // The neighbour before us has us after it: the shares are seen from the other side.
        for (neighbour, share) in around.into_iter().zip(shares.into_iter().rev()) {
            if neighbour != NOBODY {
                add(neighbour, share * tf);
            }
        }
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
        found: &[u32],
        near: &mut [f32],
    ) -> Result<Vec<u32>, VectorError> {
        if probe.vectors.is_empty() {
            return Ok(Vec::new());
        }
        let around = found.iter().flat_map(|doc| self.chain.around(*doc));
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
    fn with_neighbours(&self, doc: u32, now: Time, own: impl Fn(u32) -> f32) -> f32 {
        let around = self.chain.around(doc).into_iter().zip(LENT_MEANING);
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
        let Some((first, last)) = self.docs.days().filter(|_| !asked.is_empty()) else {
            return Vec::new();
        };
        let asked = asked.iter().flat_map(|asked| asked.in_years(first, last));
        let asked: Vec<Asked> = asked.collect();
        let may_be_found = |doc: u32| match mask {
            Some(mask) => has(mask, doc),
            None => self.is_live(doc, now),
        };
        let mut top = TopK::new(OF_DAYS);
        for (doc, told) in self.told.all() {
            let fit = asked
                .iter()
                .map(|asked| told.fits(asked))
                .fold(0.0, f32::max);
            if fit > 0.0 && may_be_found(doc) {
                top.push(fit, doc);
            }
        }
        let single: Vec<Asked> = asked.into_iter().filter(Asked::is_short).collect();
        if !single.is_empty() {
            for doc in 0..self.docs.len() as u32 {
                let day = self.docs.day(doc);
                if single.iter().any(|asked| asked.has(day)) && may_be_found(doc) {
                    top.push(OF_DAY, doc);
                }
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

fn count(mask: &[u64]) -> usize {
    mask.iter().map(|word| word.count_ones() as usize).sum()
}

fn has(mask: &Mask, doc: u32) -> bool {
    let word = mask.get(doc as usize / 64).copied().unwrap_or(0);
    word & (1 << (doc % 64)) != 0
}

fn zero(numbers: &mut [f32], docs: &[u32]) {
    for doc in docs {
        if let Some(number) = numbers.get_mut(*doc as usize) {
            *number = 0.0;
        }
    }
}
