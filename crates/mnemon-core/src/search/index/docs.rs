//! What filters and ranking need to know of each document, column by column.

mod meant;
mod names;
mod saved;

use std::collections::{BTreeSet, HashMap};

pub(super) use names::NO_NAME;
use names::Names;
pub(super) use saved::keep;

use super::{Terms, bytes_of_list, bytes_of_map, hash};
use crate::model::{Audience, Id, Kind, Namespace, Record, Scope, Time};
use crate::ports::Traits;
use crate::search::speakers::first_word;
use crate::search::{dates, push};

/// What a document is, in three bytes.
#[derive(Debug, Clone, Copy)]
struct Sort {
    scope: Scope,
    kind: Kind,
    namespace: Namespace,
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

/// The numbers of the bits that are set, for a walk that may end early.
pub(super) fn bits(words: &[u64]) -> impl Iterator<Item = u32> {
    (0_u32..).zip(words).flat_map(|(index, word)| {
        let mut rest = *word;
        std::iter::from_fn(move || {
            let bit = (rest != 0).then(|| rest.trailing_zeros())?;
            rest &= rest - 1;
            Some(index * 64 + bit)
        })
    })
}

/// At most `most` of the bits that are set, evenly spaced from the first one. Bits between them are
/// counted, not visited.
pub(super) fn spaced_bits(words: &[u64], most: usize) -> Vec<u32> {
    let apart = count_bits(words).div_ceil(most.max(1)).max(1);
    let mut taken = Vec::new();
    let (mut before, mut next) = (0, 0);
    for (index, word) in (0_u32..).zip(words) {
        let end = before + word.count_ones() as usize;
        let (mut rest, mut at) = (*word, before);
        while next < end {
            while at < next {
                rest &= rest - 1;
                at += 1;
            }
            taken.push(index * 64 + rest.trailing_zeros());
            next += apart;
        }
        before = end;
    }
    taken
}

pub(super) fn count_bits(words: &[u64]) -> usize {
    words.iter().map(|word| word.count_ones() as usize).sum()
}

pub(super) fn set_bit(words: &mut Vec<u64>, doc: u32) {
    let at = doc as usize / 64;
    if words.len() <= at {
        words.resize(at + 1, 0);
    }
    if let Some(word) = words.get_mut(at) {
        *word |= 1 << (doc % 64);
    }
}

pub(super) fn clear_bit(words: &mut [u64], doc: u32) {
    if let Some(word) = words.get_mut(doc as usize / 64) {
        *word &= !(1 << (doc % 64));
    }
}

pub(super) fn has_bit(words: &[u64], doc: u32) -> bool {
    let word = words.get(doc as usize / 64).copied().unwrap_or(0);
    word & (1 << (doc % 64)) != 0
}

fn place_to_bytes([start, length]: [u64; 2]) -> [u8; 16] {
    (u128::from(length) << 64 | u128::from(start)).to_le_bytes()
}

#[derive(Debug, Clone, Default)]
pub(super) struct Docs {
    seqs: Vec<u64>,
    /// UUIDs; of an id that is none, where it stands among [`Docs::odd_ids`].
    ids: Vec<[u8; 16]>,
    /// A bit for each document whose id is no UUID.
    odd: Vec<u64>,
    odd_ids: String,
    owners: Vec<[u32; 3]>,
    /// The documents of each user, agent and session.
    owned: [HashMap<u32, Vec<u32>>; 3],
    /// A bit for each document that is for everyone.
    everyone: Vec<u64>,
    /// Documents whose audience is not the one that their owner implies, with the number of the
    /// audience's key. Few have one, so there is no column for it.
    audience_of: HashMap<u32, u32>,
    /// The same by audience.
    audiences: HashMap<u32, Vec<u32>>,
    /// A bit for each document, scope by scope, kind by kind, namespace by namespace.
    scopes: [Vec<u64>; Scope::ALL.len()],
    kinds: [Vec<u64>; Kind::ALL.len()],
    namespaces: [Vec<u64>; Namespace::ALL.len()],
    sorts: Vec<Sort>,
    created: Vec<i64>,
    expires: Vec<i64>,
    /// Before this, nothing expires.
    soonest_expiry: Option<i64>,
    importance: Vec<f32>,
    speakers: Vec<u32>,
    /// The number of each speaker's name, after the hash of the first word of that name.
    by_first_word: BTreeSet<(u32, u32)>,
    /// A bit for each name that is in [`Docs::by_first_word`].
    is_speaker: Vec<u64>,
    lengths: Vec<u16>,
    asking: Vec<u8>,
    traits: Vec<u8>,
    /// A bit for each document that was not removed.
    living: Vec<u64>,
    alive: usize,
    names: Names,
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
    /// Who may see it, if not whom its owner implies.
    pub audience: Option<Audience>,
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
    pub fn of(record: &'a Record) -> Self {
        Self {
            seq: record.seq,
            id: record.id.as_str(),
            user: record.owner.user.as_deref(),
            agent: record.owner.agent.as_deref(),
            session: record.owner.session.as_deref(),
            audience: record.audience.clone(),
            scope: record.scope,
            kind: record.kind,
            namespace: record.namespace,
            created: record.created,
            expires: record.expires,
            importance: record.importance,
            speaker: record.speaker(),
            tags: record.tags.iter().map(String::as_str).collect(),
        }
    }
}

impl Docs {
    pub(super) fn push(&mut self, new: &Doc<'_>, terms: &Terms) -> u32 {
        let doc = u32::try_from(self.seqs.len()).unwrap_or(u32::MAX - 1);
        push(&mut self.seqs, new.seq);
        self.push_id(doc, new.id);
        let parts = [new.user, new.agent, new.session];
        let owner = parts.map(|part| self.names.number(part));
        push(&mut self.owners, owner);
        for (owned, part) in self.owned.iter_mut().zip(owner) {
            if part != NO_NAME {
                push(owned.entry(part).or_default(), doc);
            }
        }
        let sort = Sort {
            scope: new.scope,
            kind: new.kind,
            namespace: new.namespace,
        };
        push(&mut self.sorts, sort);
        push(&mut self.created, new.created.millis());
        let expires = new.expires.map_or(i64::MAX, Time::millis);
        push(&mut self.expires, expires);
        push(&mut self.importance, new.importance as f32);
        let speaker = self.names.number(new.speaker);
        push(&mut self.speakers, speaker);
        self.mark_speaker(speaker);
        push(&mut self.lengths, terms.length);
        push(&mut self.asking, terms.asking);
        push(&mut self.traits, terms.traits.0);
        for tag in &new.tags {
            push(self.tags.entry(tag.to_lowercase()).or_default(), doc);
        }
        if let Some(audience) = &new.audience {
            let number = self.names.number(audience.key().as_deref());
            self.set_audience(doc, number);
        }
        self.mark(doc, owner, sort, expires);
        doc
    }

