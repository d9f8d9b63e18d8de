//! Who speaks after whom: the documents of a session in the order they were said.

use std::collections::{BTreeSet, HashMap};
use std::io;

use super::docs::{Docs, keep};
use super::saved::Numbers;
use super::{NOBODY, bytes_of_list, bytes_of_map};
use crate::search::column_file::{Reading, Writing};
use crate::search::push;
use crate::search::rank::{lent_length, lent_words};

/// How far back from a session's end a place is looked for before the session is sorted.
const WALK: usize = 32;

#[derive(Debug, Clone, Default)]
pub(super) struct Chain {
    before: Vec<u32>,
    after: Vec<u32>,
    /// The last document of each conversation.
    last: HashMap<[u32; 2], u32>,
    /// The documents of conversations that did not arrive in time order, by when they were
    /// created. Made when a document belongs further back than [`WALK`], so that a session which
    /// arrives in order, or almost, takes no memory for it. Not saved: it follows from the links.
    sorted: HashMap<[u32; 2], BTreeSet<(i64, u32)>>,
    /// Documents that were passed while places were looked for.
    #[cfg(test)]
    pub(super) steps: usize,
    /// Each document's length with what its neighbours lend it.
    length: Vec<f32>,
    total_length: f64,
}

impl Chain {
    pub(super) fn bytes(&self) -> usize {
        let links = [&self.before, &self.after].map(bytes_of_list);
        // A set of pairs is about two thirds full.
        let sorted: usize = self.sorted.values().map(|set| set.len() * 24 + 64).sum();
        links.iter().sum::<usize>()
            + bytes_of_list(&self.length)
            + bytes_of_map(&self.last)
            + bytes_of_map(&self.sorted)
            + sorted
    }

    /// The length of the document, context included.
    pub(super) fn length(&self, doc: u32) -> f32 {
        self.length.get(doc as usize).copied().unwrap_or(0.0)
    }

    pub(super) fn mean_length(&self, docs: usize) -> f32 {
        (self.total_length / docs.max(1) as f64) as f32
    }

    /// The neighbours: two before, one before, one after, two after; [`NOBODY`] where none is.
    #[inline]
    pub(super) fn around(&self, doc: u32) -> [u32; 4] {
        let (one_before, one_after) = (self.previous(doc), self.next(doc));
        if one_before == NOBODY && one_after == NOBODY {
            return [NOBODY; 4];
        }
        [
            self.previous(one_before),
            one_before,
            one_after,
            self.next(one_after),
        ]
    }

    /// The neighbours of the document in a session of which only these documents are left.
    pub(super) fn around_among(&self, doc: u32, keep: impl Fn(u32) -> bool) -> [u32; 4] {
        let step = |from: u32, next: fn(&Self, u32) -> u32| {
            let mut at = next(self, from);
            while at != NOBODY && !keep(at) {
                at = next(self, at);
            }
            at
        };
        let one_before = step(doc, Self::previous);
        let one_after = step(doc, Self::next);
        [
            step(one_before, Self::previous),
            one_before,
            one_after,
            step(one_after, Self::next),
        ]
    }

    fn previous(&self, doc: u32) -> u32 {
        self.before.get(doc as usize).copied().unwrap_or(NOBODY)
    }

    fn next(&self, doc: u32) -> u32 {
        self.after.get(doc as usize).copied().unwrap_or(NOBODY)
    }

    /// Puts a new document at its place in its session: behind the last one that is not younger,
    /// which is the order of (created, number), since a new document has the highest number.
    pub(super) fn push(&mut self, docs: &Docs, doc: u32) {
        push(&mut self.before, NOBODY);
        push(&mut self.after, NOBODY);
        push(&mut self.length, 0.0);
        if let Some(session) = docs.conversation(doc) {
            let (before, after) = self.place(docs, session, doc);
            self.join(before, doc);
            self.join(doc, after);
            if after == NOBODY {
                self.last.insert(session, doc);
            }
        }
        self.measure_around(docs, doc);
    }

    /// Between which two documents of the session a new one belongs.
    fn place(&mut self, docs: &Docs, session: [u32; 2], doc: u32) -> (u32, u32) {
        let created = docs.created(doc);
        if !self.sorted.contains_key(&session) {
            let mut before = self.last.get(&session).copied().unwrap_or(NOBODY);
            let mut after = NOBODY;
            for _ in 0..WALK {
                if before == NOBODY || docs.created(before) <= created {
                    return (before, after);
                }
                after = before;
                before = self.step_back(before);
            }
            self.sort(docs, session);
        }
        let sorted = self.sorted.entry(session).or_default();
        let before = sorted.range(..(created, doc)).next_back();
        let after = sorted.range((created, doc)..).next();
        let number = |found: Option<&(i64, u32)>| found.map_or(NOBODY, |(_, doc)| *doc);
        let place = (number(before), number(after));
        sorted.insert((created, doc));
        place
    }

