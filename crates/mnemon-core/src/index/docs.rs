//! What filters and ranking need to know of each document, column by column.

use std::collections::HashMap;

use super::Terms;
use crate::{Filter, Id, Kind, Namespace, Record, Scope, Time};

/// No user, no agent, no session, no speaker.
const NO_NAME: u32 = 0;

/// Names, each kept once.
#[derive(Debug, Clone, Default)]
struct Names {
    number: HashMap<String, u32>,
    name: Vec<String>,
}

impl Names {
    fn number(&mut self, name: Option<&str>) -> u32 {
        let Some(name) = name else {
            return NO_NAME;
        };
        if let Some(known) = self.number.get(name) {
            return *known;
        }
        self.name.push(name.to_owned());
        let number = u32::try_from(self.name.len()).unwrap_or(u32::MAX);
        self.number.insert(name.to_owned(), number);
        number
    }

    fn name(&self, number: u32) -> Option<&str> {
        let at = (number as usize).checked_sub(1)?;
        self.name.get(at).map(String::as_str)
    }
}

/// What a document is, in three bytes.
#[derive(Debug, Clone, Copy)]
struct Sort {
    scope: Scope,
    kind: Kind,
    namespace: Namespace,
}

/// A filter with its names as numbers. A name that nobody has matches nothing.
struct Wanted<'a> {
    owner: [Option<u32>; 3],
    seen_by: Option<u32>,
    filter: &'a Filter,
    tagged: Option<Vec<u64>>,
}

impl Wanted<'_> {
    /// Whether more is asked than scope, tags and who may see it.
    fn looks_at_each(&self) -> bool {
        let filter = self.filter;
        self.owner.iter().any(Option::is_some)
            // Of tags and scopes only one is decided beforehand.
            || (self.tagged.is_some() && !filter.scopes.is_empty())
            || !filter.kinds.is_empty()
            || !filter.namespaces.is_empty()
            || filter.since.is_some()
            || filter.until.is_some()
    }
}

/// Documents, as a list or as a bit for each.
enum Among<'a> {
    List(&'a [u32]),
    Bits(Vec<u64>),
}

/// The numbers of the bits that are set.
pub(super) fn each_bit(words: &[u64], visit: &mut impl FnMut(u32)) {
    for (index, word) in (0_u32..).zip(words) {
        let mut word = *word;
        while word != 0 {
            visit(index * 64 + word.trailing_zeros());
            word &= word - 1;
        }
    }
}