    /// What follows from a new document's columns.
    fn mark(&mut self, doc: u32, owner: [u32; 3], sort: Sort, expires: i64) {
        let soonest = self.soonest_expiry.unwrap_or(i64::MAX);
        self.soonest_expiry = Some(soonest.min(expires));
        set_bit(&mut self.living, doc);
        if self.audience(doc, owner) == NO_NAME {
            set_bit(&mut self.everyone, doc);
        }
        let rows = [
            self.scopes.get_mut(sort.scope as usize),
            self.kinds.get_mut(sort.kind as usize),
            self.namespaces.get_mut(sort.namespace as usize),
        ];
        for row in rows.into_iter().flatten() {
            set_bit(row, doc);
        }
        self.alive += 1;
    }

    fn mark_speaker(&mut self, number: u32) {
        if !has_bit(&self.is_speaker, number)
            && let Some(name) = self.names.name(number)
        {
            let first = hash(&first_word(name));
            self.by_first_word.insert((first, number));
            set_bit(&mut self.is_speaker, number);
        }
    }

    /// A bit for the number of each speaker whose first word is among these. Some may have no
    /// records any more.
    pub(super) fn speakers_named(&self, words: &[impl AsRef<str>]) -> Vec<u64> {
        let mut named = Vec::new();
        for word in words.iter().map(AsRef::as_ref) {
            let first = hash(word);
            for (_, number) in self.by_first_word.range((first, 0)..=(first, u32::MAX)) {
                let name = self.names.name(*number);
                if name.is_some_and(|name| first_word(name) == word) {
                    set_bit(&mut named, *number);
                }
            }
        }
        named
    }