    fn sort(&mut self, docs: &Docs, session: [u32; 2]) {
        let mut sorted = BTreeSet::new();
        let mut doc = self.last.get(&session).copied().unwrap_or(NOBODY);
        while doc != NOBODY {
            sorted.insert((docs.created(doc), doc));
            doc = self.step_back(doc);
        }
        self.sorted.insert(session, sorted);
    }

    fn step_back(&mut self, doc: u32) -> u32 {
        #[cfg(test)]
        {
            self.steps += 1;
        }
        self.previous(doc)
    }

    pub(super) fn unlink(&mut self, docs: &Docs, doc: u32) {
        let (before, after) = (self.previous(doc), self.next(doc));
        let around = self.around(doc);
        let session = docs.conversation(doc).unwrap_or_default();
        if self.last.get(&session) == Some(&doc) {
            if before == NOBODY {
                self.last.remove(&session);
            } else {
                self.last.insert(session, before);
            }
        }
        if let Some(sorted) = self.sorted.get_mut(&session) {
            sorted.remove(&(docs.created(doc), doc));
        }
        self.join(before, after);
        self.set(doc, NOBODY, NOBODY);
        self.measure(doc, 0.0);
        for neighbour in around {
            self.measure_one(docs, neighbour);
        }
    }

    fn set(&mut self, doc: u32, before: u32, after: u32) {
        if let Some(place) = self.before.get_mut(doc as usize) {
            *place = before;
        }
        if let Some(place) = self.after.get_mut(doc as usize) {
            *place = after;
        }
    }

    fn join(&mut self, one: u32, other: u32) {
        if let Some(after) = self.after.get_mut(one as usize) {
            *after = other;
        }
        if let Some(before) = self.before.get_mut(other as usize) {
            *before = one;
        }
    }

    fn measure_around(&mut self, docs: &Docs, doc: u32) {
        self.measure_one(docs, doc);
        for neighbour in self.around(doc) {
            self.measure_one(docs, neighbour);
        }
    }

    fn measure_one(&mut self, docs: &Docs, doc: u32) {
        if doc == NOBODY {
            return;
        }
        let length = length_with(docs, doc, self.around(doc));
        self.measure(doc, length);
    }

    fn measure(&mut self, doc: u32, length: f32) {
        if let Some(known) = self.length.get_mut(doc as usize) {
            self.total_length += f64::from(length) - f64::from(*known);
            *known = length;
        }
    }

    /// Who was removed stands in no chain, so that only numbers have to be changed.
    pub(super) fn save(&self, numbers: &Numbers, out: &mut Writing<'_>) -> io::Result<()> {
        let new = |doc: &u32| numbers.of(*doc).unwrap_or(NOBODY);
        for links in [&self.before, &self.after] {
            let kept = numbers.kept();
            let kept = kept.filter_map(|doc| links.get(doc as usize).map(new));
            out.column(numbers.len(), kept)?;
        }
        keep(&self.length, numbers, out)?;
        let last = self.last.iter();
        let last = last.map(|([whose, session], doc)| [*whose, *session, new(doc)]);
        out.column(self.last.len(), last)
    }

    pub(super) fn load(from: &mut Reading<'_>, docs: usize) -> io::Result<Self> {
        let before = from.column_of(docs)?;
        let after = from.column_of(docs)?;
        let length: Vec<f32> = from.column_of(docs)?;
        let last: Vec<[u32; 3]> = from.column()?;
        Ok(Self {
            before,
            after,
            last: last
                .into_iter()
                .map(|[whose, session, doc]| ([whose, session], doc))
                .collect(),
            sorted: HashMap::new(),
            #[cfg(test)]
            steps: 0,
            total_length: length.iter().map(|length| f64::from(*length)).sum(),
            length,
        })
    }
}

/// The length of the document with what these neighbours lend it.
pub(super) fn length_with(docs: &Docs, doc: u32, around: [u32; 4]) -> f32 {
    let mut length = docs.length(doc);
    let [_, one_before, ..] = around;
    let after_question = one_before != NOBODY && docs.traits(one_before).asks();
    for (neighbour, share) in around.into_iter().zip(lent_words(after_question)) {
        if neighbour != NOBODY {
            length += lent_length(share, docs.length(neighbour));
        }
    }
    length
}
