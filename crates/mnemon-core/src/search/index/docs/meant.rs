//! Which documents a filter means.

use super::{Docs, NO_NAME, clear_bit, each_bit, set_bit};
use crate::model::{Filter, Viewer};

/// Whose documents are wanted, by the numbers of their names, and from when.
struct Wanted<'a> {
    /// User, agent and session. A name that nobody has is a number that nobody has.
    owner: [Option<u32>; 3],
    filter: &'a Filter,
}

impl Wanted<'_> {
    /// Whether more is asked than can be said for sixty-four documents at a time.
    fn looks_at_each(&self) -> bool {
        let named = self.owner.iter().flatten().count();
        named > 1 || self.filter.since.is_some() || self.filter.until.is_some()
    }
}

/// Leaves of the bits those that are set in both.
fn keep(bits: &mut [u64], these: &[u64]) {
    let these = these.iter().copied().chain(std::iter::repeat(0));
    bits.iter_mut()
        .zip(these)
        .for_each(|(word, these)| *word &= these);
}

/// Leaves of the bits those that are set in any of these rows; all of them if no row is named.
fn keep_any(bits: &mut [u64], rows: &[Vec<u64>], named: impl ExactSizeIterator<Item = usize>) {
    if named.len() == 0 {
        return;
    }
    let mut any = vec![0; bits.len()];
    for row in named.filter_map(|at| rows.get(at)) {
        any.iter_mut().zip(row).for_each(|(any, row)| *any |= row);
    }
    keep(bits, &any);
}

impl Docs {
    /// A bit for each living document that the filter means, as far as this index can decide it:
    /// not flow, node, source or metadata.
    pub(in crate::search::index) fn meant(&self, filter: &Filter) -> Vec<u64> {
        let wanted = self.wanted(filter);
        let mut meant = self.roughly(&wanted);
        if wanted.looks_at_each() {
            let among = meant.clone();
            each_bit(&among, &mut |doc| {
                if !self.matches(doc, &wanted) {
                    clear_bit(&mut meant, doc);
                }
            });
        }
        meant
    }

    /// Whether it is easy to say that the filter means some of so many.
    pub(in crate::search::index) fn is_among(&self, filter: &Filter, most: usize) -> bool {
        let roughly = self.roughly(&self.wanted(filter));
        let count: usize = roughly.iter().map(|word| word.count_ones() as usize).sum();
        count <= most
    }

    fn wanted<'a>(&self, filter: &'a Filter) -> Wanted<'a> {
        let owner = &filter.owner;
        let number = |part: &Option<String>| Some(self.number_of(part.as_deref()?));
        let owner = [&owner.user, &owner.agent, &owner.session].map(number);
        Wanted { owner, filter }
    }

    /// The documents that are meant, as far as can be said for sixty-four of them at a time.
    fn roughly(&self, wanted: &Wanted<'_>) -> Vec<u64> {
        let filter = wanted.filter;
        let mut meant = self.living.clone();
        if let Some(docs) = self.owned_by(wanted) {
            keep(&mut meant, &self.bits_of(docs));
        }
        if !filter.tags.is_empty() {
            let tags = filter.tags.iter().map(|tag| tag.to_lowercase());
            let docs = tags.filter_map(|tag| self.tags.get(&tag)).flatten();
            keep(&mut meant, &self.bits_of(docs));
        }
        let scopes = filter.scopes.iter().map(|scope| *scope as usize);
        keep_any(&mut meant, &self.scopes, scopes);
        let kinds = filter.kinds.iter().map(|kind| *kind as usize);
        keep_any(&mut meant, &self.kinds, kinds);
        let namespaces = filter
            .namespaces
            .iter()
            .map(|namespace| *namespace as usize);
        keep_any(&mut meant, &self.namespaces, namespaces);
        if let Some(seen) = self.seen_by(&filter.viewer) {
            keep(&mut meant, &seen);
        }
        meant
    }

    /// A bit for each document that a person may see; `None` for the tenant, which sees all.
    fn seen_by(&self, viewer: &Viewer) -> Option<Vec<u64>> {
        let audiences = viewer.audiences()?;
        let mut seen = self.everyone.clone();
        let [users, ..] = &self.owned;
        for audience in audiences {
            let number = audience.key().map(|key| self.number_of(&key));
            let own = number.and_then(|number| self.audiences.get(&number));
            own.into_iter()
                .flatten()
                .for_each(|doc| set_bit(&mut seen, *doc));
            // What belongs to a user is for that user, unless it says otherwise.
            let user = audience.user().map(|user| self.number_of(user));
            let owned = user.and_then(|user| users.get(&user));
            let implied = owned.into_iter().flatten();
            implied
                .filter(|doc| !self.audience_of.contains_key(doc))
                .for_each(|doc| set_bit(&mut seen, *doc));
        }
        Some(seen)
    }

    fn number_of(&self, name: &str) -> u32 {
        self.names.known(name).unwrap_or(u32::MAX)
    }

    /// The documents of the user, agent or session that has the fewest; `None` if nobody is named.
    fn owned_by(&self, wanted: &Wanted<'_>) -> Option<&[u32]> {
        let parts = wanted.owner.iter().zip(&self.owned);
        let lists = parts.filter_map(|(part, owned)| {
            let list = owned.get(&(*part)?);
            Some(list.map_or(&[] as &[u32], Vec::as_slice))
        });
        lists.min_by_key(|list| list.len())
    }

    fn bits_of<'a>(&self, docs: impl IntoIterator<Item = &'a u32>) -> Vec<u64> {
        let mut bits = vec![0; self.living.len()];
        docs.into_iter().for_each(|doc| set_bit(&mut bits, *doc));
        bits
    }

    fn matches(&self, doc: u32, wanted: &Wanted<'_>) -> bool {
        let owner = self.owners.get(doc as usize);
        let owner = owner.copied().unwrap_or([NO_NAME; 3]);
        let created = self.created(doc);
        let Filter { since, until, .. } = wanted.filter;
        let mut parts = owner.iter().zip(&wanted.owner);
        parts.all(|(ours, theirs)| theirs.is_none_or(|theirs| theirs == *ours))
            && since.is_none_or(|since| created >= since.millis())
            && until.is_none_or(|until| created < until.millis())
    }
}
