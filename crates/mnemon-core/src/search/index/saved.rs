//! A whole index written down, so that the next one who wants it need not make it again.
//!
//! Only what is alive is written: whoever was removed leaves no number, no word and no name
//! behind. A checksum tells whether it is as it was written; whether it fits the records is for
//! the store to know.

use std::io::{self, Read, Write};

use super::chain::Chain;
use super::docs::Docs;
use super::postings::Postings;
use super::{Index, NOBODY};
use crate::model::{Kind, Namespace, Scope};
use crate::ports::embed::ModelId;
use crate::search::column_file::{Reading, Writing, wrong};
use crate::search::vector::VectorSet;

/// Of this form of the file; another form is not read.
const FORM: u32 = 3;

/// The documents that are kept, and their new numbers.
pub(super) struct Numbers {
    kept: Vec<u32>,
    /// The new number of each; empty if everybody stays, and so does their number.
    new: Vec<u32>,
}

impl Numbers {
    fn of_living(docs: &Docs) -> Self {
        let all = 0..docs.len() as u32;
        let kept: Vec<u32> = all.filter(|doc| docs.is_alive(*doc)).collect();
        let mut new = Vec::new();
        if kept.len() < docs.len() {
            new = vec![NOBODY; docs.len()];
            for (number, doc) in (0..).zip(&kept) {
                if let Some(place) = new.get_mut(*doc as usize) {
                    *place = number;
                }
            }
        }
        Self { kept, new }
    }

    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }

    /// Their old numbers, in order.
    pub(super) fn kept(&self) -> impl Iterator<Item = u32> {
        self.kept.iter().copied()
    }

    /// The new number of a document; `None` if it is not kept.
    pub(super) fn of(&self, doc: u32) -> Option<u32> {
        if self.new.is_empty() {
            return ((doc as usize) < self.kept.len()).then_some(doc);
        }
        let new = self.new.get(doc as usize).copied();
        new.filter(|new| *new != NOBODY)
    }
}

impl Index {
    /// Writes the index down.
    pub fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut out = Writing::new(out);
        let numbers = Numbers::of_living(&self.docs);
        out.text(&form())?;
        self.docs.save(&numbers, &mut out)?;
        self.chain.save(&numbers, &mut out)?;
        self.postings.save(&numbers, &mut out)?;
        out.cell(self.centred as u64)?;
        out.cell(self.vectors.len() as u64)?;
        for (model, set) in &self.vectors {
            out.text(&model.name)?;
            out.cell(model.dimension as u64)?;
            set.save(numbers.len(), || numbers.kept(), &mut out)?;
        }
        out.end()
    }

    /// Reads what [`Index::save`] wrote, from a source of this many bytes.
    pub fn load(from: &mut dyn Read, bytes: u64) -> io::Result<Self> {
        let mut from = Reading::new(from, bytes);
        if from.text()? != form() {
            return Err(wrong("it is an index of another form"));
        }
        let docs = Docs::load(&mut from)?;
        let mut index = Self {
            chain: Chain::load(&mut from, docs.len())?,
            docs,
            postings: Postings::load(&mut from)?,
            centred: usize::try_from(from.cell::<u64>()?).unwrap_or(0),
            ..Self::default()
        };
        for _ in 0..from.cell::<u64>()? {
            let model = ModelId {
                name: from.text()?,
                dimension: usize::try_from(from.cell::<u64>()?).unwrap_or(0),
            };
            let set = VectorSet::load(model.dimension, index.docs.len(), &mut from)?;
            index.vectors.insert(model, set);
        }
        from.end()?;
        Ok(index)
    }
}

/// What the numbers in a file mean: words that change when a kind of record is added or moved.
fn form() -> String {
    let scopes = Scope::ALL.iter().map(|scope| scope.as_str());
    let kinds = Kind::ALL.iter().map(|kind| kind.as_str());
    let namespaces = Namespace::ALL.iter().map(|namespace| namespace.as_str());
    let words: Vec<&str> = scopes.chain(kinds).chain(namespaces).collect();
    format!("mnemon index {FORM}: {}", words.join(" "))
}

#[cfg(test)]
mod tests;
