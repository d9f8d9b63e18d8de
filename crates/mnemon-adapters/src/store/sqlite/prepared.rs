//! A batch on its way to the writing thread: the words of its records are analysed by the caller.

use std::collections::{HashMap, VecDeque};
use std::sync::mpsc::Receiver;

use mnemon_core::index::{Terms, stored};
use mnemon_core::{Batch, Id, Op, Record, StoreError};

use super::tables::{FoundBy, FoundBys};

/// Operations of a batch that is analysed while it is written, in handfuls of as many, and that
/// has its transaction to itself.
pub(super) const LARGE: usize = 64;

/// A batch whose words the caller analyses: the one thread that writes has enough to do.
#[derive(Default)]
pub(super) struct Prepared {
    pub(super) batch: Batch,
    /// What its records are found by.
    ready: Vec<FoundBy>,
    /// The same of a large batch: in the making, while the first are written.
    coming: Option<Receiver<Vec<FoundBy>>>,
}

impl Prepared {
    pub(super) fn from(mut batch: Batch) -> Result<Self, StoreError> {
        let mut vectors = HashMap::new();
        for (id, embedding) in std::mem::take(&mut batch.vectors) {
            vectors.insert(id, stored(&embedding)?);
        }
        let puts = batch.ops.iter().filter_map(|op| match op {
            Op::Put { record, .. } => Some(record.as_ref()),
            _ => None,
        });
        let words = puts.map(Words::of);
        let mut found_by = move |words: Words| FoundBy {
            terms: words.terms().to_bytes(),
            vector: vectors.remove(&words.id),
            id: words.id,
        };
        if batch.ops.len() < LARGE {
            let ready = words.map(found_by).collect();
            return Ok(Self {
                batch,
                ready,
                coming: None,
            });
        }
        let mut words: VecDeque<Words> = words.collect();
        let (made, coming) = std::sync::mpsc::channel();
        let analyse = move || {
            // In handfuls: waking the writer for each would cost more than the analysis.
            while !words.is_empty() {
                let handful = words.drain(..LARGE.min(words.len()));
                let handful: Vec<FoundBy> = handful.map(&mut found_by).collect();
                // The writer has gone on without the rest of a batch that failed.
                if made.send(handful).is_err() {
                    break;
                }
            }
        };
        crate::blocking::start(analyse);
        Ok(Self {
            batch,
            ready: Vec::new(),
            coming: Some(coming),
        })
    }

    /// A copy of a small one.
    pub(super) fn copy(&self) -> Self {
        Self {
            batch: self.batch.clone(),
            ready: self.ready.clone(),
            coming: None,
        }
    }

    pub(super) fn into_parts(self) -> (Batch, FoundBys) {
        let coming = self.coming.into_iter().flatten().flatten();
        (self.batch, Box::new(self.ready.into_iter().chain(coming)))
    }
}

/// What of a record has words, apart from it, so that both can be worked on at once.
struct Words {
    id: Id,
    content: String,
    tags: Vec<String>,
    summary: Option<String>,
}

impl Words {
    fn of(record: &Record) -> Self {
        Self {
            id: record.id.clone(),
            content: record.content.clone(),
            tags: record.tags.clone(),
            summary: record.summary.clone(),
        }
    }

    fn terms(&self) -> Terms {
        Terms::of_words(&self.content, &self.tags, self.summary.as_deref())
    }
}
