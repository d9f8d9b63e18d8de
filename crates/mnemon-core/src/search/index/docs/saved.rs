//! The columns written down, and read again.

use std::collections::{HashMap, HashSet};
use std::io;

use super::{Docs, Names, Sort, place_to_bytes, set_bit};
use crate::model::{Kind, Namespace, Scope};
use crate::search::column_file::{Cell, Reading, Writing, wrong};
use crate::search::index::saved::Numbers;

impl Docs {
    pub(in crate::search::index) fn save(
        &self,
        numbers: &Numbers,
        out: &mut Writing<'_>,
    ) -> io::Result<()> {
        let kept = || numbers.kept();
        keep(&self.seqs, numbers, out)?;
        keep(&self.owners, numbers, out)?;
        let sorts = kept().filter_map(|doc| self.sorts.get(doc as usize));
        out.column(numbers.len(), sorts.map(|sort| sort.to_bytes()))?;
        keep(&self.created, numbers, out)?;
        keep(&self.expires, numbers, out)?;
        keep(&self.importance, numbers, out)?;
        keep(&self.speakers, numbers, out)?;
        keep(&self.lengths, numbers, out)?;
        keep(&self.asking, numbers, out)?;
        keep(&self.traits, numbers, out)?;
        self.save_ids(numbers, out)?;
        self.names.save(&self.used_names(numbers), out)?;
        let audiences = self.audience_of.iter();
        let audiences = audiences.filter_map(|(doc, number)| Some([numbers.of(*doc)?, *number]));
        let mut audiences: Vec<[u32; 2]> = audiences.collect();
        audiences.sort_unstable();
        out.column(audiences.len(), audiences)?;
        for owned in &self.owned {
            save_lists(owned.iter(), numbers, out, |out, name| out.cell(*name))?;
        }
        save_lists(self.tags.iter(), numbers, out, |out, tag| out.text(tag))
    }

    fn save_ids(&self, numbers: &Numbers, out: &mut Writing<'_>) -> io::Result<()> {
        let (mut odd, mut odd_ids) = (Vec::new(), String::new());
        let mut ids = Vec::with_capacity(numbers.len());
        for (new, doc) in (0..).zip(numbers.kept()) {
            if let Some(id) = self.odd_id(doc) {
                set_bit(&mut odd, new);
                ids.push(place_to_bytes([odd_ids.len() as u64, id.len() as u64]));
                odd_ids.push_str(id);
            } else {
                ids.push(self.ids.get(doc as usize).copied().unwrap_or_default());
            }
        }
        out.column(ids.len(), ids)?;
        out.column(odd.len(), odd)?;
        out.text(&odd_ids)
    }

    fn used_names(&self, numbers: &Numbers) -> HashSet<u32> {
        let mut used = HashSet::new();
        for doc in numbers.kept() {
            used.extend(self.owners.get(doc as usize).into_iter().flatten());
            used.extend(self.speakers.get(doc as usize));
            used.extend(self.audience_of.get(&doc));
        }
        used
    }

    pub(in crate::search::index) fn load(from: &mut Reading<'_>) -> io::Result<Self> {
        let seqs: Vec<u64> = from.column()?;
        let count = seqs.len();
        if u32::try_from(count).is_err() || !seqs.is_sorted() {
            return Err(wrong("the documents are out of order"));
        }
        let mut docs = Self {
            seqs,
            owners: from.column_of(count)?,
            sorts: from
                .column_of(count)?
                .into_iter()
                .map(Sort::from_bytes)
                .collect::<Option<_>>()
                .ok_or_else(|| wrong("a document is of an unknown kind"))?,
            created: from.column_of(count)?,
            expires: from.column_of(count)?,
            importance: from.column_of(count)?,
            speakers: from.column_of(count)?,
            lengths: from.column_of(count)?,
            asking: from.column_of(count)?,
            traits: from.column_of(count)?,
            ids: from.column_of(count)?,
            odd: from.column()?,
            odd_ids: from.text()?,
            names: Names::load(from)?,
            ..Self::default()
        };
        for [doc, number] in from.column::<[u32; 2]>()? {
            docs.set_audience(doc, number);
        }
        for owned in &mut docs.owned {
            *owned = load_lists(from, |from| from.cell())?;
        }
        docs.tags = load_lists(from, |from| from.text())?;
        docs.mark_all();
        Ok(docs)
    }

    /// What follows from the columns, without going through the maps for each document.
    fn mark_all(&mut self) {
        for doc in 0..self.seqs.len() as u32 {
            let at = doc as usize;
            let owner = self.owners.get(at).copied().unwrap_or_default();
            let expires = self.expires.get(at).copied().unwrap_or(i64::MAX);
            if let Some(sort) = self.sorts.get(at).copied() {
                self.mark(doc, owner, sort, expires);
            }
            self.mark_speaker(self.speaker_number(doc));
        }
    }
}

impl Sort {
    fn to_bytes(self) -> [u8; 3] {
        [self.scope as u8, self.kind as u8, self.namespace as u8]
    }

    fn from_bytes([scope, kind, namespace]: [u8; 3]) -> Option<Self> {
        Some(Self {
            scope: *Scope::ALL.get(usize::from(scope))?,
            kind: *Kind::ALL.get(usize::from(kind))?,
            namespace: *Namespace::ALL.get(usize::from(namespace))?,
        })
    }
}

/// A column of the documents that are kept.
pub(in crate::search::index) fn keep<T: Cell>(
    column: &[T],
    numbers: &Numbers,
    out: &mut Writing<'_>,
) -> io::Result<()> {
    let kept = numbers.kept();
    let cells = kept.filter_map(|doc| column.get(doc as usize).copied());
    out.column(numbers.len(), cells)
}

/// Lists of documents, each under its key; those of which nothing is left are left out.
fn save_lists<'a, K: 'a>(
    lists: impl Iterator<Item = (&'a K, &'a Vec<u32>)>,
    numbers: &Numbers,
    out: &mut Writing<'_>,
    key: impl Fn(&mut Writing<'_>, &K) -> io::Result<()>,
) -> io::Result<()> {
    let lists = lists.map(|(key, docs)| {
        let docs = docs.iter().filter_map(|doc| numbers.of(*doc));
        (key, docs.collect::<Vec<u32>>())
    });
    let lists: Vec<_> = lists.filter(|(_, docs)| !docs.is_empty()).collect();
    out.cell(lists.len() as u64)?;
    for (name, docs) in lists {
        key(out, name)?;
        out.column(docs.len(), docs)?;
    }
    Ok(())
}

fn load_lists<K: Eq + std::hash::Hash>(
    from: &mut Reading<'_>,
    key: impl Fn(&mut Reading<'_>) -> io::Result<K>,
) -> io::Result<HashMap<K, Vec<u32>>> {
    let count: u64 = from.cell()?;
    let mut lists = HashMap::new();
    for _ in 0..count {
        let name = key(from)?;
        lists.insert(name, from.column()?);
    }
    Ok(lists)
}