    fn push_id(&mut self, doc: u32, id: &str) {
        match uuid::Uuid::try_parse(id) {
            Ok(uuid) if uuid.to_string() == id => push(&mut self.ids, uuid.into_bytes()),
            _ => {
                let place = [self.odd_ids.len() as u64, id.len() as u64];
                push(&mut self.ids, place_to_bytes(place));
                self.odd_ids.push_str(id);
                set_bit(&mut self.odd, doc);
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
        let bytes = self.ids.get(doc as usize)?;
        match self.odd_id(doc) {
            Some(odd) => odd.parse().ok(),
            None => Some(uuid::Uuid::from_bytes(*bytes).into()),
        }
    }

    fn odd_id(&self, doc: u32) -> Option<&str> {
        if !has_bit(&self.odd, doc) {
            return None;
        }
        let place = *self.ids.get(doc as usize)?;
        let number = |bytes: Option<&[u8; 8]>| usize::try_from(u64::from_le_bytes(*bytes?)).ok();
        let (start, length) = (number(place.first_chunk())?, number(place.last_chunk())?);
        self.odd_ids.get(start..start.checked_add(length)?)
    }

    /// The conversation that the document is part of: whom it is for, and the number of its
    /// session. Sessions of the same name that are for different people are different ones.
    pub(super) fn conversation(&self, doc: u32) -> Option<[u32; 2]> {
        let owner @ [.., session] = *self.owners.get(doc as usize)?;
        let whose = self.audience(doc, owner);
        (session != NO_NAME).then_some([whose, session])
    }

    /// The number of whom the document is for; [`NO_NAME`] if it is for everyone.
    fn audience(&self, doc: u32, [user, ..]: [u32; 3]) -> u32 {
        self.audience_of.get(&doc).copied().unwrap_or(user)
    }

    /// Whether two documents of one conversation may belong to different users.
    pub(super) fn mixes_users(&self) -> bool {
        !self.audience_of.is_empty()
    }

    pub(super) fn is_of_same_user(&self, one: u32, other: u32) -> bool {
        let user = |doc: u32| self.owners.get(doc as usize).map(|[user, ..]| *user);
        user(one) == user(other)
    }

    fn set_audience(&mut self, doc: u32, number: u32) {
        self.audience_of.insert(doc, number);
        self.audiences.entry(number).or_default().push(doc);
    }

    pub(super) fn created(&self, doc: u32) -> i64 {
        self.created.get(doc as usize).copied().unwrap_or(0)
    }

    /// The UTC day of the document.
    pub(super) fn day(&self, doc: u32) -> i32 {
        dates::day_of_millis(self.created(doc))
    }

    pub(super) fn has_expired(&self, doc: u32, now: Time) -> bool {
        self.some_expired(now)
            && self
                .expires
                .get(doc as usize)
                .is_none_or(|at| *at < now.millis())
    }

    /// Whether a document may have expired.
    pub(super) fn some_expired(&self, now: Time) -> bool {
        self.soonest_expiry
            .is_some_and(|soonest| soonest < now.millis())
    }

    /// Whether nothing was removed, and nothing has expired.
    pub(super) fn all_live(&self, now: Time) -> bool {
        self.alive == self.len() && !self.some_expired(now)
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

    pub(super) fn traits(&self, doc: u32) -> Traits {
        Traits(self.traits.get(doc as usize).copied().unwrap_or(0))
    }

    pub(super) fn speaker(&self, doc: u32) -> Option<&str> {
        self.names.name(self.speaker_number(doc))
    }

    pub(super) fn speaker_number(&self, doc: u32) -> u32 {
        self.speakers.get(doc as usize).copied().unwrap_or(NO_NAME)
    }

    pub(super) fn is_alive(&self, doc: u32) -> bool {
        has_bit(&self.living, doc)
    }

    /// Whether it was alive before.
    pub(super) fn kill(&mut self, doc: u32) -> bool {
        let was = self.is_alive(doc);
        clear_bit(&mut self.living, doc);
        if was {
            self.alive -= 1;
        }
        was
    }

    pub(super) fn living(&self) -> &[u64] {
        &self.living
    }

    pub(super) fn bytes(&self) -> usize {
        let owned: usize = self.owned.iter().map(bytes_of_map).sum();
        let owners = self.owned.iter().chain([&self.audiences]);
        let owners = owners.flat_map(HashMap::values);
        let lists: usize = owners.chain(self.tags.values()).map(bytes_of_list).sum();
        let tags: usize = self.tags.keys().map(|tag| tag.capacity() + 16).sum();
        let rows = self.scopes.iter().chain(&self.kinds);
        let rows = rows.chain(&self.namespaces);
        let bits = rows.chain([&self.everyone, &self.living, &self.odd, &self.is_speaker]);
        owned
            + lists
            + bytes_of_map(&self.tags)
            + bytes_of_map(&self.audiences)
            + bytes_of_map(&self.audience_of)
            + tags
            + bits.map(bytes_of_list).sum::<usize>()
            + bytes_of_list(&self.seqs)
            + bytes_of_list(&self.ids)
            + self.odd_ids.capacity()
            + bytes_of_list(&self.owners)
            + bytes_of_list(&self.sorts)
            + bytes_of_list(&self.created)
            + bytes_of_list(&self.expires)
            + bytes_of_list(&self.importance)
            + bytes_of_list(&self.speakers)
            // A set of pairs is about two thirds full.
            + self.by_first_word.len() * 12
            + bytes_of_list(&self.lengths)
            + bytes_of_list(&self.asking)
            + bytes_of_list(&self.traits)
            + self.names.bytes()
    }
}
