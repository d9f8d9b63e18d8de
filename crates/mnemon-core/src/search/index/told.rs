//! The days that documents tell of. One document in eight does, so there is no column for it but a
//! list in the order of the documents.

use std::io;

use super::saved::Numbers;
use super::{Terms, bytes_of_list};
use crate::search::column_file::{Reading, Writing};
use crate::search::dates::{Days, Told};
use crate::search::push;

#[derive(Debug, Clone, Default)]
pub(super) struct ToldDays {
    docs: Vec<u32>,
    days: Vec<[u32; 2]>,
    /// Of 255.
    certainty: Vec<u8>,
}

impl ToldDays {
    pub(super) fn push(&mut self, doc: u32, terms: &Terms) {
        for told in &terms.told {
            push(&mut self.docs, doc);
            let Days { from, to } = told.days;
            push(&mut self.days, [from, to].map(i32::cast_unsigned));
            push(&mut self.certainty, (told.certainty * 255.0).round() as u8);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        bytes_of_list(&self.docs) + bytes_of_list(&self.days) + bytes_of_list(&self.certainty)
    }

    /// Every document with each of the days that it tells of.
    pub(super) fn all(&self) -> impl Iterator<Item = (u32, Told)> {
        let days = self.docs.iter().zip(&self.days).zip(&self.certainty);
        days.map(|((doc, days), certainty)| (*doc, told(*days, *certainty)))
    }

    pub(super) fn of(&self, doc: u32) -> Vec<Told> {
        let start = self.docs.partition_point(|other| *other < doc);
        let docs = self.docs.get(start..).unwrap_or_default();
        let count = docs.iter().take_while(|other| **other == doc).count();
        let range = start..start + count;
        let days = self.days.get(range.clone()).unwrap_or_default();
        let certainty = self.certainty.get(range).unwrap_or_default();
        let days = days.iter().zip(certainty);
        days.map(|(days, certainty)| told(*days, *certainty))
            .collect()
    }

    pub(super) fn save(&self, numbers: &Numbers, out: &mut Writing<'_>) -> io::Result<()> {
        let rows = self.docs.iter().zip(&self.days).zip(&self.certainty);
        let kept = rows.filter_map(|((doc, days), certainty)| {
            let [from, to] = *days;
            Some(([numbers.of(*doc)?, from, to], *certainty))
        });
        let (rows, certainty): (Vec<[u32; 3]>, Vec<u8>) = kept.unzip();
        out.column(rows.len(), rows)?;
        out.column(certainty.len(), certainty)
    }

    pub(super) fn load(from: &mut Reading<'_>) -> io::Result<Self> {
        let rows: Vec<[u32; 3]> = from.column()?;
        let certainty = from.column_of(rows.len())?;
        Ok(Self {
            docs: rows.iter().map(|[doc, ..]| *doc).collect(),
            days: rows.iter().map(|[_, from, to]| [*from, *to]).collect(),
            certainty,
        })
    }
}

fn told([from, to]: [u32; 2], certainty: u8) -> Told {
    Told {
        days: Days {
            from: from.cast_signed(),
            to: to.cast_signed(),
        },
        certainty: f32::from(certainty) / 255.0,
    }
}
