//! The words arm: BM25 over postings, the rarest terms first.

use std::ops::Range;

use super::{Mask, Visible};
use crate::ports::{Probe, QueryTerm};
use crate::search::index::docs::{count_bits as count, each_bit, has_bit as has, set_bit};
use crate::search::index::postings::Posting;
use crate::search::index::scratch::Scratch;
use crate::search::index::{Index, NOBODY, hash};
use crate::search::rank::{Bm25, lends, lent_words};

/// Once this many places were touched by rarer words, commoner words only weigh what was found.
const SPREAD: usize = 10_000;

/// A filter that means one document in so many spares the others' words.
const FEW: usize = 4;

/// Of a posting that is so many times as long, only the documents that are heard are looked up.
const SELDOM: usize = 8;

/// How much larger than a bound a score must be, as sums of floats are not exact.
const ROUNDING: f32 = 1.0001;

/// What the words of a probe have found.
pub(super) struct Words<'a> {
    /// Documents with a score, each once.
    pub(super) matched: Vec<u32>,
    /// How much information the terms hold in all.
    pub(super) information: f32,
    /// Terms that only weigh what was found by others.
    pub(super) common: Vec<Known<'a>>,
    /// Empty between terms.
    touched: Vec<u32>,
}

/// A term of the probe that visible documents have, or a term similar to it.
pub(super) struct Known<'a> {
    pub(super) term: &'a QueryTerm,
    /// How many visible documents have it.
    having: usize,
    own: Option<Occurrences<'a>>,
    similar: Vec<(f32, Occurrences<'a>)>,
}

/// Where a term occurs.
struct Occurrences<'a> {
    posting: Posting<'a>,
    /// How many visible documents it occurs in.
    having: usize,
    /// Its part of [`Scratch::occurrences`], where not every document is visible.
    range: Range<usize>,
}

impl Occurrences<'_> {
    /// Each visible document that is heard, with how often the term occurs in it. `kept` is
    /// [`Scratch::occurrences`].
    fn visit(
        &self,
        heard: Option<&Heard>,
        visible: &Visible<'_>,
        kept: &[(u32, f32)],
        visit: &mut impl FnMut(u32, f32),
    ) {
        let posting = &self.posting;
        match heard {
            _ if visible.mask.is_some() => {
                let kept = kept.get(self.range.clone()).unwrap_or_default().iter();
                let kept = kept.filter(|(doc, _)| heard.is_none_or(|it| has(&it.mask, *doc)));
                kept.for_each(|(doc, tf)| visit(*doc, *tf));
            }
            Some(heard) if heard.count * SELDOM < posting.len() => {
                posting.among(&heard.mask, visit);
            }
            Some(heard) => {
                let heard = posting.iter().filter(|(doc, _)| has(&heard.mask, *doc));
                heard.for_each(|(doc, tf)| visit(doc, tf));
            }
            None => posting.iter().for_each(|(doc, tf)| visit(doc, tf)),
        }
    }
}

/// Documents whose words count, and how many they are.
pub(super) struct Heard {
    mask: Mask,
    count: usize,
}

impl Known<'_> {
    /// The most that a document can score by it.
    fn worth(&self, visible: &Visible<'_>) -> f32 {
        Bm25::worth(self.term.weight, visible.count, self.having)
    }
}

/// How many documents have the rarest terms so far, where these are enough.
struct Rarest {
    wanted: Option<usize>,
    having: Vec<usize>,
}

impl Rarest {
    fn of(probe: &Probe, visible: &Visible<'_>) -> Self {
        Self {
            // Elsewhere more documents may have a term than here.
            wanted: probe.rarest.filter(|_| visible.sampled.is_none()),
            having: Vec::new(),
        }
    }

    fn count(&mut self, having: usize) {
        if let Some(wanted) = self.wanted {
            let at = self.having.partition_point(|other| *other <= having);
            self.having.insert(at, having);
            self.having.truncate(wanted);
        }
    }

