//! Jobs on their way to the tasks that write.

use std::collections::HashMap;
use std::panic::resume_unwind;

use mnemon_core::commit::Request;
use mnemon_core::embed::ModelId;
use mnemon_core::index::{StoredVector, stored};
use mnemon_core::{Batch, Grant, Receipt, Record, StoreError, Upkept};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::rows::FoundBy;

/// Operations of a batch that gains nothing by sharing a transaction, and whose records are analysed
/// on a thread where that may take long.
pub(super) const LARGE: usize = 64;
/// Threads that analyse the records of one large batch at the most.
const THREADS: usize = 4;

/// A batch whose records were analysed.
pub(super) struct Prepared {
    pub(super) request: Request,
    pub(super) found_by: Vec<FoundBy>,
}

impl Prepared {
    pub(super) fn of(grant: &Grant, mut batch: Batch) -> Result<Self, StoreError> {
        let mut vectors = HashMap::new();
        for (id, embedding) in std::mem::take(&mut batch.vectors) {
            vectors.insert(id, stored(&embedding)?);
        }
        let request = Request::new(grant, batch)?;
        let records: Vec<&Record> = request.written().map(|(record, _)| record).collect();
        let analysed = analyse(&records).into_iter().zip(request.written());
        let found_by = analysed.map(|(found_by, (record, copied))| FoundBy {
            vector: match copied {
                Some(copied) => Some(StoredVector::from(copied)),
                None => vectors.remove(&record.id),
            },
            ..found_by
        });
        let found_by = found_by.collect();
        Ok(Self { request, found_by })
    }

    pub(super) fn is_large(&self) -> bool {
        self.request.len() >= LARGE
    }

    pub(super) fn models(&self) -> impl Iterator<Item = &ModelId> {
        let vectors = self.found_by.iter();
        vectors.filter_map(|found_by| found_by.vector.as_ref().map(|vector| &vector.model))
    }
}

/// The terms of records: those of a large batch on several threads, as nothing can be written before
/// they are known.
fn analyse(records: &[&Record]) -> Vec<FoundBy> {
    let of = |part: &[&Record]| -> Vec<FoundBy> { part.iter().map(|it| FoundBy::of(it)).collect() };
    // How many threads the machine runs at once is read from files every time, which takes longer than
    // to analyse one record.
    let wanted = THREADS.min(records.len() / LARGE);
    let threads = match wanted {
        0 | 1 => 1,
        _ => std::thread::available_parallelism().map_or(1, |most| wanted.min(most.get())),
    };
    if threads < 2 {
        return of(records);
    }
    let part = records.len().div_ceil(threads);
    std::thread::scope(|scope| {
        let parts = records.chunks(part).map(|part| {
            // The system may have no thread to spare.
            let thread = std::thread::Builder::new().spawn_scoped(scope, move || of(part));
            thread.map_err(|_| part)
        });
        let parts: Vec<_> = parts.collect();
        let found = parts.into_iter().flat_map(|part| match part {
            Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(part) => of(part),
        });
        found.collect()
    })
}

pub(super) enum Work {
    Apply(Box<Prepared>),
    Upkeep(usize),
    Embed(Vec<(u64, StoredVector)>),
}

/// What became of a job.
pub(super) enum Done {
    Applied(Receipt),
    Upkept(Upkept),
    Embedded(usize),
}

pub(super) type Outcome = Result<Done, StoreError>;

/// Something to write, with the channel for its outcome. Dropping the receiver does not take the
/// write back.
pub(super) struct Job {
    pub(super) grant: Grant,
    pub(super) work: Work,
    /// The outcome of an earlier try is not known: only an idempotency key can settle it.
    pub(super) is_doubtful: bool,
    pub(super) caller: oneshot::Sender<Outcome>,
    pub(super) _slot: OwnedSemaphorePermit,
}

impl Job {
    pub(super) fn batch(&self) -> Option<&Prepared> {
        match &self.work {
            Work::Apply(prepared) => Some(prepared),
            Work::Upkeep(_) | Work::Embed(_) => None,
        }
    }

    pub(super) fn is_small_batch(&self) -> bool {
        matches!(&self.work, Work::Apply(prepared) if !prepared.is_large())
    }

    pub(super) fn answer(self, outcome: Outcome) {
        // A caller who has gone away is not missed.
        let _ = self.caller.send(outcome);
    }

    pub(super) fn has_key(&self) -> bool {
        matches!(&self.work, Work::Apply(prepared) if prepared.request.has_key())
    }
}

#[cfg(test)]
mod tests {
    use mnemon_core::{Ctx, Op, Policy, Right, Tenant, Time};

    use super::*;

    #[test]
    fn records_of_a_large_batch_keep_their_order() {
        let ctx = Ctx::new(Tenant::default(), "test", Time::EPOCH);
        let grant = Policy::default().check(&ctx, Right::Write).unwrap();
        let note = |number: usize| {
            let id = format!("n{number}").parse().unwrap();
            Record::note(id, &ctx, format!("tea number {number}"))
        };
        let batch = Batch {
            ops: (0..5 * LARGE + 1).map(|it| Op::append(note(it))).collect(),
            ..Batch::default()
        };
        let prepared = Prepared::of(&grant, batch).unwrap();
        assert_eq!(prepared.found_by.len(), 5 * LARGE + 1);
        for (number, found_by) in prepared.found_by.iter().enumerate() {
            let alone = FoundBy::of(&note(number));
            assert_eq!((&found_by.id, &found_by.terms), (&alone.id, &alone.terms));
        }
    }
}
