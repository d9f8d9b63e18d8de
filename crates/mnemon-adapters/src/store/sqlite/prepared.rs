//! A batch on its way to the writing thread: the words of its records are analysed by the caller.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::sync::mpsc::Receiver;

use mnemon_core::commit::Request;
use mnemon_core::index::{StoredVector, Terms, Text, stored};
use mnemon_core::speakers::Voice;
use mnemon_core::{Batch, CodedVector, Grant, Id, Record, StoreError, Time};

use super::tables::FoundBy;

/// Operations of a batch that is analysed while it is written, in handfuls of as many, and that
/// has its transaction to itself.
pub(super) const LARGE: usize = 64;

/// A batch whose words the caller analyses: the one thread that writes has enough to do.
pub(super) struct Prepared {
    /// `None` once a large one was written: it is not kept to be done again.
    request: Option<Request>,
    pub(super) purges: bool,
    pub(super) is_large: bool,
    /// What its records are found by.
    ready: Vec<FoundBy>,
    /// The same of a large batch: in the making, while the first are written.
    coming: Option<Receiver<Vec<FoundBy>>>,
}

impl Prepared {
    pub(super) fn from(grant: &Grant, mut batch: Batch) -> Result<Self, StoreError> {
        let mut vectors = HashMap::new();
        for (id, embedding) in std::mem::take(&mut batch.vectors) {
            vectors.insert(id, stored(&embedding)?);
        }
        let request = Request::new(grant, batch)?;
        let written = request.written();
        let words = written.map(|(record, vector)| (Words::of(record), vector.cloned()));
        let mut found_by = move |(words, copied): (Words, Option<CodedVector>)| FoundBy {
            terms: words.terms().to_bytes(),
            vector: match copied {
                Some(copied) => Some(StoredVector::from(&copied)),
                None => vectors.remove(&words.id),
            },
            id: words.id,
        };
        let mut prepared = Self {
            purges: request.purges(),
            is_large: request.len() >= LARGE,
            request: None,
            ready: Vec::new(),
            coming: None,
        };
        if !prepared.is_large {
            prepared.ready = words.map(found_by).collect();
            prepared.request = Some(request);
            return Ok(prepared);
        }
        let mut words: VecDeque<_> = words.collect();
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
        prepared.coming = Some(coming);
        prepared.request = Some(request);
        Ok(prepared)
    }

    /// Whether the batch can be written, or written again.
    pub(super) fn is_at_hand(&self) -> bool {
        self.request.is_some()
    }

    /// The batch: a large one once, any other as often as it is needed.
    pub(super) fn request(&mut self) -> Option<Request> {
        match self.is_large {
            true => self.request.take(),
            false => self.request.clone(),
        }
    }

    /// What its records are found by, in their order.
    pub(super) fn found_by(&mut self) -> impl Iterator<Item = Cow<'_, FoundBy>> {
        let coming = self.coming.take().into_iter().flatten().flatten();
        let ready = self.ready.iter().map(Cow::Borrowed);
        ready.chain(coming.map(Cow::Owned))
    }
}

/// What of a record is analysed, apart from it, so that both can be worked on at once.
struct Words {
    id: Id,
    content: String,
    tags: Vec<String>,
    summary: Option<String>,
    created: Time,
    voice: Option<Voice>,
}

impl Words {
    fn of(record: &Record) -> Self {
        Self {
            id: record.id.clone(),
            content: record.content.clone(),
            tags: record.tags.clone(),
            summary: record.summary.clone(),
            created: record.created,
            voice: record.voice(),
        }
    }

    fn terms(&self) -> Terms {
        Terms::of_text(&Text {
            content: &self.content,
            tags: &self.tags,
            summary: self.summary.as_deref(),
            created: self.created,
            voice: self.voice,
        })
    }
}
