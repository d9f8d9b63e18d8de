//! Commits: to the image, to the end of the log, to the disk.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mnemon_core::commit::{Effect, Plan, Planned, Request};
use mnemon_core::ram::Image;
use mnemon_core::{Batch, Grant, Id, Receipt, Right, StoreError, Upkept};

use super::disk::{self, write_failed};
use super::encode;
use super::folder::Folder;
use super::state::State;
use crate::private;
use crate::store::{again, unavailable};

/// How many batches, and about how many bytes, go to the disk at once.
const GROUP_JOBS: usize = 1000;
const GROUP_BYTES: usize = 64 * 1024 * 1024;

/// A log is compacted when more than half of its lines are dead, and at least this many.
pub(super) const COMPACT_LINES: u64 = 1000;

/// A batch on its way to the disk.
#[derive(Debug)]
pub(super) struct Job {
    request: Mutex<Option<Request>>,
    answer: Mutex<Option<Result<Receipt, StoreError>>>,
}

impl Job {
    fn finish(&self, answer: Result<Receipt, StoreError>) {
        *lock(&self.answer) = Some(answer);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Batches that go to the disk together.
#[derive(Default)]
struct Group {
    jobs: Vec<Arc<Job>>,
    requests: Vec<Request>,
    bytes: usize,
}

/// Who sent a batch, and what becomes of text that it erases.
struct Caller {
    grant: Grant,
    purges: bool,
    is_replay: bool,
}

impl Caller {
    fn of(request: &Request) -> Self {
        Self {
            grant: request.grant().clone(),
            purges: request.purges(),
            is_replay: request.is_replay(),
        }
    }
}

/// What a group adds to the log.
#[derive(Default)]
struct Lines {
    bytes: Vec<u8>,
    /// The highest number in them.
    last_seq: u64,
    /// What was purged: no copy of it may stay.
    purged: Vec<Id>,
}

impl Folder {
    /// Applies the batch; several that come at once share one wait for the disk.
    pub(super) fn apply(&self, grant: Grant, batch: Batch) -> Result<Receipt, StoreError> {
        let request = Request::new(&grant, batch)?;
        if !self.is_there() {
            // A batch that is refused anyway shall not leave an empty folder behind.
            let plan = Image::default().plan(vec![request.clone()]);
            plan.outcomes.into_iter().collect::<Result<Vec<_>, _>>()?;
        }
        let job = Arc::new(Job {
            request: Mutex::new(Some(request)),
            answer: Mutex::default(),
        });
        lock(&self.queue).push_back(Arc::clone(&job));
        let mut state = self.state_mut();
        loop {
            if let Some(answer) = lock(&job.answer).take() {
                return answer;
            }
            if !self.run_group(&mut state) {
                // Whoever took the batch from the queue did not live to answer.
                return Err(StoreError::Internal("a write was abandoned".to_owned()));
            }
        }
    }

    /// Writes what is waiting. Whether there was anything.
    fn run_group(&self, state: &mut State) -> bool {
        let held = match self.hold(state) {
            Ok(lock) => lock,
            Err(error) => return self.fail_waiting(&error),
        };
        let Group { jobs, requests, .. } = self.take_group();
        let callers: Vec<Caller> = requests.iter().map(Caller::of).collect();
        let plan = state.image.plan(requests);
        let lines = Lines::of(callers.iter().zip(&plan.outcomes), &state.image);
        let answers = lines.and_then(|lines| self.write(state, &lines, plan));
        if let Some(caller) = callers.first() {
            state.image.trim_removals(&caller.grant);
        }
        let all_failed = |error| jobs.iter().map(|_| Err(again(&error))).collect();
        let answers = answers.unwrap_or_else(all_failed);
        for (job, answer) in jobs.iter().zip(answers) {
            job.finish(answer);
        }
        self.compact_if_due(state);
        drop(held);
        !jobs.is_empty()
    }

    fn take_group(&self) -> Group {
        let mut group = Group::default();
        while group.jobs.len() < GROUP_JOBS && group.bytes < GROUP_BYTES {
            let Some(job) = lock(&self.queue).pop_front() else {
                break;
            };
            let request = lock(&job.request).take();
            if let Some(request) = request {
                group.bytes += request.bytes();
                group.requests.push(request);
                group.jobs.push(job);
            }
        }
        group
    }

    /// Carries out the plan once the log has it. If the log fails, nothing of it happened.
    fn write(
        &self,
        state: &mut State,
        lines: &Lines,
        plan: Plan,
    ) -> Result<Vec<Result<Receipt, StoreError>>, StoreError> {
        if lines.purged.is_empty() {
            if !lines.bytes.is_empty() {
                self.append(state, &lines.bytes)?;
            }
            let skips = plan.last_seq > lines.last_seq.max(state.image.last_seq());
            let answers = state.image.apply(plan);
            if skips {
                // The newest changes of the original left no line: only a header can count on.
                self.rewrite(state, &[])?;
            }
            return Ok(answers);
        }
        // The next log is written from the image; if that fails, the image is read from the old one.
        let answers = state.image.apply(plan);
        let rewritten = self.rewrite(state, &lines.purged);
        if rewritten.is_err() {
            *state = State::default();
        }
        rewritten.map(|()| answers)
    }

    fn fail_waiting(&self, error: &StoreError) -> bool {
        let waiting: Vec<Arc<Job>> = lock(&self.queue).drain(..).collect();
        for job in &waiting {
            job.finish(Err(again(error)));
        }
        !waiting.is_empty()
    }

    /// Puts the lines at the end of the log and waits for the disk. When it fails, the log is as
    /// it was, or ends in bytes that the next writer cuts off.
    fn append(&self, state: &mut State, lines: &[u8]) -> Result<(), StoreError> {
        let failed = |error| write_failed(&self.paths.log, error);
        let is_new = state.log.is_none();
        let mut file = private::options()
            .append(true)
            .create(true)
            .open(&self.paths.log)
            .map_err(failed)?;
        self.cut_tail(state, &file).map_err(failed)?;
        let mark = state.log.as_ref().map(|log| log.reached.mark);
        let mark = mark.unwrap_or_default();
        let bytes = match mark.open_end {
            true => Cow::Owned([b"\n", lines].concat()),
            false => Cow::Borrowed(lines),
        };
        let written = file
            .write_all(&bytes)
            .and_then(|()| file.sync_data())
            .and_then(|()| match is_new {
                true => self.paths.sync_folder(),
                false => Ok(()),
            });
        let still_there = written
            .as_ref()
            .is_ok_and(|()| disk::is_at(&file, &self.paths.log));
        if written.is_ok() && !still_there {
            return Err(self.replaced());
        }
        if let Err(error) = written {
            // If this fails as well, what was written is either torn or was never acknowledged.
            let _ = file.set_len(mark.offset).and_then(|()| file.sync_data());
            if is_new {
                let _ = disk::remove(&self.paths.log);
            }
            return Err(failed(error));
        }
        let count = lines.iter().filter(|byte| **byte == b'\n').count();
        let mark = mark.after(bytes.len() as u64, count as u64);
        match &mut state.log {
            Some(log) => log.reached.mark = mark,
            None => state.adopt(&self.paths, mark),
        }
        Ok(())
    }

    /// The log was deleted or replaced while it was written to: what was written is not in the
    /// log that others read. The next call notices and reads the one that is there.
    fn replaced(&self) -> StoreError {
        let what = "it was deleted or replaced during the write; nothing was stored, try again";
        unavailable(self.paths.log.display().to_string(), what, what)
    }

    /// Takes off what an interrupted write left at the end.
    fn cut_tail(&self, state: &mut State, file: &std::fs::File) -> io::Result<()> {
        let Some(log) = &mut state.log else {
            return Ok(());
        };
        if log.reached.torn > 0 {
            file.set_len(log.reached.mark.offset)?;
            file.sync_data()?;
            state.notices.cut_bytes += log.reached.torn;
            state.notices.torn_bytes = 0;
            log.reached.torn = 0;
        }
        Ok(())
    }

    /// The batch is on the disk by now, so a compaction that fails is a notice, not an error.
    fn compact_if_due(&self, state: &mut State) {
        if !state.is_due() {
            return;
        }
        let Err(error) = self.rewrite(state, &[]) else {
            state.notices.not_compacted = None;
            return;
        };
        state.notices.not_compacted = Some(error.to_string());
        state.compact_after = state.dead_lines() + COMPACT_LINES;
    }

    /// A slice of housekeeping.
    pub(super) fn upkeep(&self, grant: &Grant, limit: usize) -> Result<Upkept, StoreError> {
        grant.require(Right::Write)?;
        if !self.is_there() {
            return Ok(Upkept::default());
        }
        let mut state = self.state_mut();
        let state = &mut *state;
        let _lock = self.hold(state)?;
        let clock = state.image.clock();
        let (mut done, mut effects) = state.image.upkeep(grant, limit);
        if effects.is_empty() && state.image.clock() != clock {
            // The clock is read from the times of the lines, so there must be one.
            effects.push(Effect::Drop {
                seqs: Vec::new(),
                keys: Vec::new(),
            });
        }
        if let Err(error) = self.log_upkeep(state, grant, &effects) {
            *state = State::default();
            return Err(error);
        }
        if state.is_due() {
            self.rewrite(state, &[])?;
            done.compacted = true;
        }
        Ok(done)
    }

    fn log_upkeep(
        &self,
        state: &mut State,
        grant: &Grant,
        effects: &[Effect],
    ) -> Result<(), StoreError> {
        if effects.is_empty() {
            return Ok(());
        }
        let mut lines = Vec::new();
        let effects: Vec<&Effect> = effects.iter().collect();
        encode::batch(&effects, grant, &mut lines)?;
        self.append(state, &lines)
    }

    /// Rewrites the log now, whether it is due or not.
    pub(super) fn compact(&self) -> Result<(), StoreError> {
        if !self.is_there() {
            return Ok(());
        }
        let mut state = self.state_mut();
        let _lock = self.hold(&mut state)?;
        self.rewrite(&mut state, &[])
    }
}

impl State {
    fn is_due(&self) -> bool {
        let Some(log) = &self.log else {
            return false;
        };
        let dead = self.dead_lines();
        dead >= COMPACT_LINES.max(self.compact_after) && dead * 2 > log.reached.mark.lines
    }
}

impl Lines {
    fn of<'a>(
        batches: impl Iterator<Item = (&'a Caller, &'a Result<Planned, StoreError>)>,
        image: &Image,
    ) -> Result<Self, StoreError> {
        let mut lines = Self::default();
        for (caller, outcome) in batches {
            let Ok(planned) = outcome else {
                continue;
            };
            let effects: Vec<&Effect> = planned.moves.iter().map(|made| &made.effect).collect();
            encode::batch(&effects, &caller.grant, &mut lines.bytes)?;
            let entries = effects.iter().filter_map(|effect| encode::entry_of(effect));
            let newest = entries.map(|entry| entry.seq).max().unwrap_or(0);
            lines.last_seq = lines.last_seq.max(newest);
            if caller.purges {
                // The original of a copy erased the text before it was copied, as a rule: then
                // there is none, and the log need not be written anew.
                let is_here = |id: &Id| !caller.is_replay || image.newest_version(id) > 0;
                let erased = effects.into_iter().filter_map(|effect| match effect {
                    Effect::Erase { id, .. } if is_here(id) => Some(id.clone()),
                    _ => None,
                });
                lines.purged.extend(erased);
            }
        }
        Ok(lines)
    }
}