    /// A term that more documents have is not among the rarest.
    fn most(&self) -> usize {
        let last = self.having.last().copied();
        let is_full = self.wanted == Some(self.having.len());
        last.filter(|_| is_full).unwrap_or(usize::MAX)
    }
}

impl Index {
    /// Scores documents by the terms of the probe, the rarest first, until the others can add none
    /// to the best. What neighbours lend a document counts as its own words.
    pub(super) fn rare_words<'a>(
        &'a self,
        probe: &'a Probe,
        visible: &Visible<'_>,
        mask: Option<&Mask>,
        scratch: &mut Scratch,
    ) -> Words<'a> {
        let heard = mask.and_then(|mask| self.heard_by(mask, visible));
        let heard = heard.as_ref();
        let (mut known, information) = self.known(probe, visible, heard, &mut scratch.occurrences);
        let mut words = Words {
            matched: Vec::new(),
            information,
            common: Vec::new(),
            touched: Vec::new(),
        };
        let mut spread = 0;
        for at in 0..known.len() {
            let rest = known.get(at..).unwrap_or_default();
            let is_enough = spread > SPREAD
                // To look at what was found costs no more than to walk the posting.
                || rest.first().is_some_and(|next| next.having > words.matched.len())
                    && self.outdo(&words.matched, rest, probe.depth, visible, mask, scratch);
            if is_enough {
                words.common = known.split_off(at);
                break;
            }
            if let Some(next) = rest.first() {
                spread += self.weigh(next, visible, heard, None, &mut words, scratch);
            }
        }
        words
    }

    /// Adds the terms that were left out to the scores of these documents and of what the words have
    /// found, as far as it can be among the best, and forgets the occurrences.
    pub(super) fn common_words(
        &self,
        words: &mut Words<'_>,
        found: &[u32],
        depth: usize,
        visible: &Visible<'_>,
        mask: Option<&Mask>,
        scratch: &mut Scratch,
    ) {
        let common = std::mem::take(&mut words.common);
        let is_meant = |doc: &u32| mask.is_none_or(|mask| has(mask, *doc));
        let mut contenders: Vec<u32> = words.matched.iter().copied().filter(is_meant).collect();
        let mut weighed: Option<(usize, Mask, Heard)> = None;
        for at in 0..common.len() {
            let rest = common.get(at..).unwrap_or_default();
            prune_by_bound(&mut contenders, rest, depth, visible, &scratch.words);
            // To choose them again costs about as much as it spares if most are left.
            let (_, only, heard) = match weighed.take() {
                Some(some) if contenders.len() * 2 > some.0 => weighed.insert(some),
                _ => {
                    let mut only = Mask::new();
                    for doc in contenders.iter().chain(found) {
                        set_bit(&mut only, *doc);
                    }
                    let heard = self.hearing(&only, visible);
                    weighed.insert((contenders.len(), only, heard))
                }
            };
            if let Some(next) = rest.first() {
                self.weigh(next, visible, Some(heard), Some(only), words, scratch);
            }
        }
        scratch.occurrences.clear();
    }

    /// Whether so many of the matched documents score more than one can that has only these terms.
    fn outdo(
        &self,
        matched: &[u32],
        rest: &[Known<'_>],
        depth: usize,
        visible: &Visible<'_>,
        mask: Option<&Mask>,
        scratch: &Scratch,
    ) -> bool {
        if matched.len() < depth {
            return false;
        }
        let bound: f32 = rest.iter().map(|known| known.worth(visible)).sum();
        let scores = matched.iter().filter_map(|doc| {
            let is_meant = mask.is_none_or(|mask| has(mask, *doc));
            scratch.words.get(*doc as usize).filter(|_| is_meant)
        });
        scores.filter(|score| **score > bound * ROUNDING).count() >= depth
    }

    /// The documents whose words count for those in the mask. `None` where it is not worth telling
    /// them from the others.
    fn heard_by(&self, mask: &Mask, visible: &Visible<'_>) -> Option<Heard> {
        (count(mask) * FEW <= visible.count).then(|| self.hearing(mask, visible))
    }

    /// The documents in the mask and their neighbours.
    fn hearing(&self, mask: &Mask, visible: &Visible<'_>) -> Heard {
        let mut heard = mask.clone();
        each_bit(mask, &mut |doc| {
            for neighbour in self.around(doc, visible) {
                if neighbour != NOBODY {
                    set_bit(&mut heard, neighbour);
                }
            }
        });
        let count = count(&heard);
        Heard { mask: heard, count }
    }

    /// Where a term occurs in visible documents; `None` if it does not. More than `most` of them are
    /// not counted.
    fn occurrences<'a>(
        &'a self,
        term: &str,
        visible: &Visible<'_>,
        heard: Option<&Heard>,
        most: usize,
        occurrences: &mut Vec<(u32, f32)>,
    ) -> Option<Occurrences<'a>> {
        let start = occurrences.len();
        let term = hash(term);
        let posting = self.postings.of(term)?;
        let having = match &visible.mask {
            None => posting.len(),
            Some(mask) => {
                let mut having = 0;
                let mut occurs = |doc: u32, tf: f32| {
                    having += 1;
                    if heard.is_none_or(|heard| has(&heard.mask, doc)) {
                        occurrences.push((doc, tf));
                    }
                };
                if visible.count * SELDOM < posting.len() {
                    posting.among(mask, &mut occurs);
                } else {
                    let seen = posting.iter().filter(|(doc, _)| has(mask, *doc));
                    seen.take(most.saturating_add(1))
                        .for_each(|(doc, tf)| occurs(doc, tf));
                }
                having
            }
        };
        (having > 0).then_some(Occurrences {
            posting,
            having: having.max(visible.sampled.map_or(0, |it| it.having(term))),
            range: start..occurrences.len(),
        })
    }

    /// The terms that visible documents have, the rarest first and as many as are enough, and the
    /// information of those that none has.
    pub(super) fn known<'a>(
        &'a self,
        probe: &'a Probe,
        visible: &Visible<'_>,
        heard: Option<&Heard>,
        occurrences: &mut Vec<(u32, f32)>,
    ) -> (Vec<Known<'a>>, f32) {
        let mut missing: Vec<(usize, f32)> = Vec::new();
        let mut known = Vec::with_capacity(probe.terms.len());
        let mut terms: Vec<(usize, &QueryTerm)> = probe.terms.iter().enumerate().collect();
        let mut rarest = Rarest::of(probe, visible);
        if rarest.wanted.is_some() {
            let length = |term: &str| self.postings.of(hash(term)).map_or(0, |it| it.len());
            terms.sort_by_cached_key(|(_, term)| length(&term.text));
        }
        for (place, term) in terms {
            let most = rarest.most();
            let own = self.occurrences(&term.text, visible, heard, most, occurrences);
            if own.is_none() {
                let having = visible
                    .sampled
                    .map_or(1, |it| it.having(hash(&term.text)).max(1));
                let informs = Bm25::worth(term.information(), visible.count, having);
                missing.push((place, informs));
            }
            let similar = probe.similar.iter().filter(|other| other.of == term.text);
            let similar = similar.filter_map(|other| {
                let found = self.occurrences(&other.text, visible, heard, most, occurrences)?;
                Some((other.similarity, found))
            });
            let similar: Vec<_> = similar.collect();
            // The most frequent of them says how much an occurrence of any of them tells.
            let found = own.iter().chain(similar.iter().map(|(_, found)| found));
            if let Some(having) = found.map(|found| found.having).max() {
                rarest.count(having);
                let found = Known {
                    term,
                    having,
                    own,
                    similar,
                };
                known.push((place, found));
            }
        }
        known.sort_by_key(|(place, known)| (known.having, *place));
        known.truncate(probe.rarest.unwrap_or(usize::MAX));
        let known = known.into_iter().map(|(_, known)| known).collect();
        // In the order of the query, as a sum of floats depends on it.
        missing.sort_unstable_by_key(|(place, _)| *place);
        (known, missing.into_iter().map(|(_, informs)| informs).sum())
    }

    /// Adds the BM25 of a term to the documents that it occurs in, `only` to these if they are
    /// given; answers how many they are.
    fn weigh(
        &self,
        known: &Known<'_>,
        visible: &Visible<'_>,
        heard: Option<&Heard>,
        only: Option<&Mask>,
        words: &mut Words<'_>,
        scratch: &mut Scratch,
    ) -> usize {
        let Scratch {
            words: scores,
            occurs: lent,
            covered,
            occurrences,
            ..
        } = scratch;
        let (term, touched) = (known.term, &mut words.touched);
        if let Some(own) = &known.own {
            own.visit(heard, visible, occurrences, &mut |doc, tf| {
                self.spread(doc, tf, visible, only, lent, touched);
            });
            let informs = Bm25::worth(term.information(), visible.count, own.having);
            words.information += informs;
            for doc in &*touched {
                let at = *doc as usize;
                if let (Some(tf), Some(covered)) = (lent.get(at), covered.get_mut(at)) {
                    *covered += informs * tf.min(1.0);
                }
            }
        }
        for (similarity, found) in &known.similar {
            found.visit(heard, visible, occurrences, &mut |doc, tf| {
                // A long text has a word of about any meaning.
                let tf = tf * similarity * lends(self.docs.length(doc));
                self.spread(doc, tf, visible, only, lent, touched);
            });
        }
        let (bm25, worth) = (Bm25::new(visible.mean_length), known.worth(visible));
        let count = touched.len();
        for doc in touched.drain(..) {
            let at = doc as usize;
            let (Some(tf), Some(score)) = (lent.get_mut(at), scores.get_mut(at)) else {
                continue;
            };
            if *score == 0.0 {
                words.matched.push(doc);
            }
            *score += bm25.score(worth, *tf, self.length(doc, visible));
            *tf = 0.0;
        }
        count
    }

    /// Counts an occurrence for the document and, in part, for those it is a neighbour of.
    fn spread(
        &self,
        doc: u32,
        tf: f32,
        visible: &Visible<'_>,
        only: Option<&Mask>,
        lent: &mut [f32],
        touched: &mut Vec<u32>,
    ) {
        let mut add = |doc: u32, tf: f32| {
            if let Some(sum) = lent.get_mut(doc as usize)
                && only.is_none_or(|only| has(only, doc))
            {
                if *sum == 0.0 {
                    touched.push(doc);
                }
                *sum += tf;
            }
        };
        add(doc, tf);
        let around = self.around(doc, visible);
        if around == [NOBODY; 4] {
            return;
        }
        let tf = tf * lends(self.docs.length(doc));
        let shares = lent_words(visible.after_question && self.docs.traits(doc).asks());
        // The neighbour before us has us after it: the shares are seen from the other side.
        for (neighbour, share) in around.into_iter().zip(shares.into_iter().rev()) {
            if neighbour != NOBODY {
                add(neighbour, share * tf);
            }
        }
    }
}

/// Removes the documents that cannot be among the best, even if they score by the other terms as much as
/// a document can.
fn prune_by_bound(
    contenders: &mut Vec<u32>,
    rest: &[Known<'_>],
    depth: usize,
    visible: &Visible<'_>,
    scores: &[f32],
) {
    let score = |doc: u32| scores.get(doc as usize).copied().unwrap_or(0.0);
    let mut sorted: Vec<f32> = contenders.iter().map(|doc| score(*doc)).collect();
    let Some(last) = depth.checked_sub(1).filter(|last| *last < sorted.len()) else {
        return;
    };
    let (_, least, _) = sorted.select_nth_unstable_by(last, |a, b| b.total_cmp(a));
    let bound: f32 = rest.iter().map(|known| known.worth(visible)).sum();
    contenders.retain(|doc| (score(*doc) + bound) * ROUNDING >= *least);
}