fn set_bit(words: &mut Vec<u64>, doc: u32) {
    let at = doc as usize / 64;
    if words.len() <= at {
        words.resize(at + 1, 0);
    }
    if let Some(word) = words.get_mut(at) {
        *word |= 1 << (doc % 64);
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Docs {
    seqs: Vec<u64>,
    ids: Vec<[u8; 16]>,
    /// Ids that are no UUIDs.
    odd_ids: HashMap<u32, String>,
    owners: Vec<[u32; 3]>,
    /// The documents of each user, agent and session.
    owned: [HashMap<u32, Vec<u32>>; 3],
    /// A bit for each document that belongs to no user.
    nobodys: Vec<u64>,
    /// A bit for each document, scope by scope.
    scoped: [Vec<u64>; Scope::ALL.len()],
    sorts: Vec<Sort>,
    created: Vec<i64>,
    expires: Vec<i64>,
    /// Before this, nothing expires.
    soonest_expiry: Option<i64>,
    importance: Vec<f32>,
    speakers: Vec<u32>,
    lengths: Vec<u16>,
    asking: Vec<u8>,
    /// A bit for each document that was not removed.
    living: Vec<u64>,
    alive: usize,
    names: Names,
    said: HashMap<u32, u32>,
    tags: HashMap<String, Vec<u32>>,
}

/// What the index wants to know of a record, so that a store need not read it whole.
#[derive(Debug, Clone)]
pub struct Doc<'a> {
    pub seq: u64,
    pub id: &'a str,
    pub user: Option<&'a str>,
    pub agent: Option<&'a str>,
    pub session: Option<&'a str>,
    pub scope: Scope,
    pub kind: Kind,
    pub namespace: Namespace,
    pub created: Time,
    pub expires: Option<Time>,
    pub importance: f64,
    /// Who said it: named in the metadata, or in a message.
    pub speaker: Option<&'a str>,
    pub tags: Vec<&'a str>,
}

impl<'a> Doc<'a> {
    /// What the index wants to know of this record.
    #[must_use]
    pub fn of(record: &'a Record) -> Self {
        let named = record.metadata.get("speaker");
        let named = named.and_then(|name| name.as_str());
        let speaker = named.or_else(|| record.body.as_ref()?.get("name")?.as_str());
        Self {
            seq: record.seq,
            id: record.id.as_str(),
            user: record.owner.user.as_deref(),
            agent: record.owner.agent.as_deref(),
            session: record.owner.session.as_deref(),
            scope: record.scope,
            kind: record.kind,
            namespace: record.namespace,
            created: record.created,
            expires: record.expires,
            importance: record.importance,
            speaker,
            tags: record.tags.iter().map(String::as_str).collect(),
        }
    }
}

impl Docs {
    pub(super) fn push(&mut self, new: &Doc<'_>, terms: &Terms) -> u32 {
        let doc = u32::try_from(self.seqs.len()).unwrap_or(u32::MAX - 1);
        self.seqs.push(new.seq);
        self.push_id(doc, new.id);
        let parts = [new.user, new.agent, new.session];
        let owner = parts.map(|part| self.names.number(part));
        self.owners.push(owner);
        for (owned, part) in self.owned.iter_mut().zip(owner) {
            if part != NO_NAME {
                owned.entry(part).or_default().push(doc);
            }
        }
        self.sorts.push(Sort {
            scope: new.scope,
            kind: new.kind,
            namespace: new.namespace,
        });
        self.created.push(new.created.millis());
        let expires = new.expires.map_or(i64::MAX, Time::millis);
        self.expires.push(expires);
        let soonest = self.soonest_expiry.unwrap_or(i64::MAX);
        self.soonest_expiry = Some(soonest.min(expires));
        self.importance.push(new.importance as f32);
        let speaker = self.names.number(new.speaker);
        self.speakers.push(speaker);
        if speaker != NO_NAME {
            *self.said.entry(speaker).or_default() += 1;
        }
        self.lengths.push(terms.length);
        self.asking.push(terms.asking);
        for tag in &new.tags {
            self.tags.entry(tag.to_lowercase()).or_default().push(doc);
        }
        set_bit(&mut self.living, doc);
        if new.user.is_none() {
            set_bit(&mut self.nobodys, doc);
        }
        if let Some(scoped) = self.scoped.get_mut(new.scope as usize) {
            set_bit(scoped, doc);
        }
        self.alive += 1;
        doc
    }

    fn push_id(&mut self, doc: u32, id: &str) {
        match uuid::Uuid::try_parse(id) {
            Ok(uuid) if uuid.to_string() == id => self.ids.push(uuid.into_bytes()),
            _ => {
                self.odd_ids.insert(doc, id.to_owned());
                self.ids.push([0; 16]);
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.seqs.len()
    }

    pub(super) fn alive(&self) -> usize {
        self.alive
    }

    pub(super) fn last_seq(&self) -> u64 {
        self.seqs.last().copied().unwrap_or(0)
    }

    pub(super) fn of_seq(&self, seq: u64) -> Option<u32> {
        let at = self.seqs.binary_search(&seq).ok()?;
        u32::try_from(at).ok()
    }

    pub(super) fn seq(&self, doc: u32) -> u64 {
        self.seqs.get(doc as usize).copied().unwrap_or(0)
    }

    pub(super) fn id(&self, doc: u32) -> Option<Id> {
        if let Some(odd) = self.odd_ids.get(&doc) {
            return odd.parse().ok();
        }
        let bytes = self.ids.get(doc as usize)?;
        Some(uuid::Uuid::from_bytes(*bytes).into())
    }

    pub(super) fn created(&self, doc: u32) -> i64 {
        self.created.get(doc as usize).copied().unwrap_or(0)
    }

    pub(super) fn has_expired(&self, doc: u32, now: Time) -> bool {
        let now = now.millis();
        self.soonest_expiry.is_some_and(|soonest| soonest < now)
            && self.expires.get(doc as usize).is_none_or(|at| *at < now)
    }

    /// Whether nothing was removed, and nothing has expired.
    pub(super) fn all_live(&self, now: Time) -> bool {
        let soonest = self.soonest_expiry.unwrap_or(i64::MAX);
        self.alive == self.len() && soonest >= now.millis()
    }

    pub(super) fn importance(&self, doc: u32) -> f32 {
        self.importance.get(doc as usize).copied().unwrap_or(0.0)
    }

    pub(super) fn length(&self, doc: u32) -> f32 {
        f32::from(self.lengths.get(doc as usize).copied().unwrap_or(0))
    }

    pub(super) fn asking(&self, doc: u32) -> f32 {
        f32::from(self.asking.get(doc as usize).copied().unwrap_or(0)) / 255.0
    }

    pub(super) fn speaker(&self, doc: u32) -> Option<&str> {
        self.names.name(*self.speakers.get(doc as usize)?)
    }

    pub(super) fn speakers(&self, most: usize) -> Vec<String> {
        let mut said: Vec<(&u32, &u32)> = self.said.iter().collect();
        said.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), **name));
        said.into_iter()
            .take(most)
            .filter_map(|(name, _)| self.names.name(*name).map(str::to_owned))
            .collect()
    }

    pub(super) fn is_alive(&self, doc: u32) -> bool {
        let word = self.living.get(doc as usize / 64).copied().unwrap_or(0);
        word & (1 << (doc % 64)) != 0
    }

    /// Whether it was alive before.
    pub(super) fn kill(&mut self, doc: u32) -> bool {
        let was = self.is_alive(doc);
        if let Some(word) = self.living.get_mut(doc as usize / 64) {
            *word &= !(1 << (doc % 64));
        }
        if was {
            self.alive -= 1;
            let speaker = self.speakers.get(doc as usize).copied();
            if let Some(said) = speaker.and_then(|speaker| self.said.get_mut(&speaker)) {
                *said = said.saturating_sub(1);
            }
        }
        was
    }

    pub(super) fn living(&self) -> &[u64] {
        &self.living
    }

    pub(super) fn bytes(&self) -> usize {
        let names: usize = self.names.name.iter().map(|name| 2 * name.len() + 56).sum();
        let lists = self.owned.iter().flat_map(HashMap::values);
        let lists: usize = lists.map(|list| 4 * list.capacity() + 40).sum();
        let bits = (2 + self.scoped.len()) * self.len() / 8;
        self.len() * (8 + 16 + 12 + 3 + 8 + 8 + 4 + 4 + 2 + 1) + bits + lists + names
    }

    /// The filter as far as this index can decide it: not flow, node, source or metadata.
    fn wanted<'a>(&self, filter: &'a Filter) -> Wanted<'a> {
        let owner = &filter.owner;
        let number = |part: &Option<String>| {
            let name = part.as_deref()?;
            // A number that no document has.
            Some(self.names.number.get(name).copied().unwrap_or(u32::MAX))
        };
        let tagged = (!filter.tags.is_empty()).then(|| {
            let mut mask = vec![0_u64; self.living.len()];
            for tag in &filter.tags {
                for doc in self.tags.get(&tag.to_lowercase()).into_iter().flatten() {
                    if let Some(word) = mask.get_mut(*doc as usize / 64) {
                        *word |= 1 << (doc % 64);
                    }
                }
            }
            mask
        });
        Wanted {
            owner: [
                number(&owner.user),
                number(&owner.agent),
                number(&owner.session),
            ],
            seen_by: number(&filter.seen_by),
            filter,
            tagged,
        }
    }

    /// A bit for each living document that the filter means, as far as this index can decide it.
    pub(super) fn meant(&self, filter: &Filter) -> Vec<u64> {
        let wanted = self.wanted(filter);
        let mut meant = match self.among(&wanted) {
            Among::Bits(bits) => bits,
            Among::List(docs) => {
                let mut bits = vec![0; self.living.len()];
                docs.iter().for_each(|doc| set_bit(&mut bits, *doc));
                bits
            }
        };
        let keep = |meant: &mut Vec<u64>, bits: &[u64]| {
            let bits = bits.iter().copied().chain(std::iter::repeat(0));
            meant
                .iter_mut()
                .zip(bits)
                .for_each(|(all, one)| *all &= one);
        };
        keep(&mut meant, &self.living);
        if let Some(seer) = wanted.seen_by {
            // Sixty-four at a time: most filters of a facade are no more than this.
            let mut seen = self.nobodys.clone();
            let [users, ..] = &self.owned;
            for doc in users.get(&seer).into_iter().flatten() {
                set_bit(&mut seen, *doc);
            }
            keep(&mut meant, &seen);
        }
        if wanted.looks_at_each() {
            let among = meant.clone();
            each_bit(&among, &mut |doc| {
                if !self.matches(doc, &wanted)
                    && let Some(word) = meant.get_mut(doc as usize / 64)
                {
                    *word &= !(1 << (doc % 64));
                }
            });
        }
        meant
    }

    /// Whether it is easy to say that the filter means some of so many.
    pub(super) fn is_among(&self, filter: &Filter, most: usize) -> bool {
        let count = match self.among(&self.wanted(filter)) {
            Among::List(docs) => docs.len(),
            Among::Bits(bits) => bits.iter().map(|word| word.count_ones() as usize).sum(),
        };
        count <= most
    }

    /// The documents among which those that the filter means are, as few as is easy to say.
    fn among(&self, wanted: &Wanted<'_>) -> Among<'_> {
        let parts = wanted.owner.iter().zip(&self.owned);
        let lists = parts.filter_map(|(part, owned)| {
            let list = owned.get(&(*part)?);
            Some(list.map_or(&[] as &[u32], Vec::as_slice))
        });
        if let Some(shortest) = lists.min_by_key(|list| list.len()) {
            return Among::List(shortest);
        }
        if let Some(tagged) = &wanted.tagged {
            return Among::Bits(tagged.clone());
        }
        if wanted.filter.scopes.is_empty() {
            return Among::Bits(self.living.clone());
        }
        let mut bits = vec![0; self.living.len()];
        for scope in &wanted.filter.scopes {
            let scoped = self.scoped.get(*scope as usize).into_iter().flatten();
            bits.iter_mut()
                .zip(scoped)
                .for_each(|(all, one)| *all |= one);
        }
        Among::Bits(bits)
    }

    fn matches(&self, doc: u32, wanted: &Wanted<'_>) -> bool {
        let at = doc as usize;
        let filter = wanted.filter;
        let (Some(owner), Some(sort)) = (self.owners.get(at), self.sorts.get(at)) else {
            return false;
        };
        let among = |empty: bool, found: bool| empty || found;
        let created = self.created(doc);
        let parts = owner.iter().zip(&wanted.owner);
        parts
            .into_iter()
            .all(|(ours, theirs)| theirs.is_none_or(|theirs| theirs == *ours))
            && wanted.seen_by.is_none_or(|seer| {
                owner
                    .first()
                    .is_none_or(|user| *user == NO_NAME || *user == seer)
            })
            && among(
                filter.scopes.is_empty(),
                filter.scopes.contains(&sort.scope),
            )
            && among(filter.kinds.is_empty(), filter.kinds.contains(&sort.kind))
            && among(
                filter.namespaces.is_empty(),
                filter.namespaces.contains(&sort.namespace),
            )
            && filter.since.is_none_or(|since| created >= since.millis())
            && filter.until.is_none_or(|until| created < until.millis())
            && wanted.tagged.as_ref().is_none_or(|mask| {
                let word = mask.get(at / 64).copied().unwrap_or(0);
                word & (1 << (doc % 64)) != 0
            })
    }
}
